package nl_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// netNSFd creates a second network namespace and returns a descriptor of it.
func netNSFd(t *testing.T) int {
	t.Helper()
	type answer struct {
		fd  int
		err error
	}
	ch := make(chan answer)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ch <- answer{err: err}
			return
		}
		fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		ch <- answer{fd, err}
	}()
	a := <-ch
	nltest.Must(t, a.err)
	t.Cleanup(func() { _ = unix.Close(a.fd) })
	return a.fd
}

// dialIn returns a client in the namespace of a descriptor.
func dialIn(t *testing.T, fd int) *nl.Client {
	t.Helper()
	type answer struct {
		c   *nl.Client
		err error
	}
	ch := make(chan answer)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			ch <- answer{err: err}
			return
		}
		c, err := nl.Dial()
		ch <- answer{c, err}
	}()
	a := <-ch
	nltest.Must(t, a.err)
	t.Cleanup(func() { _ = a.c.Close() })
	return a.c
}

// inNetNS runs f in a new network namespace with a client in it.
func inNetNS(t *testing.T, f func(c *nl.Client)) {
	t.Helper()
	nltest.InNetNS(t, func() {
		c, err := nl.Dial()
		nltest.Must(t, err)
		defer func() { _ = c.Close() }()
		f(c)
	})
}
