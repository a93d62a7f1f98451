package visible

import (
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether a rune is obeyed instead of shown. Line ends and tabs are hidden too;
// [Text] keeps them.
func Hidden(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return true
	case r == 0x2028 || r == 0x2029: // line and paragraph separator
		return true
	case r == 0x200b || r == 0x2060 || r == 0xfeff: // without width
		return true
	}
	return r >= 0xfff9 && r <= 0xfffb || r >= 0xe0000 && r <= 0xe007f // annotations, tags
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
