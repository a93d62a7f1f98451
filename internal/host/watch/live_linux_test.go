package watch

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// inNetNS runs f in a network namespace of its own with a loopback, on a thread that ends with it.
func inNetNS(t *testing.T, f func() error) {
	t.Helper()
	var refused bool
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			refused = true
			done <- err
			return
		}
		c, err := nl.Dial()
		if err == nil {
			err = errors.Join(c.SetUp("lo"), c.Close())
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	err := <-done
	if refused && !strings.Contains(os.Getenv("LINERATE_REQUIRE"), "netns") {
		t.Skipf("needs a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pair is a connection over loopback whose receiver has a small buffer, set before the handshake so
// that the window stays small.
func pair() (sender, receiver net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var refused error
	err = raw.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096) })
	if err := errors.Join(err, refused); err != nil {
		return nil, nil, err
	}
	if sender, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	receiver, err = l.Accept()
	return sender, receiver, err
}

// TestReceiveWindow: a connection that somebody else made is told with what moved in the span
// alone, and with what held it.
func TestReceiveWindow(t *testing.T) {
	const before, during = 70_000, 3_000_000
	var s *Span
	var from, to net.Addr
	inNetNS(t, func() error {
		sender, receiver, err := pair()
		if err != nil {
			return err
		}
		defer sender.Close()
		defer receiver.Close()
		from, to = sender.LocalAddr(), sender.RemoteAddr()
		move := func(n int) error {
			wrote := make(chan error, 1)
			go func() {
				_, err := sender.Write(make([]byte, n))
				wrote <- err
			}()
			_, err := io.ReadFull(receiver, make([]byte, n))
			return errors.Join(err, <-wrote)
		}
		if err := move(before); err != nil {
			return err
		}
		w, err := Begin(host.Root{}, Options{})
		if err != nil {
			return err
		}
		if err := move(during); err != nil {
			return err
		}
		s, err = w.End()
		return err
	})
	if s.Sockets == nil || len(s.Sockets.Connections) != 2 || s.Sockets.ConnectionsSeen != 2 || s.Sockets.Cut {
		t.Fatalf("sockets %+v, warnings %q", s.Sockets, s.Warnings)
	}
	for _, c := range s.Sockets.Connections {
		switch {
		case c.Local.String() == from.String() && c.Remote.String() == to.String():
			// The last acknowledgement may be on its way when the receiver has everything.
			if acked := int64(c.TCP.BytesAcked) + c.UnackedBytes; acked != during || !c.TCP.Sender || c.New {
				t.Errorf("the sender moved %d bytes: %+v", acked, c)
			}
			if limited := c.TCP.RwndLimitedSeconds; limited <= 0 || limited < c.TCP.SndbufLimitedSeconds ||
				limited > c.TCP.BusySeconds {
				t.Errorf("held by the window for %v s, by the send buffer for %v s, of %v s", limited,
					c.TCP.SndbufLimitedSeconds, c.TCP.BusySeconds)
			}
		case c.TCP.BytesReceived != during || c.TCP.Sender || c.TCP.RcvBufBytes != 8192 ||
			c.TCP.CongestionControl == "":
			t.Errorf("the receiver %+v", c)
		}
	}
	if n := s.Counters.Values["Tcp.InSegs"]; n == 0 {
		t.Errorf("%d segments counted", n)
	}
}

// TestOverflows: the socket that had no room is named, with as many drops as there were.
func TestOverflows(t *testing.T) {
	const sent = 30
	var s *Span
	var got int
	inNetNS(t, func() error {
		u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5004})
		if err != nil {
			return err
		}
		defer u.Close()
		c, err := net.Dial("udp4", "127.0.0.1:5004")
		if err != nil {
			return err
		}
		defer c.Close()
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		to := &unix.SockaddrInet4{Port: 5005, Addr: [4]byte{127, 0, 0, 1}}
		if err := errors.Join(u.SetReadBuffer(4096), unix.Bind(fd, to), unix.Listen(fd, 1)); err != nil {
			return err
		}
		w, err := Begin(host.Root{}, Options{})
		if err != nil {
			return err
		}
		for range sent {
			if _, err := c.Write(make([]byte, 1000)); err != nil {
				return err
			}
		}
		// Two connections fit into a backlog of one; the handshakes of the others are dropped, and
		// they go on trying.
		for range 4 {
			client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			defer unix.Close(client)
			if err := unix.Connect(client, to); err != nil && err != unix.EINPROGRESS {
				return err
			}
		}
		if s, err = w.End(); err != nil {
			return err
		}
		raw, err := u.SyscallConn()
		if err != nil {
			return err
		}
		return raw.Read(func(fd uintptr) bool {
			for {
				if _, _, err := unix.Recvfrom(int(fd), make([]byte, 2000), unix.MSG_DONTWAIT); err != nil {
					return true
				}
				got++
			}
		})
	})
	if s.Sockets == nil || len(s.Sockets.Datagrams) != 1 || s.Sockets.DatagramsSeen != 2 {
		t.Fatalf("sockets %+v, warnings %q", s.Sockets, s.Warnings)
	}
	if d := s.Sockets.Datagrams[0]; d.Local.Port() != 5004 || d.Memory.Drops != uint64(sent-got) || got == 0 ||
		got == sent || d.New {
		t.Errorf("%d of %d came: %+v", got, sent, d)
	}
	told := make(map[drops.Stage]uint64)
	for _, d := range s.Drops {
		told[d.Stage] += d.Total
	}
	if told[drops.TCP] != s.Counters.Values["TcpExt.ListenDrops"] || told[drops.Socket] != uint64(sent-got) {
		t.Errorf("told by stage %v of %+v", told, s.Drops)
	}
	if l := s.Sockets.Listeners; len(l) != 1 || l[0].Queued != 2 || l[0].Limit != 1 || l[0].Drops == 0 ||
		l[0].Drops != s.Counters.Values["TcpExt.ListenDrops"] {
		t.Errorf("listeners %+v, counted %d", l, s.Counters.Values["TcpExt.ListenDrops"])
	}
}
