package journal

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/visible"
)

// terminal is where a writer was started, as a guard remembers it. The guard does not keep it open,
// because a program that waits for the end of the session would wait for the guard.
type terminal struct {
	path string
	stat unix.Stat_t
}

// ownTerminal returns the path of the terminal of this process: the first of its standard streams
// that is a terminal, or "".
func ownTerminal() string {
	for _, fd := range []int{2, 1, 0} {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
			continue
		}
		if path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil {
			return path
		}
	}
	return ""
}

// atTerminal records a terminal; nil when the path is not one.
func atTerminal(path string) *terminal {
	t := &terminal{path: path}
	if !strings.HasPrefix(path, "/dev/") || unix.Stat(path, &t.stat) != nil || t.stat.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil
	}
	return t
}

// show writes lines to the terminal, if it is still the same: the kernel gives the number of a
// closed terminal to the next session of any user. It never waits for a terminal that accepts no
// output, as after Ctrl-S. Package os would wait for it, so these are raw calls.
func (t *terminal) show(lines []string) error {
	fd, err := unix.Open(t.path, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var now unix.Stat_t
	if err := unix.Stat(t.path, &now); err != nil {
		return err
	}
	// A new terminal has another time of its last status change, and often another owner.
	if now.Dev != t.stat.Dev || now.Ino != t.stat.Ino || now.Uid != t.stat.Uid || now.Ctim != t.stat.Ctim {
		return fmt.Errorf("%s is another terminal now", t.path)
	}
	text := "\r\n"
	for _, line := range lines {
		text += "linerate: " + visible.Line(line) + "\r\n"
	}
	_, err = unix.Write(fd, []byte(text))
	return err
}
