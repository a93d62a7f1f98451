package top_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// vt is the part of a terminal (ECMA-48, xterm) that the live view needs. It records unknown
// sequences.
type vt struct {
	width, height int
	cells         [][]rune
	x, y          int
	alternate     bool
	hidden        bool
	coloured      bool
	wraps         bool
	modes         map[string]bool
	keyboard      int // levels of the protocol of kitty
	rest, unknown string
	heard         string // the last of what the program wrote, as a test that fails shows it
	last          rune
	top, bottom   int // scrolling region
	savedX        int
	savedY        int
}

func newVT(width, height int) *vt {
	v := &vt{modes: map[string]bool{}, wraps: true}
	v.resize(width, height)
	return v
}

func (v *vt) resize(width, height int) {
	cells := make([][]rune, height)
	for y := range cells {
		cells[y] = []rune(strings.Repeat(" ", width))
		if y < len(v.cells) {
			copy(cells[y], v.cells[y])
		}
	}
	v.cells, v.width, v.height, v.top, v.bottom = cells, width, height, 0, height-1
	v.x, v.y = min(v.x, width-1), min(v.y, height-1)
}

func (v *vt) String() string {
	var b strings.Builder
	for _, row := range v.cells {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return b.String()
}

func (v *vt) write(s string) {
	const enough = 64 << 10 // the frames of some minutes
	v.heard += s
	v.heard = v.heard[max(len(v.heard)-enough, 0):]
	v.rest += s
	for v.rest != "" {
		n := v.step(v.rest)
		if n == 0 {
			return // the end of a sequence is still to come
		}
		v.rest = v.rest[n:]
	}
}

// step executes the sequence at the beginning of s and returns its length, or 0 if it is
// incomplete.
func (v *vt) step(s string) int {
	switch {
	case strings.HasPrefix(s, "\x1b["):
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				v.csi(s[2:i], s[i])
				return i + 1
			}
		}
		return 0
	case strings.HasPrefix(s, "\x1b]"), strings.HasPrefix(s, "\x1bP"):
		end := strings.IndexAny(s, "\a")
		if st := strings.Index(s, "\x1b\\"); st >= 0 && (end < 0 || st < end) {
			return st + 2
		}
		return max(end+1, 0)
	case s[0] == 0x1b:
		if len(s) < 2 {
			return 0
		}
		v.escape(s[1])
		return 2
	}
	if !utf8.FullRuneInString(s) {
		return 0
	}
	r, n := utf8.DecodeRuneInString(s)
	switch r {
	case '\r':
		v.x = 0
	case '\n':
		v.index()
	case '\b':
		v.x = max(v.x-1, 0)
	case '\t':
		v.x = min((v.x/8+1)*8, v.width-1)
	case '\a':
	default:
		v.put(r)
	}
	return n
}

// escape executes a sequence of two characters.
func (v *vt) escape(c byte) {
	switch c {
	case '7':
		v.savedX, v.savedY = v.x, v.y
	case '8':
		v.x, v.y = min(v.savedX, v.width-1), min(v.savedY, v.height-1)
	case 'D':
		v.index()
	case 'E':
		v.x = 0
		v.index()
	case 'M': // reverse index: at the top of the region, its lines move down
		if v.y == v.top {
			v.scroll(-1)
		} else {
			v.y = max(v.y-1, 0)
		}
	case '=', '>':
	default:
		v.unknown += fmt.Sprintf("ESC %q ", c)
	}
}

// index moves the cursor down; at the bottom of the region, its lines move up.
func (v *vt) index() {
	if v.y == v.bottom {
		v.scroll(1)
	} else {
		v.y = min(v.y+1, v.height-1)
	}
}

func (v *vt) put(r rune) {
	if v.x >= v.width {
		v.x, v.y = 0, min(v.y+1, v.height-1)
	}
	v.cells[v.y][v.x], v.last = r, r
	v.x++
}

func (v *vt) scroll(n int) {
	blank := func() []rune { return []rune(strings.Repeat(" ", v.width)) }
	for range max(n, -n) {
		if n > 0 {
			copy(v.cells[v.top:v.bottom+1], v.cells[v.top+1:v.bottom+1])
			v.cells[v.bottom] = blank()
		} else {
			copy(v.cells[v.top+1:v.bottom+1], v.cells[v.top:v.bottom])
			v.cells[v.top] = blank()
		}
	}
}

func (v *vt) csi(parameters string, final byte) {
	private := strings.TrimLeft(parameters, "0123456789;:")
	if strings.HasPrefix(parameters, "?") || strings.HasPrefix(parameters, ">") || strings.HasPrefix(parameters, "<") ||
		strings.HasPrefix(parameters, "=") {
		switch body := parameters[1:]; {
		case parameters[0] == '?' && (final == 'h' || final == 'l'):
			for mode := range strings.SplitSeq(body, ";") {
				switch mode {
				case "25":
					v.hidden = final == 'l'
				case "1049", "47", "1047":
					v.alternate = final == 'h'
				case "7":
					v.wraps = final == 'h'
				default:
					v.modes[mode] = final == 'h'
				}
			}
		case final == 'u' && parameters[0] == '>':
			v.keyboard++
		case final == 'u' && parameters[0] == '<':
			v.keyboard--
		}
		return
	}
	arg := func(i, otherwise int) int {
		parts := strings.Split(parameters, ";")
		if i < len(parts) {
			if n, err := strconv.Atoi(parts[i]); err == nil {
				return n
			}
		}
		return otherwise
	}
	clear := func(y, from, to int) {
		for x := max(from, 0); x < min(to, v.width); x++ {
			v.cells[y][x] = ' '
		}
	}
	n := max(arg(0, 1), 1)
	x := min(v.x, v.width-1)
	switch final {
	case 'A':
		v.y = max(v.y-n, 0)
	case 'B', 'e':
		v.y = min(v.y+n, v.height-1)
	case 'C', 'a':
		v.x = min(v.x+n, v.width-1)
	case 'D':
		v.x = max(x-n, 0)
	case 'E':
		v.x, v.y = 0, min(v.y+n, v.height-1)
	case 'F':
		v.x, v.y = 0, max(v.y-n, 0)
	case 'G', '`':
		v.x = min(n-1, v.width-1)
	case 'd':
		v.y = min(n-1, v.height-1)
	case 'H', 'f':
		v.y, v.x = min(n, v.height)-1, min(max(arg(1, 1), 1), v.width)-1
	case 'I':
		v.x = min((v.x/8+n)*8, v.width-1)
	case 'Z':
		v.x = max((x-1)/8-n+1, 0) * 8
	case 'J':
		switch arg(0, 0) {
		case 0:
			clear(v.y, x, v.width)
			for y := v.y + 1; y < v.height; y++ {
				clear(y, 0, v.width)
			}
		case 1:
			clear(v.y, 0, x+1)
			for y := range v.y {
				clear(y, 0, v.width)
			}
		default:
			for y := range v.height {
				clear(y, 0, v.width)
			}
		}
	case 'K':
		switch arg(0, 0) {
		case 0:
			clear(v.y, x, v.width)
		case 1:
			clear(v.y, 0, x+1)
		default:
			clear(v.y, 0, v.width)
		}
	case 'X':
		clear(v.y, x, x+n)
	case 'P':
		row := v.cells[v.y]
		copy(row[x:], row[min(x+n, v.width):])
		clear(v.y, v.width-n, v.width)
	case '@':
		row := v.cells[v.y]
		copy(row[min(x+n, v.width):], row[x:])
		clear(v.y, x, x+n)
	case 'L', 'M':
		top := v.top
		v.top = v.y
		v.scroll(map[byte]int{'L': -n, 'M': n}[final])
		v.top = top
	case 'S':
		v.scroll(n)
	case 'T':
		v.scroll(-n)
	case 'b':
		for range n {
			v.put(v.last)
		}
	case 'r':
		v.top, v.bottom = arg(0, 1)-1, min(arg(1, v.height), v.height)-1
		v.x, v.y = 0, 0
	case 'm':
		for code := range strings.SplitSeq(parameters, ";") {
			if c, _ := strconv.Atoi(code); c >= 30 && c <= 38 || c >= 40 && c <= 48 || c >= 90 {
				v.coloured = true
			}
		}
	default:
		if private == "" || final != 'p' && final != 'q' {
			v.unknown += fmt.Sprintf("CSI %q %q ", parameters, final)
		}
	}
}

// TestReverseIndex checks that the lines of a region move where the cursor cannot: the renderer
// scrolls a page by one line that way.
func TestReverseIndex(t *testing.T) {
	v := newVT(3, 4)
	v.write("a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[2H\x1bM")
	if got, want := v.String(), "a\n\nb\nd\n"; got != want {
		t.Errorf("down: %q, want %q", got, want)
	}
	v.write("\x1b[3H\x1bD")
	if got, want := v.String(), "a\nb\n\nd\n"; got != want {
		t.Errorf("and up again: %q, want %q", got, want)
	}
}
