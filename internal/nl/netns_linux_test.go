package nl

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// inNetNS runs f in a fresh network namespace, on a thread of its own that is never given back to the scheduler: the goroutine ends
// while locked, so that the runtime throws the thread away together with its namespace.
func inNetNS(t *testing.T, f func(c *Client)) {
	t.Helper()
	var unshareErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unshareErr = unix.Unshare(unix.CLONE_NEWNET); unshareErr != nil {
			return
		}
		c, err := Dial()
		if err != nil {
			t.Errorf("dial: %v", err)
			return
		}
		defer func() { _ = c.Close() }()
		f(c) // may end in runtime.Goexit by t.FailNow; done is closed all the same
	}()
	<-done
	if unshareErr != nil {
		if strings.Contains(os.Getenv("LINERATE_REQUIRE"), "netns") {
			t.Fatalf("network namespace required: %v", unshareErr)
		}
		t.Skipf("needs a network namespace: %v", unshareErr)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// must ends the goroutine of the test body on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// netNSFd opens a second, fresh namespace and gives a descriptor of it.
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
	must(t, a.err)
	t.Cleanup(func() { _ = unix.Close(a.fd) })
	return a.fd
}

// dialIn gives a client in the namespace of a descriptor.
func dialIn(t *testing.T, fd int) *Client {
	t.Helper()
	type answer struct {
		c   *Client
		err error
	}
	ch := make(chan answer)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			ch <- answer{err: err}
			return
		}
		c, err := Dial()
		ch <- answer{c, err}
	}()
	a := <-ch
	must(t, a.err)
	t.Cleanup(func() { _ = a.c.Close() })
	return a.c
}
