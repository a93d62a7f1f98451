package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// namedStatement is a statement of named.conf: the first of a line, or behind another or a brace.
var namedStatement = pattern.New(`(?:^|[;{}])\s*([a-z][a-z-]+)\s+("[^"]*"|[^\s;{}"]+)\s*;`)

// named reads the statements of a line of named.conf.
func (r *reader) named(text string) (found bool) {
	text = text[:namedComment(text)]
	for {
		at := namedStatement.FindStringSubmatchIndex(text)
		if at == nil {
			return found
		}
		name, value := text[at[2]:at[3]], text[at[4]:at[5]]
		// Two words and a semicolon are in every configuration language: only statements that are known
		// count.
		if _, ok := bareNames()["named"][name]; ok {
			r.add("", "named:"+name, strings.Trim(value, `"`))
			found = true
		}
		text = text[at[1]-1:] // the next begins behind the same semicolon
	}
}

// namedComment returns where the comment of a line begins, or its length.
func namedComment(text string) int {
	quoted := false
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case !quoted && (text[i] == '#' || strings.HasPrefix(text[i:], "//")):
			return i
		}
	}
	return len(text)
}

// namedBlock begins a block that named.conf has.
var namedBlock = pattern.New(`(?m)^[ \t]*(?:options|view\s+\S+(?:\s+IN)?|zone\s+\S+(?:\s+IN)?)\s*\{`)

// blockComment is a comment of C. In front of it stands nothing, a blank or the end of a statement:
// /proc/sys/* in a sentence begins none.
var blockComment = pattern.New(`(?s)(^|[\s;{}])/\*.*?\*/`)

// withoutBlockComments takes the comments of several lines out of a text with named.conf in it. The
// lines keep their numbers.
func withoutBlockComments(text string) string {
	if !namedBlock.MatchString(text) {
		return text
	}
	return blockComment.ReplaceAllStringFunc(text, func(c string) string {
		return strings.Repeat("\n", strings.Count(c, "\n")) + " "
	})
}

// unboundLine is a line of unbound.conf(5).
var unboundLine = pattern.New(`^([a-z][a-z-]+):\s+("[^"]*"|\S+)(?:\s+#.*)?$`)

// unbound reads a line of unbound.conf. Many formats have a name and a colon: only options that are
// known count, and all of those but prefetch have a hyphen.
func (r *reader) unbound(text string) bool {
	m := unboundLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	if _, ok := bareNames()["unbound"][m[1]]; !ok {
		return false
	}
	r.add("", "unbound:"+m[1], strings.Trim(m[2], `"`))
	return true
}
