package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// Enter runs this program again with args in a network namespace of its own, where it may use port
// 53 without being root. It returns the exit status of that process, which has printed the reason
// if it is not 0.
func Enter(ctx context.Context, args []string, out, errw io.Writer) (status int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("make closed world: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = os.Args[0] // a program that is several by its name must be the same one
	cmd.Stdout, cmd.Stderr = out, errw
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if c, err := sys.Capabilities(); err != nil || !c.Has(sys.CapSysAdmin) || !c.Has(sys.CapNetAdmin) {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	// Pdeathsig acts when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() > 0 {
		return ended.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("make closed world: %w", err)
	}
	return 0, nil
}

// Furnish gives the namespace of this process its addresses. It refuses a namespace with an
// interface that is up: [Enter] made none.
func Furnish() error {
	c, err := nl.Dial()
	if err != nil {
		return fmt.Errorf("make closed world: %w", err)
	}
	defer c.Close() // it has nothing unwritten
	links, err := c.Links()
	if err != nil {
		return fmt.Errorf("make closed world: %w", err)
	}
	for _, l := range links {
		if l.Up { // a new namespace may have further devices, of tunnels, but none is up
			return fmt.Errorf("make closed world: %s is up: this is not a new network namespace", l.Name)
		}
	}
	if err := c.SetUp("lo"); err != nil {
		return fmt.Errorf("make closed world: %w", err)
	}
	addresses := append(append(leafAt[:len(leafAt):len(leafAt)], recursorAt), rootAt, topAt)
	for _, a := range addresses {
		// named binds only addresses that an interface has.
		if err := c.AddAddress("lo", a.String()+"/32"); err != nil {
			return fmt.Errorf("make closed world: %w", err)
		}
	}
	return nil
}
