package journal_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/journal"
)

// newTerminal makes a terminal of the test's own, and returns the end that the user would look at.
func newTerminal(t *testing.T) (person *os.File, path string) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	person = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return person, fmt.Sprintf("/dev/pts/%d", number)
}

// changed is the time of the last change of state of a file.
func changed(t *testing.T, path string) unix.Timespec {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Ctim
}

// hold stops a terminal's output, as Ctrl-S does.
func hold(t *testing.T, path string) {
	t.Helper()
	program, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	if err := unix.IoctlSetInt(int(program.Fd()), unix.TCXONC, unix.TCOOFF); err != nil {
		t.Fatal(err)
	}
}

// TestRollbackIsTold: when a guard takes trials back it says so at the terminal where they were
// made, and to the next command; never at a terminal that is another program's by now. One
// that takes no output holds nothing up.
func TestRollbackIsTold(t *testing.T) {
	const line = "change 0001 of link:eth0/mtu went back from 9000 to 1500: undone by guard: writer died"
	for _, name := range []string{"same terminal", "another one", "one on hold"} {
		t.Run(name, func(t *testing.T) {
			another := name == "another one"
			person, path := newTerminal(t)
			if name == "one on hold" {
				hold(t, path)
			}
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, journal.Lease, 0)
				b.say("screen " + path)
				apply(t, b.writer, journal.Request{}, mtu, "9000")
				synctest.Wait() // The guard has looked at the terminal.
				if another {
					// A terminal that is made again gets its owner and its mode then, which shows
					// in the time of its last change of state.
					for before := changed(t, path); changed(t, path) == before; {
						// The clock of a file system has ticks.
						if err := os.Chmod(path, 0o640); err != nil {
							t.Fatal(err)
						}
					}
				}
				b.die()
				b.end("undone by guard: writer died")
				if shown := journal.TakeNotices(b.fsys, "/state"); len(shown) != 1 || shown[0] != line {
					t.Errorf("the next command shows %q", shown)
				}
				if shown := journal.TakeNotices(b.fsys, "/state"); len(shown) != 0 {
					t.Errorf("shown twice: %q", shown)
				}
				if log := b.log.String(); another != strings.Contains(log, "is another terminal now") {
					t.Errorf("log of the guard:\n%s", log)
				}
			})
			seen := make([]byte, 4096)
			n, _ := unix.Read(int(person.Fd()), seen) // EAGAIN: nothing was said.
			if said := strings.Contains(string(seen[:max(n, 0)]), "linerate: "+line); said != (name == "same terminal") {
				t.Errorf("the terminal shows %q", seen[:max(n, 0)])
			}
		})
	}
}
