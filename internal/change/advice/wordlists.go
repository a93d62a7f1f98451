package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// A program gives the words of a command in a list of strings, which may go on for several lines
// and may choose between two of them:
//
//	run(["netsh", "int", "tcp", "set", "global",
//	     "rss=enabled" if on else "rss=disabled"])

var (
	// listHead is the first word of such a list.
	listHead = pattern.New(`(?i)["'](?:netsh|reg|sysctl|ethtool)(?:\.exe)?["']\s*,`)
	// builder is a command that a program of Rust builds word by word.
	builder = pattern.New(`(?m)\bCommand::new\(\s*("(?:netsh|reg|sysctl|ethtool|ip|tc|powershell)(?:\.exe)?")\s*\)(.*)$`)
	// listGoesOn is a further line of it: strings, or its end.
	listGoesOn = pattern.New(`^(?:[rf]?["']|[\])}]|[\w.!()]+\s*\?\s*["'])`)
	// chosen is one of two strings, as Python writes it and as languages after C do.
	chosen = pattern.New(`("[^"]*"|'[^']*')\s+if\s+[^,"'\])]+\selse\s+("[^"]*"|'[^']*')|` +
		`[\w.!()=&| ]+\?\s*("[^"]*"|'[^']*')\s*:\s*("[^"]*"|'[^']*')`)
	// argumentList is a list of words on one line; the options of a call may follow.
	argumentList = pattern.New(`(?i)(?:[\[({]|-argumentlist\s)\s*` +
		`(?:"[^"]*"|'[^']*')(?:\s*,\s*(?:"[^"]*"|'[^']*')){2,}\s*[\])}]?`)
	// assembled is a word of strings with a variable between them.
	assembled = pattern.New(`"\s*\+\s*([\w.]+)\s*\+\s*"`)
)

// joinLists puts each list of words on one line, and one with a choice on a line for each of both.
func joinLists(text string, lines []line) []line {
	const most = 12 // lines of a list
	if !listHead.MatchString(text) && !builder.MatchString(text) {
		return lines
	}
	out := make([]line, 0, len(lines))
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if builder.MatchString(l.text) {
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1].text, ".arg") {
				i++
				l.text += lines[i].text
			}
			m := builder.FindStringSubmatch(l.text)
			words := append([]string{m[1]}, quotedText.FindAllString(m[2], -1)...)
			l.text = "[" + strings.Join(words, ", ") + "]"
		} else if at := listHead.FindStringSubmatchIndex(l.text); at != nil {
			last := i
			for strings.HasSuffix(l.text, ",") && last+1 < min(len(lines), i+most) &&
				listGoesOn.MatchString(lines[last+1].text) {
				last++
				l.text += " " + lines[last].text
			}
			if at[0] == 0 && last > i {
				l.text = "[" + l.text
			}
			i = last
			l.text = assembled.ReplaceAllString(l.text, "$${$1}")
			if m := chosen.FindStringSubmatch(l.text); m != nil {
				head, rest, _ := strings.Cut(l.text, m[0])
				out = append(out, line{l.number, head + m[1] + m[3] + rest, l.indent})
				l.text = head + m[2] + m[4] + rest
			}
		}
		out = append(out, l)
	}
	return out
}

// wordsOf returns the words of a list as a line of a shell.
func wordsOf(list string) string {
	var words []string
	for _, m := range quotedText.FindAllStringSubmatch(list, -1) {
		w := m[1] + m[2]
		if strings.Contains(w, " ") && isKey(w) {
			w = `"` + strings.ReplaceAll(w, `\\`, `\`) + `"`
		}
		words = append(words, w)
	}
	return withProgram(strings.Join(words, " "))
}
