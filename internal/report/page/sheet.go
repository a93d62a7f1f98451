package page

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// markup is HTML written in this package. Constants become markup by themselves and strings do not,
// so that what a host said cannot be taken for it.
type markup string

// sheet is a page as it grows. The first mistake in a layout stays and ends the page, as a mistake
// there is one of ours and not of the document.
type sheet struct {
	b   bytes.Buffer
	err error
}

// put adds a layout with a value at each {}. A layout is whole: it neither begins nor ends within a
// tag. A value is escaped for the place where it stands, which is the text between tags or an
// attribute in double quotes that [fit] knows; everywhere else a {} is a mistake. Elements whose
// text is no text for people (style) get layouts of their own, without values.
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

// with adds a layout when its only value is there, and nothing when it is empty.
func (s *sheet) with(layout markup, value string) {
	if value != "" {
		s.put(layout, value)
	}
}

// place is where in a layout a value would stand.
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

// fit escapes a value for the text between tags (no attribute) or for an attribute, and says
// whether values may stand in that one at all: never in a handler, a style or an address. What is
// no number is 0 where a number belongs, since one mark out of its place says more than no page.
func fit(attribute, value string) (string, bool) {
	switch attribute {
	case "", "aria-label", "class", "text-anchor":
		// The plus is for readers that would take the page for UTF-7.
		return strings.ReplaceAll(html.EscapeString(value), "+", "&#43;"), true
	case "height", "width", "x", "x1", "x2", "y", "y1", "y2":
		if value == "" || strings.Trim(value, "-.0123456789%") != "" {
			value = "0"
		}
		return value, true
	case "d": // a path of ours: letters, numbers, spaces
		if strings.ContainsFunc(value, func(r rune) bool { return r == '"' || r == '&' || r == '<' || r == '>' }) {
			value = ""
		}
		return value, true
	}
	return "", false
}
