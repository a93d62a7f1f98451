package text

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style says how text may look. The zero value is plain.
type Style struct {
	Colour bool // ANSI colours; the caller has honoured NO_COLOR and asked whether the output is a terminal
}

// paint wraps text in one ANSI sequence (ECMA-48 SGR) when colour is wanted.
//
// It uses only the sixteen basic colours, bold and dim: the terminal chooses their shades, so they
// suit light and dark ones.
func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) bold(t string) string   { return s.paint("1", t) }
func (s Style) dim(t string) string    { return s.paint("2", t) }
func (s Style) red(t string) string    { return s.paint("31", t) }
func (s Style) green(t string) string  { return s.paint("32", t) }
func (s Style) yellow(t string) string { return s.paint("33", t) }

// printer writes lines and keeps the first error, so that renderers need no error handling. A
// closed pipe (`linerate history | head`) ends the text at its next line.
type printer struct {
	w   io.Writer
	s   Style
	err error
}

// line prints one line. After an error it writes nothing more.
//
// All text passes through here: line replaces every line end and every character in the arguments
// that a terminal would obey, except the colours of paint.
func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, p.s.harmless(fmt.Sprintf(format, args...)))
	}
}

// colours matches what paint writes.
var colours = regexp.MustCompile("^\x1b\\[[0-9;]{0,5}m")

// harmless returns a line of text that a terminal does not obey; the text may come from another
// host. Sequences of colour stay when colour is wanted.
func (s Style) harmless(text string) string {
	if !strings.ContainsFunc(text, dangerous) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		if s.Colour {
			if own := colours.FindString(text); own != "" {
				b.WriteString(own)
				text = text[len(own):]
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case dangerous(r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// dangerous reports whether a terminal obeys a rune: control characters, Unicode line ends, and
// those that change the direction of text, so that a name reads as another one.
func dangerous(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// head prints the title of a part.
func (p *printer) head(title string) { p.line("%s", p.s.bold(title)) }

// textWidth is the width, in columns, of running text. Tables may be wider: a wrapped row is worse
// than a long one.
const textWidth = 100

// wrapped prints an indented paragraph.
func (p *printer) wrapped(indent, text string) {
	for _, line := range broken(text, textWidth-utf8.RuneCountInString(indent)) {
		p.line("%s%s", indent, line)
	}
}

// broken cuts text at blanks into lines of at most width columns; a longer word gets a line of its
// own. A rune counts as one column: linerate's texts have no wide runes, and a wide name from a
// host only makes an edge ragged.
func broken(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(clean(text)) {
		if n := len(lines); n > 0 && utf8.RuneCountInString(lines[n-1])+1+utf8.RuneCountInString(word) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// clean replaces control characters, because names come from other hosts too. A name with an escape
// sequence could rewrite lines above it, clear the screen, or set the title of the window. Line
// ends and tabs stay: running text is wrapped anew, and tables replace them.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if dangerous(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// table is text in columns. Cells are padded before they are painted, so colour does not disturb
// the columns.
type table struct {
	head  []string
	right map[int]bool // columns aligned to the right
	wrap  bool         // break the last column at blanks instead of running past the edge
	rows  [][]cell
}

// cell is one field of a table; paint may be nil.
type cell struct {
	text  string
	paint func(string) string
}

// newTable returns a table. A heading that starts with '>' aligns its column to the right. A table
// without headings prints none.
func newTable(head ...string) *table {
	t := &table{right: map[int]bool{}}
	for i, h := range head {
		if strings.HasPrefix(h, ">") {
			t.right[i], h = true, h[1:]
		}
		t.head = append(t.head, h)
	}
	return t
}

// row adds a row of strings, numbers or cells.
func (t *table) row(cells ...any) {
	row := make([]cell, len(cells))
	for i, c := range cells {
		if painted, ok := c.(cell); ok {
			row[i] = painted
		} else {
			row[i] = cell{text: fmt.Sprint(c)}
		}
		row[i].text = strings.NewReplacer("\n", " ", "\t", " ").Replace(clean(row[i].text))
	}
	t.rows = append(t.rows, row)
}

// print writes the table behind an indent, columns two blanks apart, without blanks at line ends.
// It leaves out columns that no row fills, and an empty heading.
//
// The last column only wraps when at least 30 columns are left for it: a long line is easier to
// read than a narrow column.
func (t *table) print(p *printer, indent string) {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	head := make([]cell, len(t.head))
	for i, h := range t.head {
		head[i] = cell{h, p.s.dim}
		if i < len(widths) && widths[i] > 0 {
			widths[i] = max(widths[i], utf8.RuneCountInString(h))
		}
	}
	if len(head) > 0 {
		p.line("%s%s", indent, t.layOut(head, widths))
	}
	last := len(widths) - 1
	left := textWidth - utf8.RuneCountInString(indent)
	for i := range max(last, 0) {
		if widths[i] > 0 {
			left -= widths[i] + 2
		}
	}
	for _, row := range t.rows {
		if !t.wrap || len(row) != len(widths) || row[last].text == "" || left < 30 {
			p.line("%s%s", indent, t.layOut(row, widths))
			continue
		}
		for n, part := range broken(row[last].text, left) {
			line := make([]cell, len(row))
			if n == 0 {
				copy(line, row)
			}
			line[last] = cell{part, row[last].paint}
			p.line("%s%s", indent, t.layOut(line, widths))
		}
	}
}

// layOut aligns one row. It writes blanks only when a visible text follows, so that no line ends in
// blanks.
func (t *table) layOut(row []cell, widths []int) string {
	var b strings.Builder
	owed := 0 // blanks before the next visible text
	for i, c := range row {
		if i >= len(widths) || widths[i] == 0 {
			continue
		}
		pad := widths[i] - utf8.RuneCountInString(c.text)
		if t.right[i] {
			owed += pad
			pad = 0
		}
		if c.text != "" {
			b.WriteString(strings.Repeat(" ", owed))
			owed = 0
			if c.paint != nil {
				b.WriteString(c.paint(c.text))
			} else {
				b.WriteString(c.text)
			}
		}
		owed += pad + 2
	}
	return b.String()
}
