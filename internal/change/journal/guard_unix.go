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

// ownSession gives the guard a session, so it has no terminal that could hang up on it.
func ownSession(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}

// inheritedPipes returns the descriptors that StartGuard passes on. What they are is asked before
// they become files: in a process started otherwise they belong to someone else, perhaps the Go
// runtime, and a file closes its descriptor when it is collected.
func inheritedPipes() (io.Reader, io.WriteCloser, error) {
	const life, ready = 3, 4
	for _, fd := range []int{life, ready} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || uint32(stat.Mode)&unix.S_IFMT != unix.S_IFIFO {
			return nil, nil, errNoPipes
		}
	}
	// Not for children, should there ever be any: the writer counts as dead when the pipe has no
	// holder.
	unix.CloseOnExec(life)
	unix.CloseOnExec(ready)
	return os.NewFile(life, "life"), os.NewFile(ready, "ready"), nil
}

var errNoPipes = errors.New(
	"descriptors 3 and 4 are not the pipes to a writer: this command is started by linerate itself")

// cutLoose makes the process deaf to terminals and hard to kill by chance. SIGTERM, which a host
// sends when it goes down, ends the context returned.
func cutLoose(ctx context.Context) context.Context {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN,
		syscall.SIGTTOU)
	spareFromOOM()
	ctx, _ = signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM) // For the rest of this process.
	return ctx
}

// endParent ends the writer if it still is the parent of this process. Once it is gone the parent
// is another, and the number of the writer may be anyone's.
func endParent(writer int, force bool) {
	if writer <= 1 || os.Getppid() != writer {
		return
	}
	// Errors mean that it has just gone, which the pipe tells.
	if force {
		_ = syscall.Kill(writer, syscall.SIGKILL)
		return
	}
	_ = syscall.Kill(writer, syscall.SIGTERM)
	_ = syscall.Kill(writer, syscall.SIGCONT) // A stopped process hears no SIGTERM.
}
