package cli

import (
	_ "embed" // for the topics
	"strings"

	"github.com/linerate/linerate/internal/base/spelling"
)

// topicsText holds the concepts that `linerate help TOPIC` explains. docs/reference/topics.md and
// the manual pages of section 7 are made of the same text. A section begins with a line "# NAME:
// title".
//
//go:embed topics.txt
var topicsText string

// topic is one concept.
type topic struct{ name, title, text string }

// topics returns all of them, in the order of the text.
func topics() []topic {
	var all []topic
	for section := range strings.SplitSeq("\n"+topicsText, "\n# ") {
		head, text, ok := strings.Cut(section, "\n")
		if !ok {
			continue
		}
		name, title, _ := strings.Cut(head, ": ")
		all = append(all, topic{name, title, strings.TrimSpace(text)})
	}
	return all
}

// nearTopics returns the topics whose names are similar to the words of a help request.
func nearTopics(words []string) []string {
	if len(words) != 1 {
		return nil
	}
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	return spelling.Near(names, words[0])
}

// topicList returns the lines that name the topics, for the help of help.
func topicList() string {
	var list strings.Builder
	for _, t := range topics() {
		list.WriteString("\n  " + t.name + strings.Repeat(" ", max(1, 13-len(t.name))) + t.title)
	}
	return list.String()
}
