package page

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// markup is HTML written in this package. Constants convert to markup implicitly and strings do
// not, so that text from a host is never taken for HTML.
type markup string

// sheet is a page as it grows. The first error stays and ends the page: it is an error in a layout,
// not in the document.
type sheet struct {
	b   bytes.Buffer
	err error
}

// put adds a layout with a value at each {}. A layout neither begins nor ends within a tag. put
// escapes a value for its place: the text between tags, or an attribute in double quotes that [fit]
// knows. A {} in any other place is an error. Elements with code (style) get layouts of their own,
// without values.
func (s *sheet) put(layout markup, values ...string) {
	if s.err != nil {
		return
	}
	parts := strings.Split(string(layout), "{}")
	if len(parts) != len(values)+1 {
		s.err = fmt.Errorf("fill layout %q: it has %d places for %d values", layout, len(parts)-1, len(values))
		return
	}
	if len(values) > 0 && (strings.Contains(string(layout), "<style") || strings.Contains(string(layout), "<script")) {
		s.err = fmt.Errorf("fill layout %q: values and code stand together", layout)
		return
	}
	var where place
	for i, part := range parts {
		where.pass(part)
		s.b.WriteString(part)
		if i == len(values) {
			break
		}
		fitted, ok := fit(where.attribute, values[i])
		if !ok || where.tag && where.attribute == "" {
			s.err = fmt.Errorf("fill layout %q: no value can stand after %q", layout, part)
			return
		}
		s.b.WriteString(fitted)
	}
	if where.tag {
		s.err = fmt.Errorf("fill layout %q: it ends within a tag", layout)
	}
}

// with adds a layout with one value; for an empty value it adds nothing.
func (s *sheet) with(layout markup, value string) {
	if value != "" {
		s.put(layout, value)
	}
}

// place is the position in a layout where a value would be written.
type place struct {
	tag       bool   // between < and >
	quoted    bool   // in the quotes of an attribute
	attribute string // the attribute whose quotes are open; empty: none
	word      []byte // the last word within a tag, which may be the name of an attribute
}

// pass moves the place over markup.
func (p *place) pass(m string) {
	for _, c := range []byte(m) {
		switch {
		case !p.tag:
			p.tag = c == '<'
		case p.quoted:
			if c == '"' {
				p.quoted, p.attribute = false, ""
			}
		case c == '"':
			p.quoted, p.attribute = true, strings.TrimSuffix(string(p.word), "=")
			p.word = nil
		case c == '>':
			*p = place{}
		case c == ' ' || c == '\n':
			p.word = nil
		default:
			p.word = append(p.word, c)
		}
	}
}

// fit escapes a value for the text between tags (no attribute) or for an attribute, and reports
// whether that attribute may have values: a handler, a style or an address may not. A value that is
// not a number becomes 0 where a number belongs: a misplaced mark is better than no page.
func fit(attribute, value string) (string, bool) {
	switch attribute {
	case "", "aria-label", "class", "text-anchor":
		// The plus is escaped for browsers that would read the page as UTF-7.
		return strings.ReplaceAll(html.EscapeString(value), "+", "&#43;"), true
	case "height", "width", "x", "x1", "x2", "y", "y1", "y2":
		if value == "" || strings.Trim(value, "-.0123456789%") != "" {
			value = "0"
		}
		return value, true
	case "d": // a path: letters, numbers, spaces
		if strings.ContainsFunc(value, func(r rune) bool { return r == '"' || r == '&' || r == '<' || r == '>' }) {
			value = ""
		}
		return value, true
	}
	return "", false
}
