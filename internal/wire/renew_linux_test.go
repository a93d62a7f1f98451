//go:build linux

package wire_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/wire"
)

// inNetns runs fn on a thread of its own in a fresh network namespace with loopback up. The thread is never given back to the scheduler.
func inNetns(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = loopbackUp()
		}
		if err == nil {
			fn()
		}
		done <- err
	}()
	err := <-done
	switch {
	case errors.Is(err, unix.EPERM) && !strings.Contains(os.Getenv("LINERATE_REQUIRE"), "netns"):
		t.Skipf("needs a network namespace: %v", err)
	case err != nil:
		t.Fatal(err)
	}
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// TestNetnsRenewTakesUpDefaults shows what Renew is for: an accepted socket has the buffer that was the default when its listener was made.
func TestNetnsRenewTakesUpDefaults(t *testing.T) {
	const path, before, after = "/proc/sys/net/ipv4/tcp_rmem", "4096 100000 6291456", "4096 200000 6291456"
	set := func(v string) {
		if err := os.WriteFile(path, []byte(v), 0); err != nil {
			t.Error(err)
		}
	}
	inNetns(t, func() {
		set(before)
		l, err := wire.Listen(t.Context(), "127.0.0.1:0", wire.NewKey())
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		q := l.Expect(wire.NewToken(), 2)
		defer q.Close()
		accepted := func(index int) (bytes int) {
			// A dial to an address opens its socket on the goroutine that asks, hence in the namespace.
			near, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), index, wire.DataOptions{})
			if err != nil {
				t.Error(err)
				return 0
			}
			defer near.Close()
			far, _, err := q.Accept(bounded(t))
			if err != nil {
				t.Error(err)
				return 0
			}
			defer far.Close()
			raw, err := far.SyscallConn()
			if err != nil {
				t.Error(err)
				return 0
			}
			err = raw.Control(func(fd uintptr) { bytes, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) })
			if err != nil {
				t.Error(err)
			}
			return bytes
		}
		set(after)
		if got := accepted(0); got != 100000 {
			t.Errorf("before Renew the buffer is %d, want the old default", got)
		}
		if err := l.Renew(); err != nil {
			t.Error(err)
		}
		if got := accepted(1); got != 200000 {
			t.Errorf("after Renew the buffer is %d, want the new default", got)
		}
	})
}
