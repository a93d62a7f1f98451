//go:build linux

package wire_test

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/wire"
)

// inNetns runs fn on a separate thread in a new network namespace with loopback up. The thread
// never returns to the scheduler.
func inNetns(t *testing.T, fn func()) {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
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
	case errors.Is(err, unix.EPERM):
		testenv.Missing(t, testenv.NetNS, err)
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

// socketOption reads one option of a socket.
func socketOption(t *testing.T, conn *net.TCPConn, level, name int) (value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { value, _ = unix.GetsockoptInt(int(fd), level, name) })
	}
	if err != nil {
		t.Error(err)
	}
	return value
}

// windowScale returns the scale that this end of a connection has announced.
func windowScale(t *testing.T, conn *net.TCPConn) (scale int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			info, infoErr := sys.ReadTCPInfo(int(fd))
			if scale = int(info.RcvWScale); infoErr != nil {
				t.Error(infoErr)
			}
		})
	}
	if err != nil {
		t.Error(err)
	}
	return scale
}

// openers are the ways to a listening socket: its own, which Renew replaces, and one that another
// process has opened, whose options it sets.
var openers = map[string]func(*testing.T) (*wire.Listener, error){
	"own": func(t *testing.T) (*wire.Listener, error) {
		return wire.Listen(t.Context(), "127.0.0.1:0", wire.NewKey())
	},
	"given": func(*testing.T) (*wire.Listener, error) {
		ring, err := wire.NewKeyring(wire.NewKey())
		if err != nil {
			return nil, err
		}
		var plain net.ListenConfig
		plain.SetMultipathTCP(false)
		socket, err := plain.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		return wire.Adopt(socket.(*net.TCPListener), ring)
	},
}

// TestListenOptions opens connections with special options between ordinary ones: the far end of
// each has the options that its test requested, and none of them remains.
func TestListenOptions(t *testing.T) {
	for name, open := range openers {
		t.Run(name, func(t *testing.T) {
			l, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			listenOptions(t, l)
		})
	}
}

func listenOptions(t *testing.T, l *wire.Listener) {
	accept := func(q *wire.DataQueue) *net.TCPConn {
		t.Helper()
		near, err := wire.DialData(bounded(t), l.Addr().String(), q.Token(), 0, wire.DataOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { near.Close() })
		far, _, err := q.Accept(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { far.Close() })
		return far
	}
	type seen struct{ Buffer, Scale, MSS, Locked int }
	look := func(c *net.TCPConn) seen {
		return seen{
			socketOption(t, c, unix.SOL_SOCKET, unix.SO_RCVBUF), windowScale(t, c),
			socketOption(t, c, unix.IPPROTO_TCP, unix.TCP_MAXSEG),
			socketOption(t, c, unix.SOL_SOCKET, unix.SO_BUF_LOCK),
		}
	}
	plain := l.Expect(wire.NewToken(), 1)
	defer plain.Close()
	before := look(accept(plain))
	q, err := l.ExpectWith(wire.NewToken(), 1, wire.ListenOptions{WindowBytes: 16 << 10, MSSBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.ExpectWith(wire.NewToken(), 1, wire.ListenOptions{MSSBytes: 600}); !errors.Is(err,
		errors.ErrUnsupported) {
		t.Errorf("a second test with options: %v", err)
	}
	got := look(accept(q))
	// The kernel doubles the requested buffer (socket(7)), and uses 12 bytes of a segment for
	// timestamps.
	if got.Buffer != 32<<10 || got.MSS > 1000 || got.MSS < 1000-12 || got.Scale >= before.Scale {
		t.Errorf("with options %+v, without %+v", got, before)
	}
	q.Close()
	again := l.Expect(wire.NewToken(), 1)
	defer again.Close()
	if after := look(accept(again)); after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if _, err := l.ExpectWith(wire.NewToken(), 1, wire.ListenOptions{MSSBytes: 1}); err == nil {
		t.Error("a segment size of one byte was accepted")
	}
	last := l.Expect(wire.NewToken(), 1)
	defer last.Close()
	if after := look(accept(last)); after != before {
		t.Errorf("after refused options %+v, before %+v", after, before)
	}
}

// TestRenewKeepsAnUnchangedSocket checks that the socket is not replaced, and so no connection
// reset, as long as a new socket would be the same.
func TestRenewKeepsAnUnchangedSocket(t *testing.T) {
	l := listen(t, wire.NewKey())
	inode := wire.SocketOf(l)
	if err := l.Renew(); err != nil {
		t.Fatal(err)
	}
	if wire.SocketOf(l) != inode {
		t.Error("the socket was replaced")
	}
	if err := wire.ForceRenew(l); err != nil {
		t.Fatal(err)
	}
	if wire.SocketOf(l) == inode {
		t.Error("the socket was not replaced")
	}
}

// TestNetnsRenewTakesUpDefaults shows the purpose of Renew: an accepted socket has the buffer size
// that was the default at the creation of its listener.
func TestNetnsRenewTakesUpDefaults(t *testing.T) {
	const path, before, after = "/proc/sys/net/ipv4/tcp_rmem", "4096 100000 6291456", "4096 200000 6291456"
	set := func(v string) {
		if err := os.WriteFile(path, []byte(v), 0); err != nil {
			t.Error(err)
		}
	}
	for _, open := range openers {
		inNetns(t, func() { takesUpDefaults(t, open, before, after, set) })
	}
}

func takesUpDefaults(t *testing.T, open func(*testing.T) (*wire.Listener, error), before, after string,
	set func(string)) {
	set(before)
	l, err := open(t)
	if err != nil {
		t.Error(err)
		return
	}
	defer l.Close()
	q := l.Expect(wire.NewToken(), 2)
	defer q.Close()
	accepted := func(index int) (bytes int) {
		// A dial to an address opens its socket on the calling goroutine, hence in the
		// namespace.
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
		err = raw.Control(func(
			fd uintptr) {
			bytes, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		})
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
}

// TestNetnsStaleSocket has a default that no setsockopt(2) can give a socket, since it is below the
// kernel's own minimum: a test over a socket of another process would measure the former one.
func TestNetnsStaleSocket(t *testing.T) {
	inNetns(t, func() {
		l, err := openers["given"](t)
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		if err := l.Renew(); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile("/proc/sys/net/ipv4/tcp_wmem", []byte("4096 4200 4194304"), 0); err != nil {
			t.Error(err)
		}
		if err := l.Renew(); !errors.Is(err, wire.ErrStale) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAdoptRefusesMultipath(t *testing.T) {
	var many net.ListenConfig
	many.SetMultipathTCP(true)
	socket, err := many.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	protocol := 0
	raw, err := socket.(*net.TCPListener).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { protocol, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL) })
	}
	if err != nil {
		t.Fatal(err)
	}
	ring, err := wire.NewKeyring()
	if err != nil {
		t.Fatal(err)
	}
	l, err := wire.Adopt(socket.(*net.TCPListener), ring)
	// A kernel without Multipath TCP has given a plain socket.
	if many := protocol == unix.IPPROTO_MPTCP; (err != nil) != many {
		t.Errorf("multipath %v: %v", many, err)
	}
	if err == nil {
		l.Close()
	}
}
