package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// fileInString is a string of bash whose escapes are those of C, with the ends of lines in it:
// $'[FairQueueing]\nParent=root'.
var fileInString = pattern.New(`\$'((?:[^'\\]|\\.)*\\n(?:[^'\\]|\\.)*)'`)

var escapesOfC = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, " ", `\'`, "'", `\"`, `"`)

// filesInStrings writes the lines of such a string behind the line that has it. They keep its
// number.
func filesInStrings(text string, lines []line) []line {
	if !strings.Contains(text, "$'") {
		return lines
	}
	out := make([]line, 0, len(lines))
	for _, l := range lines {
		all := fileInString.FindAllStringSubmatch(l.text, -1)
		if all == nil || isComment(l.text) {
			out = append(out, l)
			continue
		}
		command := l
		command.text = fileInString.ReplaceAllString(l.text, "''")
		out = append(out, command)
		for _, m := range all {
			content := escapesOfC.Replace(m[1])
			ini := false
			for _, part := range strings.Split(content, "\n") {
				if part = strings.TrimSpace(part); part != "" {
					ini = ini || sectionLine.MatchString(part)
					out = append(out, line{number: l.number, text: part})
				}
			}
			if ini { // what follows is no longer in its last section
				out = append(out, line{number: l.number, text: "[string]"})
			}
		}
	}
	return out
}
