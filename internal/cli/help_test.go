package cli

import (
	"io"
	"iter"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// widestHelp bounds the explanation of a command. The width check of the sources lets raw strings
// be as wide as they are.
const widestHelp = 110

// longestSentence bounds the words of a sentence of help.
const longestSentence = 34

// sentences returns the sentences of the prose in a text: not of tables and examples, whose lines
// are indented or have columns.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			var prose []string
			for line := range strings.Lines(paragraph) {
				if !strings.HasPrefix(line, "  ") && !strings.Contains(strings.TrimSpace(line), "  ") {
					prose = append(prose, strings.Fields(line)...)
				}
			}
			begin := 0
			for i, word := range prose {
				if i == len(prose)-1 || strings.ContainsAny(word[len(word)-1:], ".?:") {
					if !yield(strings.Join(prose[begin:i+1], " ")) {
						return
					}
					begin = i + 1
				}
			}
		}
	}
}

// TestHelp checks that every command that a user sees explains itself in lines of bounded width,
// and ends with the table of exit statuses that scripts need.
func TestHelp(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Short == "" || !strings.Contains(c.Long, "\n\nEXIT STATUS\n  0 ok · 1 failed · 2 usage") {
			t.Errorf("%s: short help %q, long help:\n%s", c.CommandPath(), c.Short, c.Long)
		}
		for line := range strings.Lines(c.Long) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widestHelp {
				t.Errorf("%s: a line of %d columns, at most %d: %s", c.CommandPath(), n, widestHelp, line)
			}
		}
		// A word between backquotes becomes the name of the value.
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); strings.Contains(value, " ") {
				t.Errorf("%s --%s: the help calls its value %q", c.CommandPath(), f.Name, value)
			}
		})
		for sentence := range sentences(c.Long) {
			if n := len(strings.Fields(sentence)); n > longestSentence {
				t.Errorf("%s: a sentence of %d words, at most %d: %s", c.CommandPath(), n, longestSentence, sentence)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(a.rootCommand())
}
