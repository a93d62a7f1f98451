package top_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/top"
)

// pty is the terminal of a test: its screen and its keyboard.
type pty struct {
	t      *testing.T
	person *os.File // our end
	tty    *os.File // the program's end
	before unix.Termios
	cmd    *exec.Cmd
	stderr strings.Builder

	mu  sync.Mutex
	see *vt
	eof chan struct{}
}

// start runs the screen at a terminal of this size, in columns and lines.
func start(t *testing.T, mode string, width, height int, env ...string) *pty {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, person: os.NewFile(uintptr(fd), "ptmx"), see: newVT(width, height), eof: make(chan struct{})}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if p.tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	p.resize(width, height)
	p.before = p.termios()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.tty, p.tty, &p.stderr
	p.cmd.Env = append(os.Environ(),
		append([]string{"LINERATE_TEST_SCREEN=" + mode, "LINERATE_STATE=" + t.TempDir(), "TERM=xterm-256color",
			"SSH_TTY=/dev/pts/0"}, env...)...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.look()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // most often it has ended
		p.tty.Close()
		p.person.Close()
		<-p.eof
	})
	return p
}

// look returns what the screen shows.
func (p *pty) look() {
	defer close(p.eof)
	buf := make([]byte, 32<<10)
	for {
		n, err := p.person.Read(buf)
		p.mu.Lock()
		p.see.write(string(buf[:n]))
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *pty) termios() unix.Termios {
	p.t.Helper()
	s, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *s
}

func (p *pty) resize(width, height int) {
	p.t.Helper()
	p.mu.Lock()
	p.see.resize(width, height)
	p.mu.Unlock()
	if err := unix.IoctlSetWinsize(int(p.tty.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: uint16(height), Col: uint16(width)}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pty) press(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.person, keys); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pty) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.see.String()
}

// await polls until the screen is as it should be; its bound only ends a test that hangs.
func (p *pty) await(what string, right func(screen string) bool) string {
	p.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		s := p.screen()
		if right(s) {
			return s
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: did not appear; standard error:\n%s\nthe screen shows\n%s", what, p.stderr.String(), s)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func has(words ...string) func(string) bool {
	return func(screen string) bool {
		for _, w := range words {
			if !strings.Contains(screen, w) {
				return false
			}
		}
		return true
	}
}

// ended waits for the program to end and checks that the terminal is as it was.
func (p *pty) ended(status int) {
	p.t.Helper()
	err := p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Errorf("exit status %d (%v), want %d; standard error:\n%s", got, err, status, p.stderr.String())
	}
	if after := p.termios(); after != p.before {
		p.t.Errorf("the terminal's settings are %+v, were %+v", after, p.before)
	}
	p.await("the terminal as it was", func(string) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.see.alternate && !p.see.hidden && p.see.wraps
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for mode, on := range p.see.modes {
		if on {
			p.t.Errorf("mode %s of the terminal is still on", mode)
		}
	}
	if p.see.keyboard != 0 {
		p.t.Errorf("%d levels of keyboard protocol are left", p.see.keyboard)
	}
	if p.see.unknown != "" {
		p.t.Errorf("the terminal was sent sequences that it does not know: %q", p.see.unknown)
	}
}

// TestTerminal checks that at a terminal the live view of this host takes the screen, obeys keys,
// follows the size, and restores the terminal.
func TestTerminal(t *testing.T) {
	t.Parallel()
	p := start(t, "live", 80, 24)
	p.await("the first rates", has("linerate top", "INTERFACE", "IN b/s", "CPU ", "TCP ", "q quit", "lo "))
	if !p.see.alternate || !p.see.hidden {
		t.Error("the program switched neither to the alternate screen nor to a hidden cursor")
	}
	p.resize(60, 16)
	p.await("the smaller screen",
		func(s string) bool { return has("INTERFACE", "DROP/s")(s) && !strings.Contains(s, "ERR/s") })
	p.resize(130, 40)
	p.await("the larger screen", has("CURVE", "ERR/s", "FINDINGS", "CHANGES"))
	p.press("?")
	p.await("the help", has("KEYS", "COLUMNS"))
	p.press("\x1b")
	p.await("the overview", has("FINDINGS"))
	p.press("/lo\r")
	p.await("the filter", has("filter /lo"))
	p.press("\r")
	p.await("the interface", has("LOST", "COUNTERS THAT MOVED"))
	p.press("\x1b[B\x1b[A ")
	p.await("a pause", has("PAUSED"))
	p.press("\x7fc")
	p.await("the processors", has("SOFTIRQ", "USER"))
	p.press("\x1a") // no shell could continue it: it stays
	p.press("q")
	p.ended(0)
}

// TestLateSize delivers a size that the terminal no longer has, as a busy host does: the size at
// the start, read before a resize and sent after it.
func TestLateSize(t *testing.T) {
	p := start(t, "live", 130, 40)
	got := top.PresentSize(top.Terminal{Out: p.tty})(nil, tea.WindowSizeMsg{Width: 80, Height: 24})
	if want := (tea.WindowSizeMsg{Width: 130, Height: 40}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	p.await("the screen", has("q quit"))
	p.press("q")
	p.ended(0)
}

// TestTerminalIsGivenBack checks that the program also restores the terminal when a signal ends it,
// or a fault of its own.
func TestTerminalIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		name, mode string
		end        func(*pty)
		status     int
		says       string
	}{
		{"ctrl-c", "live", func(p *pty) { p.press("\x03") }, 0, ""},
		{"terminated", "live", func(p *pty) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, 0, ""},
		{"panic", "panic", func(p *pty) { p.press("\r") }, 1, "drawn wrong"},
		{"panic behind it", "panic-behind", func(p *pty) { p.press("\r") }, 2, "read wrong"},
		{"failure behind it", "failure", func(p *pty) { p.press("\r") }, 1, "ended with: read nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, c.mode, 80, 24, "NO_COLOR=1")
			p.await("the screen", has("INTERFACE", "q quit"))
			if p.see.coloured {
				t.Error("the screen has colours, although NO_COLOR is set")
			}
			c.end(p)
			p.ended(c.status)
			if !strings.Contains(p.stderr.String(), c.says) {
				t.Errorf("standard error lacks %q:\n%s", c.says, p.stderr.String())
			}
		})
	}
}

// TestTerminalThatTakesNothing checks that a terminal which accepts no output, as at the end of a
// hung connection, does not keep the program from ending. The program waits seconds for it.
func TestTerminalThatTakesNothing(t *testing.T) {
	testenv.Need(t, testenv.Long)
	t.Parallel()
	p := start(t, "live", 120, 40)
	p.await("the screen", has("INTERFACE", "q quit"))
	p.mu.Lock() // the person looks away
	for n, end := 0, time.Now().Add(3*time.Minute); !p.writing(); n++ {
		if n%20 == 0 && n < 2000 {
			p.press("c") // another page fills it sooner
		}
		if time.Now().After(end) {
			p.mu.Unlock()
			t.Fatal("the terminal was never full")
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	err := p.cmd.Wait()
	p.mu.Unlock()
	if after := p.termios(); after != p.before {
		t.Errorf("the terminal's settings are %+v, were %+v", after, p.before)
	}
	if p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(p.stderr.String(), "the terminal takes nothing more") {
		t.Errorf("%v; standard error:\n%s", err, p.stderr.String())
	}
}

// writing reports whether a thread of the program blocks in a write to its terminal.
func (p *pty) writing() bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", p.cmd.Process.Pid))
	for _, name := range tasks {
		if b, err := os.ReadFile(name); err == nil &&
			strings.HasPrefix(string(b), fmt.Sprintf("%d 0x1 ", unix.SYS_WRITE)) {
			return true
		}
	}
	return false
}

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
