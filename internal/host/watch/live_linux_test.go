package watch

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// inNetNS runs f in a new network namespace whose loopback is up. IPv6 is off there, so that the
// kernel sends no packets of its own.
func inNetNS(t *testing.T, f func() error) {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	nltest.InNetNS(t, func() {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0)
		if err == nil {
			err = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		}
		if !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6 has no such file
			nltest.Must(t, err)
		}
		c, err := nl.Dial()
		nltest.Must(t, err)
		nltest.Must(t, errors.Join(c.SetUp("lo"), c.Close()))
		nltest.Must(t, f())
	})
}

// guard bounds the waits for the kernel: only a kernel that hangs needs so long.
const guard = 2 * time.Minute

// eventually calls f until it returns true or an error, and fails after guard.
func eventually(what string, f func() (bool, error)) error {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		switch done, err := f(); {
		case err != nil || done:
			return err
		case time.Since(began) > guard:
			return errors.New("the kernel hangs: " + what)
		}
	}
}

// count returns the named counter of the namespace.
func count(name string) (uint64, error) {
	c, err := host.Root{}.Counters()
	if err != nil {
		return 0, err
	}
	return c.Values[name], nil
}

// tcpInfo returns what the kernel reports about a connection.
func tcpInfo(c net.Conn) (info *unix.TCPInfo, err error) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		info, refused = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return info, errors.Join(err, refused)
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

// TestReceiveWindow: the span reports, for a connection that another program made, the bytes moved
// within the span and the times that the kernel reports for what held the sender.
func TestReceiveWindow(t *testing.T) {
	const before, during = 70_000, 3_000_000
	var s *Span
	var from, to net.Addr
	var infos [4]*unix.TCPInfo // of the sender: before and after Begin, before and after End
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
			if n == during {
				// Until the receive window holds the sender.
				err := eventually("the window never closes", func() (bool, error) {
					info, err := tcpInfo(sender)
					return err == nil && info.Rwnd_limited > infos[1].Rwnd_limited, err
				})
				if err != nil {
					return err
				}
			}
			_, err := io.ReadFull(receiver, make([]byte, n))
			return errors.Join(err, <-wrote)
		}
		if err := move(before); err != nil {
			return err
		}
		if infos[0], err = tcpInfo(sender); err != nil {
			return err
		}
		w, err := Begin(host.Root{}, Options{})
		if err != nil {
			return err
		}
		if infos[1], err = tcpInfo(sender); err != nil {
			return err
		}
		if err := move(during); err != nil {
			return err
		}
		if infos[2], err = tcpInfo(sender); err != nil {
			return err
		}
		if s, err = w.End(); err != nil {
			return err
		}
		infos[3], err = tcpInfo(sender)
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
			for _, h := range []struct {
				what    string
				seconds float64
				kernel  func(*unix.TCPInfo) uint64 // microseconds
			}{
				{"by the receive window", c.TCP.RwndLimitedSeconds,
					func(i *unix.TCPInfo) uint64 { return i.Rwnd_limited }},
				{"by the send buffer", c.TCP.SndbufLimitedSeconds,
					func(i *unix.TCPInfo) uint64 { return i.Sndbuf_limited }},
				{"busy", c.TCP.BusySeconds, func(i *unix.TCPInfo) uint64 { return i.Busy_time }},
			} {
				const rounding = 1e-9
				least := float64(h.kernel(infos[2])-h.kernel(infos[1])) * 1e-6
				most := float64(h.kernel(infos[3])-h.kernel(infos[0])) * 1e-6
				if h.seconds < least-rounding || h.seconds > most+rounding {
					t.Errorf("held %s for %v s, the kernel reports %v to %v s", h.what, h.seconds, least, most)
				}
			}
			if c.TCP.RwndLimitedSeconds <= 0 || c.TCP.RwndLimitedSeconds > c.TCP.BusySeconds {
				t.Errorf("held by the window for %v s of %v s", c.TCP.RwndLimitedSeconds, c.TCP.BusySeconds)
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

// TestOverflows: the span names the socket that had no room, with the number of its drops. A kernel
// that drops another handshake while the span is read makes the test begin anew.
func TestOverflows(t *testing.T) {
	const sent = 30
	var s *Span
	var got int
	overflow := func() (steady bool, err error) {
		got = 0
		u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5004})
		if err != nil {
			return false, err
		}
		defer u.Close()
		c, err := net.Dial("udp4", "127.0.0.1:5004")
		if err != nil {
			return false, err
		}
		defer c.Close()
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return false, err
		}
		defer unix.Close(fd)
		to := &unix.SockaddrInet4{Port: 5005, Addr: [4]byte{127, 0, 0, 1}}
		if err := errors.Join(u.SetReadBuffer(4096), unix.Bind(fd, to), unix.Listen(fd, 1)); err != nil {
			return false, err
		}
		w, err := Begin(host.Root{}, Options{})
		if err != nil {
			return false, err
		}
		handshakes, err := count("TcpExt.ListenDrops")
		if err != nil {
			return false, err
		}
		before, err := count("Udp.RcvbufErrors")
		if err != nil {
			return false, err
		}
		for range sent {
			if _, err := c.Write(make([]byte, 1000)); err != nil {
				return false, err
			}
		}
		// Two connections fit into a backlog of one. The kernel drops the handshakes of the other
		// two, which are repeated after a second.
		for range 4 {
			client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return false, err
			}
			defer unix.Close(client)
			if err := unix.Connect(client, to); err != nil && err != unix.EINPROGRESS {
				return false, err
			}
		}
		// A busy kernel delivers later, so that a drop is awaited before the socket is emptied.
		dropped := func() (uint64, error) {
			now, err := count("Udp.RcvbufErrors")
			return now - before, err
		}
		err = eventually("no datagram overflows", func() (bool, error) {
			n, err := dropped()
			return n > 0, err
		})
		if err != nil {
			return false, err
		}
		raw, err := u.SyscallConn()
		if err != nil {
			return false, err
		}
		err = eventually("datagrams are missing", func() (bool, error) {
			err := raw.Read(func(fd uintptr) bool {
				for {
					if _, _, err := unix.Recvfrom(int(fd), make([]byte, 2000), unix.MSG_DONTWAIT); err != nil {
						return true
					}
					got++
				}
			})
			n, err2 := dropped()
			return n+uint64(got) == sent, errors.Join(err, err2)
		})
		if err != nil {
			return false, err
		}
		var refused uint64
		err = eventually("no handshake is dropped", func() (bool, error) {
			refused, err = count("TcpExt.ListenDrops")
			return refused > handshakes, err
		})
		if err != nil {
			return false, err
		}
		if s, err = w.End(); err != nil {
			return false, err
		}
		now, err := count("TcpExt.ListenDrops")
		return now == refused, err
	}
	inNetNS(t, func() error {
		return eventually("it never stands still", overflow)
	})
	if s.Sockets == nil || len(s.Sockets.Datagrams) != 1 || s.Sockets.DatagramsSeen != 2 {
		t.Fatalf("sockets %+v, warnings %q", s.Sockets, s.Warnings)
	}
	if d := s.Sockets.Datagrams[0]; d.Local.Port() != 5004 || d.Memory.Drops != uint64(sent-got) || got == 0 ||
		got == sent || d.New {
		t.Errorf("%d of %d received: %+v", got, sent, d)
	}
	byStage := make(map[drops.Stage]uint64)
	for _, d := range s.Drops {
		byStage[d.Stage] += d.Total
	}
	if byStage[drops.TCP] != s.Counters.Values["TcpExt.ListenDrops"] || byStage[drops.Socket] != uint64(sent-got) {
		t.Errorf("drops by stage %v of %+v", byStage, s.Drops)
	}
	if l := s.Sockets.Listeners; len(l) != 1 || l[0].Queued != 2 || l[0].Limit != 1 || l[0].Drops == 0 ||
		l[0].Drops != s.Counters.Values["TcpExt.ListenDrops"] {
		t.Errorf("listeners %+v, counted %d", l, s.Counters.Values["TcpExt.ListenDrops"])
	}
}
