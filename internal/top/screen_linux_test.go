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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

	mu   sync.Mutex
	see  *vt
	took atomic.Bool // look has read something that it has not shown yet
	eof  chan struct{}
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
		p.took.Store(true)
		p.mu.Lock()
		p.see.write(string(buf[:n]))
		p.took.Store(false)
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

// resize gives the terminal another size. late is what it reads then of what the program wrote
// before it knew.
func (p *pty) resize(width, height int, late ...string) {
	p.t.Helper()
	p.mu.Lock()
	p.see.resize(width, height)
	for _, sequence := range late {
		p.see.write(sequence)
	}
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

// state returns what the program has made of the terminal.
func (p *pty) state() (alternate, hidden, coloured bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.see.alternate, p.see.hidden, p.see.coloured
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
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("%s: did not appear; standard error:\n%s\nthe screen shows\n%s\nthe program wrote last\n%q", what,
				p.stderr.String(), s, p.see.heard)
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
	if alternate, hidden, _ := p.state(); !alternate || !hidden {
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

// TestLateMargins resizes a terminal that then reads the end of a frame for its earlier size, as a
// busy one does. The renderer ends the scrolling of a region with margins at the first and the last
// line that it knows, and these stay in force.
func TestLateMargins(t *testing.T) {
	p := start(t, "live", 80, 24)
	p.await("the screen", has("q quit"))
	p.resize(130, 40, "\x1b[1;24r")
	p.await("the larger screen", has("CURVE", "ERR/s", "FINDINGS", "CHANGES"))
	p.press("?")
	p.await("the help", has("linerate top", "KEYS", "COLUMNS"))
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
			if _, _, coloured := p.state(); coloured {
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
	for n, end := 0, time.Now().Add(3*time.Minute); !p.full() || !p.writing(); n++ {
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

// full reports whether the terminal has no room, and will have none: our end reads nothing more
// while this test holds the lock.
func (p *pty) full() bool {
	fds := []unix.PollFd{{Fd: int32(p.tty.Fd()), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return p.took.Load() && n == 0 && err == nil
}

// writing reports whether a thread of the program is in a write to its terminal. It may be one that
// has ended the write and stands still.
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
