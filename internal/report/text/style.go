package text

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/base/visible"
)

// Style says how text may look. The zero value is plain.
type Style struct {
	Colour bool // ANSI colours; the caller has honoured NO_COLOR and asked whether the output is a terminal
	Width  int  // columns of the terminal; 0: a file or a pipe, whose tables have one line a row
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

// line prints one line, or several where the terminal is narrower. After an error it writes nothing
// more.
func (p *printer) line(format string, args ...any) {
	text := p.s.harmless(fmt.Sprintf(format, args...))
	for _, part := range p.s.fitted(text) {
		p.put(part)
	}
}

// exact prints one line as it is: a command or a line of a file, which the reader copies.
func (p *printer) exact(format string, args ...any) {
	p.put(p.s.harmless(fmt.Sprintf(format, args...)))
}

func (p *printer) put(line string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, line)
	}
}

// fitted breaks a line at blanks where the terminal ends. What follows is indented by two columns
// more.
func (s Style) fitted(line string) []string {
	if columns(line) <= s.lineWidth() {
		return []string{line}
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	words := strings.SplitAfter(line[len(indent):], " ")
	var lines []string
	for i, now := 0, indent; i < len(words); i++ {
		if now += words[i]; i+1 == len(words) ||
			columns(now)+columns(strings.TrimRight(words[i+1], " ")) > s.lineWidth() {
			lines = append(lines, strings.TrimRight(now, " "))
			now = indent + "  "
		}
	}
	return lines
}

// columns counts the runes of a text without what paint adds.
func columns(text string) int { return utf8.RuneCountInString(anyColour.ReplaceAllString(text, "")) }

// colours matches what paint writes, at the beginning and anywhere.
var (
	colours   = pattern.New("^\x1b\\[[0-9;]{0,5}m")
	anyColour = pattern.New("\x1b\\[[0-9;]{0,5}m")
)

// harmless returns a line of text that a terminal does not obey; the text may come from another
// host. All text passes through here: harmless replaces every line end and every character that a
// terminal would obey, except the colours of paint. Sequences of colour stay when colour is wanted.
func (s Style) harmless(text string) string {
	if !strings.ContainsFunc(text, visible.Hidden) {
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
		case visible.Hidden(r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// head prints the title of a part.
func (p *printer) head(title string) { p.line("%s", p.s.bold(title)) }

// textWidth is the width, in columns, of running text that goes to a file. Tables may be wider: a
// program that reads them, or a search, wants one line a row.
const textWidth = 100

// leastWidth is the width that the texts keep to; a narrower terminal breaks lines itself.
const leastWidth = 40

// textWidth returns the width of running text.
func (s Style) textWidth() int {
	return min(textWidth, s.lineWidth())
}

// lineWidth returns the width of the longest line.
func (s Style) lineWidth() int {
	if s.Width == 0 {
		return math.MaxInt
	}
	return max(s.Width, leastWidth)
}

// wrapped prints an indented paragraph.
func (p *printer) wrapped(indent, text string) {
	for _, line := range broken(text, p.s.textWidth()-utf8.RuneCountInString(indent)) {
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

// clean replaces what a terminal obeys, because names come from other hosts too. A name with an
// escape sequence could rewrite lines above it, clear the screen, or set the title of the window.
// Line ends and tabs stay: running text is wrapped anew, and tables replace them.
func clean(text string) string { return visible.Text(text) }

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
//
//go:noinline // 59 copies took 18 kB
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
// The last column only wraps when leastWrapped columns, and its longest word, fit what is left for
// it. On a terminal that is too narrow for the table, each row gets several lines (printFolded).
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
	last := len(widths) - 1
	longest := 0 // word of the last column
	for _, row := range t.rows {
		if p.s.Width > 0 && len(row) == len(widths) && last >= 0 {
			for word := range strings.FieldsSeq(row[last].text) {
				longest = max(longest, utf8.RuneCountInString(word))
			}
		}
	}
	left := p.s.textWidth() - utf8.RuneCountInString(indent)
	for i := range max(last, 0) {
		if widths[i] > 0 {
			left -= widths[i] + 2
		}
	}
	if last >= 0 && (!t.wrap || left < max(leastWrapped, longest)) && left+p.s.lineWidth()-p.s.textWidth() < widths[last] {
		t.printFolded(p, indent, head, widths)
		return
	}
	if line := t.layOut(head, widths); line != "" { // a table without rows has no head
		p.line("%s%s", indent, line)
	}
	for _, row := range t.rows {
		if !t.wrap || len(row) != len(widths) || row[last].text == "" || left < leastWrapped {
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

// leastWrapped is the narrowest last column that wraps: a long line, or a line of its own, is
// easier to read than a narrow column.
const leastWrapped = 30

// printFolded prints as many columns as fit the terminal, and what is left of each row below it,
// every value behind the heading of its column.
func (t *table) printFolded(p *printer, indent string, head []cell, widths []int) {
	room := p.s.lineWidth() - utf8.RuneCountInString(indent)
	shown, used := 1, widths[0]
	for shown < len(widths) && (widths[shown] == 0 || used+2+widths[shown] <= room) {
		if widths[shown] > 0 {
			used += 2 + widths[shown]
		}
		shown++
	}
	// A row whose shown columns are empty has only what stands below; an empty head has nothing.
	above := func(row []cell) {
		if line := t.layOut(row[:min(shown, len(row))], widths); line != "" {
			p.line("%s%s", indent, line)
		}
	}
	above(head)
	for _, row := range t.rows {
		above(row)
		hang := widths[0] + 2
		if hang > maxHang {
			name := row[0].text
			hang = len(name) - len(strings.TrimLeft(name, " ")) + 4 // names of a tree are indented themselves
		}
		var rest []cell
		for i := shown; i < len(row); i++ {
			if row[i].text == "" {
				continue
			}
			if len(rest) > 0 {
				rest = append(rest, cell{separator, p.s.dim})
			}
			if i < len(head) && head[i].text != "" {
				rest = append(rest, head[i])
			}
			rest = append(rest, row[i])
		}
		for _, line := range filled(rest, room-hang) {
			p.line("%s%s%s", indent, strings.Repeat(" ", hang), line)
		}
	}
}

// separator stands between two values of one row.
const separator = "·"

// filled sets texts one behind the other in lines of at most width columns, broken at blanks; a
// longer word gets a line of its own. A separator stays behind the word before it, or goes.
func filled(texts []cell, width int) []string {
	var lines []string
	used := width
	for i, c := range texts {
		words := strings.Fields(c.text)
		for j, word := range words {
			n := utf8.RuneCountInString(word)
			wanted := n
			if j == len(words)-1 && i+1 < len(texts) && texts[i+1].text == separator {
				wanted += 2
			}
			if c.paint != nil {
				word = c.paint(word)
			}
			if c.text == separator && used+1+n > width {
				continue // the end of the line separates as well
			}
			if used+1+wanted > width {
				lines, used = append(lines, word), n
				continue
			}
			lines[len(lines)-1] += " " + word
			used += 1 + n
		}
	}
	return lines
}

// maxHang is how far the further lines of a row are indented at most, to stand beside its first
// column.
const maxHang = 14

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
