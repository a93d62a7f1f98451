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
// Only the sixteen basic colours and bold and dim are used: their shades are chosen by the reader's
// terminal, so that they suit a light and a dark one.
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

// printer writes lines and remembers the first error, so that renderers read as what they print.
//
// A closed pipe (`linerate history | head`) ends the text at its next line.
type printer struct {
	w   io.Writer
	s   Style
	err error
}

// line prints one line. After an error nothing more is written.
//
// Whatever the arguments hold, it stays one line and commands the terminal nothing but our own
// colours: this is the one place that all text passes.
func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, p.s.harmless(fmt.Sprintf(format, args...)))
	}
}

// colours is what paint writes.
var colours = regexp.MustCompile("^\x1b\\[[0-9;]{0,5}m")

// harmless makes a line of text that may hold what another host has sent. Sequences of colour stay
// when colour is wanted.
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

// dangerous tells a rune that a terminal obeys: control characters, ends of lines by other names,
// and those that turn the direction of what follows, so that a name reads as another.
func dangerous(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// head prints the title of a part.
func (p *printer) head(title string) { p.line("%s", p.s.bold(title)) }

// textWidth is the column before which running text is broken. Tables may be wider: a broken row is
// worse than a long one.
const textWidth = 100

// wrapped prints a paragraph, indented, broken at blanks.
func (p *printer) wrapped(indent, text string) {
	for _, line := range broken(text, textWidth-utf8.RuneCountInString(indent)) {
		p.line("%s%s", indent, line)
	}
}

// broken cuts text at blanks into lines of at most width columns; a longer word gets a line of its
// own.
//
// A rune counts as one column; texts of ours have no wide ones, and names from a host that have
// come out a little ragged.
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

// clean replaces control characters: texts and names come from other hosts too, and a terminal
// obeys what it is sent.
//
// An interface or host name with an escape sequence in it could otherwise rewrite lines above it,
// clear the screen, or set the title of the window. Line ends and tabs stay, since running text is
// broken anew and tables replace them.
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

// newTable begins a table; a heading that starts with '>' makes its column align to the right. No
// headings at all are fine too.
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

// print writes the table, every line behind the indent, columns two blanks apart, without blanks at
// line ends. Columns that no row fills are left out, and so is the heading when it is empty.
//
// A last column that wraps needs at least 30 columns; below that a long line is easier to read than
// a ribbon.
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

// layOut aligns one row. Blanks are owed until a visible text follows, so no line ends in any.
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
