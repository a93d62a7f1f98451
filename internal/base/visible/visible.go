package visible

import (
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// hidden are the properties of runes without a form: controls (Cc), format characters (Cf, with the
// marks of direction), what is ignored by default (Default_Ignorable_Code_Point, which is made of
// Cf, variation selectors and the rest here), and line and paragraph separators.
var hidden = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Bidi_Control, unicode.Variation_Selector,
	unicode.Other_Default_Ignorable_Code_Point, unicode.Zl, unicode.Zp}

// needed reports whether a rune with one of these properties is needed to write a language or an
// emoji, or has a form of its own.
func needed(r rune) bool {
	switch {
	case r == 0x200c || r == 0x200d: // joiners
		return true
	case r >= 0xfe00 && r <= 0xfe0f: // text or emoji, and forms of mathematical signs
		return true
	case r >= 0x180b && r <= 0x180d || r == 0x180f: // letters of Mongolian
		return true
	}
	return unicode.Is(unicode.Prepended_Concatenation_Mark, r) // signs around numbers, which are seen
}

// Hidden reports whether a rune is obeyed or ignored instead of shown. Line ends and tabs are
// hidden too; [Text] keeps them.
func Hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.IsOneOf(hidden, r) && !needed(r)
}

// Text returns text with U+FFFD in place of each hidden rune; line ends and tabs stay.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !Hidden(r) {
			return r // strings.Map writes what is no UTF-8 as U+FFFD
		}
		return unicode.ReplacementChar
	}, text)
}

// Line returns text for one line: as Text, with a blank for each line end and tab.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case Hidden(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Writer passes text on as Text returns it. It is safe for concurrent use as far as the writer
// below is.
type Writer struct {
	below   io.Writer
	colours bool

	mu   sync.Mutex
	rest []byte // the beginning of a rune or of a sequence, whose end has not come yet
}

// NewWriter returns a Writer. With colours it passes sequences that only change the look of text
// (ECMA-48 SGR, ESC [ … m).
func NewWriter(below io.Writer, colours bool) *Writer { return &Writer{below: below, colours: colours} }

// Below returns the writer that receives the text, for what a terminal shall obey.
func (w *Writer) Below() io.Writer { return w.below }

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, b...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if n := w.colour(text); n > 0 {
			out, text = append(out, text[:n]...), text[n:]
			continue
		}
		if !utf8.FullRune(text) {
			break
		}
		r, size := utf8.DecodeRune(text)
		if Hidden(r) && r != '\n' && r != '\t' {
			r = unicode.ReplacementChar
		}
		out, text = utf8.AppendRune(out, r), text[size:]
	}
	w.rest = append([]byte(nil), text...)
	if _, err := w.below.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// colour returns the length of a sequence of colour at the beginning of text, or 0. The programs of
// this project write each in one piece.
func (w *Writer) colour(text []byte) int {
	const longest = 8
	if !w.colours || len(text) < 3 || text[0] != 0x1b || text[1] != '[' {
		return 0
	}
	for i, c := range text[2:min(len(text), longest)] {
		switch {
		case c == 'm':
			return i + 3
		case c != ';' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}
