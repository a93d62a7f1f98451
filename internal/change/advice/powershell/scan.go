package powershell

import (
	"slices"
	"strings"
)

// scan finds the end of each string, bracket and comment of a text in one pass. A string that does
// not end on its line is none, because pages have apostrophes.
func (p *program) scan() {
	t := p.text
	p.ends = make([]int32, len(t)+1)
	var open []int
	var lost [256]int // the line on which quotes of a kind have no end any more
	line := 1
	endless := map[string]bool{} // texts over lines and comments that have no end behind here
	over := func(from int, end string) int {
		at := -1
		if !endless[end] {
			at = strings.Index(t[from:], end)
		}
		if endless[end] = at < 0; at < 0 {
			return 0
		}
		for k := from; k < from+at+len(end); k++ {
			if t[k] == '\n' {
				p.lines = append(p.lines, k)
				line++
			}
		}
		return from + at + len(end) - 1
	}
	for i := 0; i < len(t); i++ {
		c := t[i]
		switch {
		case c == '\n':
			p.lines = append(p.lines, i)
			line++
		case c == '`':
			if i++; i < len(t) && t[i] == '\n' {
				p.lines = append(p.lines, i)
				line++
			}
		case c == '@' && i+2 < len(t) && (t[i+1] == '"' || t[i+1] == '\'') && restIsBlank(t, i+2):
			if end := over(i, "\n"+t[i+1:i+2]+"@"); end > 0 {
				p.ends[i] = int32(end)
				i = end
			}
		case (c == '"' || c == '\'') && lost[c] != line && !(i > 0 && c == '\'' && isLetter(t[i-1])):
			if end := stringEnd(t, i, false); end > 0 {
				p.ends[i] = int32(end)
				i = end
			} else {
				lost[c] = line
			}
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;{}()|", t[i-1]) >= 0):
			end := strings.IndexByte(t[i:], '\n')
			if end < 0 {
				end = len(t) - i
			}
			p.ends[i] = int32(i + end - 1)
			i += end - 1
		case c == '<' && strings.HasPrefix(t[i:], "<#"):
			if end := over(i, "#>"); end > 0 {
				p.ends[i] = int32(end)
				i = end
			}
		case c == '{' || c == '(' || c == '[':
			open = append(open, i)
		case c == '}' || c == ')' || c == ']':
			other := map[byte]byte{'}': '{', ')': '(', ']': '['}[c]
			const near = 4 // brackets that a page has opened too many
			for k := len(open) - 1; k >= max(0, len(open)-near); k-- {
				if t[open[k]] == other {
					p.ends[open[k]] = int32(i)
					open = open[:k]
					break
				}
			}
		}
	}
	for _, at := range open { // an excerpt ends within its blocks
		if t[at] == '{' {
			p.ends[at] = int32(len(t))
		}
	}
}

// restIsBlank reports whether a line ends at a place, so that a text over lines begins.
func restIsBlank(t string, from int) bool {
	for from < len(t) && (t[from] == ' ' || t[from] == '\t' || t[from] == '\r') {
		from++
	}
	return from < len(t) && t[from] == '\n'
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isName(c byte) bool   { return isLetter(c) || c >= '0' && c <= '9' || c == '_' }

// longestInside are the bytes of $(…) within a string.
const longestInside = 256

// stringEnd returns where a string ends; 0 if its line ends first. Only one that is not inside
// another has $(…).
func stringEnd(t string, from int, inside bool) int {
	quote, last := t[from], len(t)
	if inside {
		last = min(last, from+longestInside)
	}
	for i := from + 1; i < last && t[i] != '\n'; i++ {
		switch {
		case quote == '"' && t[i] == '`':
			i++
			if i < len(t) && t[i] == '\n' {
				return 0
			}
		case quote == '"' && !inside && strings.HasPrefix(t[i:], "$("):
			if end := substitutionEnd(t, i+1); end > 0 {
				i = end
			}
		case t[i] == quote && i+1 < len(t) && t[i+1] == quote:
			i++
		case t[i] == quote:
			return i
		}
	}
	return 0
}

// substitutionEnd returns where the brackets of $(…) within a string end.
func substitutionEnd(t string, from int) int {
	open := 0
	for i := from; i < min(len(t), from+longestInside) && t[i] != '\n'; i++ {
		switch t[i] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return i
			}
		case '"', '\'':
			end := stringEnd(t, i, true)
			if end == 0 {
				return 0
			}
			i = end
		}
	}
	return 0
}

// lineAt returns the number of the line of a place.
func (p *program) lineAt(at int) int {
	n, _ := slices.BinarySearch(p.lines, at)
	return n + 1
}
