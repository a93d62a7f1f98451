package sys_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// TestListenEverywhere accepts a connection over IPv4 on a host whose IPv6 sockets accept none by
// default.
func TestListenEverywhere(t *testing.T) {
	fd, err := sys.OpenStream(netip.IPv6Unspecified())
	if errors.Is(err, sys.ErrNotSupported) {
		testenv.Missing(t, testenv.Network, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(fd) }()
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
		t.Fatal(err)
	}
	if err := sys.Listen(fd, netip.AddrPortFrom(netip.IPv6Unspecified(), 0), 1); err != nil {
		t.Fatal(err)
	}
	port, err := sys.LocalPort(fd)
	if err != nil {
		t.Fatal(err)
	}
	near, err := sys.OpenStream(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(near) }()
	to := sys.AddressOf(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port))
	if err := sys.Connect(near, &to); err != nil {
		t.Error(err)
	}
}

// TestConnectGivesUpEveryTime connects to a listener whose queue is full, so that SYNs are dropped.
// Every call, not only the first, must return after the time of SetTimeout; otherwise the end of a
// test waits two minutes for the kernel.
func TestConnectGivesUpEveryTime(t *testing.T) {
	at := netip.MustParseAddr("127.0.0.1")
	open := func() int {
		fd, err := sys.OpenStream(at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sys.Close(fd) })
		if err := sys.SetTimeout(fd, 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		return fd
	}
	listener := open()
	if err := sys.Listen(listener, netip.AddrPortFrom(at, 0), 0); err != nil {
		t.Fatal(err)
	}
	port, err := sys.LocalPort(listener)
	if err != nil {
		t.Fatal(err)
	}
	to := sys.AddressOf(netip.AddrPortFrom(at, port))
	for range 8 {
		if err = sys.Connect(open(), &to); err != nil {
			break
		}
	}
	if !errors.Is(err, sys.ErrTimeout) {
		testenv.Missing(t, testenv.Network, "the queue of the listener does not fill up: ", err)
	}
	fd := open()
	ended := make(chan error, 3)
	go func() {
		for range cap(ended) {
			ended <- sys.Connect(fd, &to)
		}
	}()
	for i := range cap(ended) {
		select {
		case err := <-ended:
			if !errors.Is(err, sys.ErrTimeout) {
				t.Errorf("call %d: %v", i, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("call %d still sleeps", i)
		}
	}
}
