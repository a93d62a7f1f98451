package top

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Look is the style of a piece of text. It carries no information of its own: what matters also has
// a mark in the text.
type Look uint8

// The looks; they can be joined.
const (
	Bold Look = 1 << iota
	Dim
	Reverse
	Red
	Yellow
	Green
)

// Span is text of one look.
type Span struct {
	Text string
	Look Look
}

// Line is one line of a screen. Each rune of it takes one column.
type Line []Span

// width returns the number of columns of a line.
func (l Line) width() int {
	n := 0
	for _, s := range l {
		n += utf8.RuneCountInString(s.Text)
	}
	return n
}

// String returns the text without styles and without blanks at the end.
func (l Line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// ANSI returns the line for a terminal (ECMA-48 SGR), with or without colours; bold, dim and
// reverse always stay.
func (l Line) ANSI(colour bool) string {
	var b strings.Builder
	for _, s := range l {
		codes := ""
		for _, c := range []struct {
			look   Look
			code   string
			colour bool
		}{{Bold, "1", false}, {Dim, "2", false}, {Reverse, "7", false}, {Red, "31", true}, {Yellow, "33", true},
			{Green, "32", true}} {
			if s.Look&c.look != 0 && (colour || !c.colour) {
				codes += ";" + c.code
			}
		}
		if codes == "" {
			b.WriteString(s.Text)
			continue
		}
		b.WriteString("\x1b[" + codes[1:] + "m" + s.Text + "\x1b[0m")
	}
	return b.String()
}

// add appends text of one look.
func (l Line) add(look Look, text string) Line { return append(l, Span{text, look}) }

// pad fills a line with blanks up to a column.
func (l Line) pad(column int, look Look) Line {
	if n := column - l.width(); n > 0 {
		return l.add(look, strings.Repeat(" ", n))
	}
	return l
}

// cut ends a line at a column, with the mark more where text is missing.
func (l Line) cut(width int, more string) Line {
	if l.width() <= width {
		return l
	}
	width = max(width, 0)
	keep := max(width-utf8.RuneCountInString(more), 0)
	var out Line
	for _, s := range l {
		runes := []rune(s.Text)
		if len(runes) > keep {
			out = out.add(s.Look, string(runes[:keep]))
			break
		}
		out, keep = append(out, s), keep-len(runes)
	}
	if n := width - out.width(); n > 0 {
		out = out.add(0, string([]rune(more)[:min(n, utf8.RuneCountInString(more))]))
	}
	return out
}

// glyphs are the characters that depend on what a terminal can show.
type glyphs struct {
	ascii  bool
	more   string
	dot    string
	bars   []rune // from empty to full
	up     string
	down   string
	pick   string
	alarm  string
	absent string
}

var (
	wide = glyphs{more: "…", dot: " · ", bars: []rune(" ▁▂▃▄▅▆▇█"), up: "▲", down: "▼", pick: ">", alarm: "!",
		absent: "-"}
	plain = glyphs{ascii: true, more: "~", dot: " | ", bars: []rune(" .:-=+*#%"), up: "^", down: "v", pick: ">",
		alarm: "!", absent: "-"}
)

// spelled are the ASCII spellings of characters in linerate's own texts.
var spelled = map[rune]string{'…': "...", '→': "->", '←': "<-", '–': "-", '—': "-", '·': "-", '×': "x", '≤': "<=",
	'≥': ">=", '≈': "~", 'µ': "u", '±': "+-", '−': "-", '“': `"`, '”': `"`, '’': "'"}

// inert returns text that takes one column per rune and that no terminal obeys: control characters,
// escape sequences, wide, joining and direction-changing characters become question marks.
func (g *glyphs) inert(text string) string {
	simple := true
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			simple = false
			break
		}
	}
	if simple {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch s, known := spelled[r]; {
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case known && g.ascii:
			b.WriteString(s)
		case known, !g.ascii && r >= 0xa1 && r <= 0xff && r != 0xad:
			b.WriteRune(r)
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// short returns a quantity in at most five characters: "0", "0.4", "12", "999", "1.23k", "12.3k",
// "941M". A negative quantity is 0.
func short(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x < 0:
		x = 0
	case x >= 1e21:
		return "huge"
	}
	if x == 0 {
		return "0"
	}
	if x < 0.05 {
		return "<0.1"
	}
	const prefixes = " kMGTPE"
	i := 0
	for i < len(prefixes)-1 && x >= 999.5 {
		x, i = x/1000, i+1
	}
	decimals := 0
	switch {
	case x < 9.995 && i > 0:
		decimals = 2
	case x < 9.95:
		decimals = 1
	case x < 99.95 && i > 0:
		decimals = 1
	}
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if i == 0 {
		return strings.TrimSuffix(s, ".0")
	}
	return s + prefixes[i:i+1]
}

// percent returns a share in at most five characters.
func percent(x float64) string {
	switch x *= 100; {
	case math.IsNaN(x):
		return "-"
	case x <= 0:
		return "0%"
	case x < 0.05:
		return "<0.1%"
	case x < 9.95:
		return strconv.FormatFloat(x, 'f', 1, 64) + "%"
	case x < 9999:
		return strconv.FormatFloat(x, 'f', 0, 64) + "%"
	}
	return ">999%"
}

// spark draws values as a row of bars of at most width columns, the newest at the right. The
// tallest bar is the largest of them.
func (g *glyphs) spark(values []float64, width int) string {
	if len(values) > width {
		values = values[len(values)-max(width, 0):]
	}
	top := 0.0
	for _, v := range values {
		if v > top && !math.IsInf(v, 0) {
			top = v
		}
	}
	var b strings.Builder
	for _, v := range values {
		i := 0
		if v > 0 && top > 0 {
			// Every value above zero is visible.
			i = min(max(int(math.Ceil(v/top*float64(len(g.bars)-1))), 1), len(g.bars)-1)
		}
		b.WriteRune(g.bars[i])
	}
	return b.String()
}
