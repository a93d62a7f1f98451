package echo

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestServerAnswersFromTheAddressAsked asks a server on all addresses at several of them; a
// connected socket accepts only answers of the address asked.
func TestServerAnswersFromTheAddressAsked(t *testing.T) {
	for _, c := range []struct{ listen, ask, from string }{
		{"0.0.0.0", "127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.9", "127.0.0.1"}, {"", "127.0.0.9", "127.0.0.1"},
		{"", "::1", "::1"},
	} {
		s := listen(t, net.JoinHostPort(c.listen, "0"))
		token := register(t, s, c.from)
		from := netip.MustParseAddr(c.from)
		conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)),
			&net.UDPAddr{IP: net.ParseIP(c.ask), Port: s.Port()})
		if err != nil {
			testenv.Missing(t, testenv.Network, "no ", c.ask, ": ", err)
		}
		p := append(token[:], make([]byte, 100)...)
		if got := exchange(t, conn, p); !bytes.Equal(got, p) {
			t.Errorf("asked at %s: %d bytes", c.ask, len(got))
		}
		e, err := s.Expect(token, 1)
		if err != nil {
			t.Fatal(err)
		}
		PutHello(p, token, 0)
		if _, err := conn.Write(p[:HelloBytes]); err != nil {
			t.Fatal(err)
		}
		a := <-e.Arrivals()
		want := Arrival{From: conn.LocalAddr().(*net.UDPAddr).AddrPort(),
			To: netip.AddrPortFrom(netip.MustParseAddr(c.ask), uint16(s.Port()))}
		if a != want {
			t.Errorf("asked at %s: arrival %+v, want %+v", c.ask, a, want)
		}
		_ = conn.Close()
	}
}

// TestTestSocketSharesThePort does what a far end does with an arrival: packets of its near end go
// to its socket, others to the server.
func TestTestSocketSharesThePort(t *testing.T) {
	s := listen(t, "0.0.0.0:0")
	token := register(t, s, "127.0.0.1")
	e, err := s.Expect(token, 1)
	if err != nil {
		t.Fatal(err)
	}
	near, err := net.Dial("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	hello := make([]byte, HelloBytes)
	PutHello(hello, token, 0)
	if _, err := near.Write(hello); err != nil {
		t.Fatal(err)
	}
	a := <-e.Arrivals()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, err := range []error{
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Port: int(a.To.Port()), Addr: a.To.Addr().As4()}),
		unix.Connect(fd, &unix.SockaddrInet4{Port: int(a.From.Port()), Addr: a.From.Addr().As4()}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := near.Write(hello); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := unix.Read(fd, buf)
	for errors.Is(err, unix.EINTR) { // a stop and its end interrupt a read with a timeout, signal(7)
		n, err = unix.Read(fd, buf)
	}
	if err != nil || !bytes.Equal(buf[:n], hello) {
		t.Fatalf("test socket got %x, %v", buf[:max(n, 0)], err)
	}
	other, err := net.Dial("udp", near.RemoteAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ping := append(token[:], make([]byte, 30)...)
	if got := exchange(t, other, ping); !bytes.Equal(got, ping) {
		t.Errorf("beside the test socket the server answers %x", got)
	}
}

func TestAnswersAllocateNothing(t *testing.T) {
	// A server without its thread, whose part the test plays.
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{local: conn.LocalAddr().(*net.UDPAddr).AddrPort(), tokens: make(map[Token]*registration)}
	socket, err := newServerSocket(conn, s.local)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.close()
	token := register(t, s, "127.0.0.1")
	c, err := net.Dial("udp", s.local.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := append(token[:], make([]byte, 40)...)
	n := testing.AllocsPerRun(200, func() {
		if _, err := c.Write(p); err != nil {
			t.Fatal(err)
		}
		if n, errno := socket.receive(); n != 1 || errno != 0 {
			t.Fatal(n, errno)
		}
		socket.answer(s, 1)
		socket.queue.next(socket.fd)
	})
	if n != 0 {
		t.Errorf("%v allocations per answer", n)
	}
	if got := exchange(t, c, p); !bytes.Equal(got, p) { // of the first round; the others wait behind it
		t.Errorf("answered by %x", got)
	}
}

// TestServerSendsProbesWhole asks for packets of a named size over loopback, whose MTU is larger
// than any of them.
func TestServerSendsProbesWhole(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		s := listen(t, net.JoinHostPort(at, "0"))
		token := register(t, s, at)
		c, err := net.Dial("udp", s.local.String())
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, probeHeaderBytes)
		for _, size := range []int{probeHeaderBytes, 1400, 65000} {
			putProbe(p, token, kindSend, uint64(size), size)
			got := exchange(t, c, p)
			if a, ok := parseAnswer(got, token); !ok || len(got) != size || a.id != uint64(size) ||
				a.status != probeOK {
				t.Errorf("%s: %d bytes asked, %d came, %+v", at, size, len(got), a)
			}
		}
		_ = c.Close()
	}
}

func TestServerEndsWhileIdle(t *testing.T) {
	s, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server sleeps on")
	}
}
