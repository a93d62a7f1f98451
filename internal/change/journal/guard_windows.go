package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// pipesVariable names, in the environment of a guard, the handles of the pipes to its writer:
// LIFE,READY in decimal. Windows has no numbers that a parent chooses.
const pipesVariable = "LINERATE_GUARD_PIPES"

// ownSession returns the guard without a console and in a process group of its own, so that no
// closed window and no Ctrl-C ends it.
func ownSession(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP,
	}
	return nil
}

// passPipes lets the guard inherit the ends of two pipes, and no other handle. A guard in the job
// of a session that ends with its processes leaves that job, where the job allows it.
func passPipes(command *exec.Cmd, life, ready *os.File) error {
	var handles []syscall.Handle
	for _, f := range []*os.File{life, ready} {
		h := windows.Handle(f.Fd())
		if err := windows.SetHandleInformation(h, windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
			return fmt.Errorf("pass a pipe: %w", err)
		}
		handles = append(handles, syscall.Handle(h))
	}
	command.SysProcAttr.AdditionalInheritedHandles = handles
	if mayLeaveJob() {
		command.SysProcAttr.CreationFlags |= windows.CREATE_BREAKAWAY_FROM_JOB
	}
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d,%d", pipesVariable, handles[0], handles[1]))
	return nil
}

// mayLeaveJob reports whether the job of this process lets a child leave it. Outside of a job the
// flag is without effect; in one that forbids it, no process would start.
func mayLeaveJob() bool {
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	err := windows.QueryInformationJobObject(0, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)), nil)
	const breakaway = windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK
	return err == nil && limits.BasicLimitInformation.LimitFlags&breakaway != 0
}

// inheritedPipes returns the pipes that passPipes passed on. It checks that the handles are pipes
// before they become files.
func inheritedPipes() (io.Reader, io.WriteCloser, error) {
	var life, ready uintptr
	if _, err := fmt.Sscanf(os.Getenv(pipesVariable), "%d,%d", &life, &ready); err != nil {
		return nil, nil, errNoPipes
	}
	_ = os.Unsetenv(pipesVariable) // not for children
	for _, h := range []uintptr{life, ready} {
		if kind, err := windows.GetFileType(windows.Handle(h)); err != nil || kind != windows.FILE_TYPE_PIPE {
			return nil, nil, errNoPipes
		}
		// Not for children: the writer counts as gone when no process holds the pipe.
		_ = windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, 0)
	}
	return os.NewFile(life, "life"), os.NewFile(ready, "ready"), nil
}

var errNoPipes = errors.New(pipesVariable +
	" does not name the pipes to a writer: this command is started by linerate itself")

// cutLoose makes the process ignore Ctrl-C and the end of a console.
func cutLoose(ctx context.Context) context.Context {
	signal.Ignore(os.Interrupt)
	return context.WithoutCancel(ctx)
}

// endParent ends the writer if it is still the process that started this one: its number may be
// that of a later process, which began after this one. Windows has no request to end that a program
// without windows receives.
func endParent(writer int, force bool) {
	if writer <= 1 || os.Getppid() != writer || !force {
		return
	}
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false,
		uint32(writer))
	if err != nil {
		return // it has ended, which the pipe shows
	}
	defer func() { _ = windows.CloseHandle(h) }()
	theirs, err := began(h)
	ours, ownErr := began(windows.CurrentProcess())
	if err == nil && ownErr == nil && theirs <= ours {
		_ = windows.TerminateProcess(h, 1)
	}
}

// began returns when a process began, in 100 ns.
func began(process windows.Handle) (int64, error) {
	var creation, exit, kernel, user windows.Filetime
	err := windows.GetProcessTimes(process, &creation, &exit, &kernel, &user)
	return creation.Nanoseconds(), err
}
