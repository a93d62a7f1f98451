//go:build unix

package journal

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownSession returns the guard its own session, so that no terminal can hang up on it.
func ownSession(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}

// passPipes makes the ends of two pipes descriptors 3 and 4 of the guard.
func passPipes(command *exec.Cmd, life, ready *os.File) error {
	command.ExtraFiles = []*os.File{life, ready}
	return nil
}

// inheritedPipes returns the descriptors that StartGuard passes on. It checks them before they
// become files: in a process started differently they belong to other code, perhaps the Go runtime,
// and a file closes its descriptor when it is collected.
func inheritedPipes() (io.Reader, io.WriteCloser, error) {
	const life, ready = 3, 4
	for _, fd := range []int{life, ready} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || uint32(stat.Mode)&unix.S_IFMT != unix.S_IFIFO {
			return nil, nil, errNoPipes
		}
	}
	// Not for children: the writer counts as gone when no process holds the pipe.
	unix.CloseOnExec(life)
	unix.CloseOnExec(ready)
	return os.NewFile(life, "life"), os.NewFile(ready, "ready"), nil
}

var errNoPipes = errors.New(
	"descriptors 3 and 4 are not the pipes to a writer: this command is started by linerate itself")

// cutLoose makes the process ignore terminals and their signals. SIGTERM, which a host sends when
// it shuts down, ends the returned context.
func cutLoose(ctx context.Context) context.Context {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN,
		syscall.SIGTTOU)
	spareFromOOM()
	ctx, _ = signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM) // For the rest of this process.
	return ctx
}

// endParent ends the writer if it is still the parent of this process. Once the writer is gone, the
// parent is another process, and the writer's process id may be reused.
func endParent(writer int, force bool) {
	if writer <= 1 || os.Getppid() != writer {
		return
	}
	// An error means that it has just ended, which the pipe shows.
	if force {
		_ = syscall.Kill(writer, syscall.SIGKILL)
		return
	}
	_ = syscall.Kill(writer, syscall.SIGTERM)
	_ = syscall.Kill(writer, syscall.SIGCONT) // A stopped process does not handle SIGTERM.
}
