package sys_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// pair is one connection over loopback: a bare descriptor and a connection of package net, both
// closed at the end of the test.
func pair(t *testing.T) (int, *net.TCPConn) {
	t.Helper()
	fd, peer := connect(t)
	t.Cleanup(func() { _ = sys.Close(fd) })
	return fd, peer
}

// connect is pair for tests that close the descriptor themselves: closing its number twice could
// close another descriptor.
func connect(t *testing.T) (int, *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	conn := c.(*net.TCPConn)
	fd, err := sys.TakeOver(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is still with package net: %v", err)
	}
	return fd, peer
}

// TestSignalsDoNotShortenAPoll sends the signal of the runtime all through a wait.
func TestSignalsDoNotShortenAPoll(t *testing.T) {
	fd, _ := pair(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, stop, done := unix.Gettid(), make(chan struct{}), make(chan int)
	go func() {
		for sent := 0; ; sent++ {
			select {
			case <-stop:
				done <- sent
				return
			case <-time.After(time.Millisecond):
				if err := unix.Tgkill(unix.Getpid(), thread, unix.SIGURG); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	const wait = 100 * time.Millisecond
	began := sys.Monotonic()
	ready, err := sys.Poll(fd, wait)
	if took := sys.Monotonic() - began; ready || err != nil || took < wait {
		t.Errorf("after %v of %v: %v, %v", took, wait, ready, err)
	}
	close(stop)
	if <-done == 0 {
		t.Error("no signal was sent")
	}
}

func TestTakenOverDescriptor(t *testing.T) {
	fd, peer := pair(t)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("descriptor does not block: flags %#x, %v", flags, err)
	}
	if closes, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || closes&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor survives exec: %#x, %v", closes, err)
	}
	if n, err := sys.Write(fd, []byte("ping")); n != 4 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	buf := make([]byte, 10)
	if n, err := peer.Read(buf); string(buf[:n]) != "ping" || err != nil {
		t.Fatalf("peer read %q, %v", buf[:n], err)
	}
	if ready, err := sys.Poll(fd, 0); ready || err != nil {
		t.Errorf("readable before anything was sent: %v, %v", ready, err)
	}
	if err := sys.SetTimeout(fd, 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if n, err := sys.Read(fd, buf); n != 0 || err != sys.ErrTimeout {
		t.Errorf("read %d, %v", n, err)
	}
	if err := sys.SetTimeout(fd, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Write([]byte("pong")); err != nil {
		t.Fatal(err)
	}
	if ready, err := sys.Poll(fd, time.Minute); !ready || err != nil {
		t.Errorf("not readable: %v", err)
	}
	if n, err := sys.Read(fd, buf); string(buf[:n]) != "pong" || err != nil {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	if err := peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := sys.Read(fd, buf); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

func TestShutdownWakesAReader(t *testing.T) {
	fd, _ := pair(t)
	woken := make(chan error)
	go func() {
		_, err := sys.Read(fd, make([]byte, 1))
		woken <- err
	}()
	if err := sys.Shutdown(fd); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; err != io.EOF {
		t.Errorf("woken with %v", err)
	}
}

func TestAbortOnCloseResets(t *testing.T) {
	fd, peer := connect(t)
	if _, err := sys.Write(fd, []byte("never read")); err != nil {
		t.Fatal(err)
	}
	if err := sys.SetAbortOnClose(fd); err != nil {
		t.Fatal(err)
	}
	if err := sys.Close(fd); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		_, err = peer.Read(make([]byte, 100))
	}
	if !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("peer saw %v", err)
	}
}

func TestTCPInfoOfALiveConnection(t *testing.T) {
	fd, peer := pair(t)
	sent := make([]byte, 100_000)
	go func() {
		for n := 0; n < len(sent); {
			m, err := sys.Write(fd, sent[n:])
			if err != nil {
				return
			}
			n += m
		}
	}()
	if _, err := io.ReadFull(peer, make([]byte, len(sent))); err != nil {
		t.Fatal(err)
	}
	i, err := sys.ReadTCPInfo(fd)
	if err != nil {
		t.Fatal(err)
	}
	const established = 1
	if i.State != established || i.SndMSSBytes < 500 || i.SndCwndPackets == 0 || i.SegsOut == 0 || i.PMTUBytes < 1000 {
		t.Errorf("%+v", i)
	}
	if mss, err := sys.MaxSegmentBytes(fd); err != nil || mss < 500 {
		t.Errorf("max segment %d, %v", mss, err)
	}
	if i.Has(sys.TCPInfoSndWnd) && (i.BytesSent != uint64(len(sent)) || i.SndWndBytes == 0) {
		t.Errorf("sent %d of %d, window %d", i.BytesSent, len(sent), i.SndWndBytes)
	}
	if i.RTTMicros == 0 || i.RTTMicros > 10_000_000 || i.RTOMicros < i.RTTMicros {
		t.Errorf("rtt %d µs, rto %d µs", i.RTTMicros, i.RTOMicros)
	}
	if !i.Options.Has(sys.OptWScale) || i.SndWScale == 0 {
		t.Errorf("options %b, wscale %d/%d", i.Options, i.SndWScale, i.RcvWScale)
	}
}

func TestSocketOptions(t *testing.T) {
	fd, _ := pair(t)
	if err := sys.SetNoDelay(fd, true); err != nil {
		t.Error(err)
	}
	if err := sys.SetSendBufferBytes(fd, 10_000); err != nil {
		t.Error(err)
	}
	if err := sys.SetReceiveBufferBytes(fd, 10_000); err != nil {
		t.Error(err)
	}
	for name, read := range map[string]func(int) (int,
		error){"send": sys.SendBufferBytes, "receive": sys.ReceiveBufferBytes} {
		if n, err := read(fd); n != 20_000 || err != nil {
			t.Errorf("%s buffer of %d bytes, %v: the kernel keeps twice the requested size", name, n, err)
		}
	}
	name, err := sys.Congestion(fd)
	if err != nil || name == "" {
		t.Errorf("congestion control %q, %v", name, err)
	}
	if err := sys.SetCongestion(fd, "reno"); err != nil { // always built in
		t.Error(err)
	}
	if name, err := sys.Congestion(fd); name != "reno" || err != nil {
		t.Errorf("congestion control %q, %v", name, err)
	}
	if err := sys.SetCongestion(fd, "nosuch"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unknown congestion control: %v", err)
	}
}

func TestNotATCPSocket(t *testing.T) {
	fd, err := sys.OpenUDP(netip.Addr{}, netip.MustParseAddrPort("127.0.0.1:9"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(fd) }()
	if _, err := sys.ReadTCPInfo(fd); !errors.Is(err, sys.ErrNotSupported) {
		t.Errorf("%v", err)
	}
	if _, err := sys.ReadTCPInfo(-1); errors.Is(err, sys.ErrNotSupported) || err == nil {
		t.Errorf("%v", err)
	}
}

func TestDatagrams(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		pc, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Logf("%s: %v", host, err) // a host without IPv6
			continue
		}
		defer pc.Close()
		to := pc.LocalAddr().(*net.UDPAddr).AddrPort()
		fd, err := sys.OpenUDP(netip.Addr{}, to)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sys.Close(fd) }()
		if err := sys.SendTo(fd, []byte("hello"), to); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, from, err := pc.ReadFrom(buf)
		if err != nil || string(buf[:n]) != "hello" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
		if _, err := pc.WriteTo([]byte("back"), from); err != nil {
			t.Fatal(err)
		}
		if n, err := sys.Read(fd, buf); err != nil || string(buf[:n]) != "back" {
			t.Errorf("%q, %v", buf[:n], err)
		}
	}
}

func TestEchoSocket(t *testing.T) {
	fd, kind, err := sys.OpenEcho(netip.Addr{}, netip.MustParseAddr("127.0.0.1"))
	if errors.Is(err, fs.ErrPermission) {
		testenv.Missing(t, testenv.Network, "neither ping socket nor raw socket: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("got a %s", kind)
	if err := sys.Close(fd); err != nil {
		t.Error(err)
	}
}

// TestIOAllocatesNothing checks the promise that the engine's loops rely on.
func TestIOAllocatesNothing(t *testing.T) {
	fd, peer := pair(t)
	out, in := make([]byte, 100), make([]byte, 100)
	raw, err := sys.TakeOver(peer)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(raw) }()
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := sys.Write(fd, out); err != nil {
			t.Fatal(err)
		}
		if ready, err := sys.Poll(raw, time.Minute); !ready || err != nil {
			t.Fatal(ready, err)
		}
		if _, err := sys.Read(raw, in); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
}
