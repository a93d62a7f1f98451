package echo

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
)

// exchange sends p from c and returns the answer.
func exchange(t *testing.T, c net.Conn, p []byte) []byte {
	t.Helper()
	if _, err := c.Write(p); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, maxDatagram)
	n, err := c.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

func listen(t *testing.T, address string) *Server {
	t.Helper()
	s, err := Listen(t.Context(), address)
	if err != nil {
		testenv.Missing(t, testenv.Network, "no UDP on ", address, ": ", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func register(t *testing.T, s *Server, from string) Token {
	t.Helper()
	token, err := s.Register(netip.MustParseAddr(from), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestServerHandsHellosOver(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	token := register(t, s, "127.0.0.1")
	if _, err := s.Expect(Token{9}, 1); err == nil {
		t.Error("hellos of an unregistered token are expected")
	}
	from := netip.MustParseAddrPort("127.0.0.1:4000")
	hello := func(index int) []byte {
		p := make([]byte, HelloBytes)
		PutHello(p, token, index)
		return p
	}
	// The far end announces the token before it expects hellos, and a near end may be faster. An
	// answer from the server would end its hellos before the far end has heard one.
	if r := s.answer(hello(1), from, s.local, time.Now()); r.bytes != 0 {
		t.Error("a hello that comes too early is answered")
	}
	e, err := s.Expect(token, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := s.Expect(token, 2); err == nil {
		t.Error("one token is expected twice")
	}
	for _, index := range []int{1, 1, 2, 1 << 31, 0, 0} {
		if r := s.answer(hello(index), from, s.local, time.Now()); r.bytes != 0 {
			t.Errorf("hello %d: answered", index)
		}
	}
	for _, want := range []int{1, 0} {
		got := <-e.Arrivals()
		if got != (Arrival{Index: want, From: from, To: s.local}) {
			t.Errorf("arrival %+v", got)
		}
	}
	if len(e.Arrivals()) != 0 {
		t.Error("hellos arrive twice, or out of range")
	}
	if i, ok := ParseHello(hello(1023), token); !ok || i != 1023 {
		t.Errorf("hello reads as %d, %v", i, ok)
	}
	ping := make([]byte, HelloBytes)
	putPing(ping, token, 1)
	if _, ok := ParseHello(ping, token); ok {
		t.Error("a ping reads as a hello")
	}
	if r := s.answer(ping, from, s.local, time.Now()); r.bytes != len(ping) {
		t.Error("pings are not answered beside hellos")
	}
	e.Close()
	if r := s.answer(hello(0), from, s.local, time.Now()); r.bytes != 0 {
		t.Error("a hello that comes too late is answered")
	}
}

func TestServerAnswersSizes(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	token := register(t, s, "127.0.0.1")
	c, err := net.Dial("udp", s.local.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, n := range []int{echoHeaderBytes, 1400, 9000, 65000} {
		p := append(token[:], make([]byte, n-TokenBytes)...)
		if got := exchange(t, c, p); !bytes.Equal(got, p) {
			t.Errorf("%d bytes come back as %d", n, len(got))
		}
	}
	// A request of many bytes is answered by few.
	p := make([]byte, 5000)
	putProbe(p, token, kindHeard, 77, len(p))
	got := exchange(t, c, p)
	if a, ok := parseAnswer(got, token); !ok || len(got) != probeHeaderBytes || a.id != 77 || a.size != 5000 {
		t.Errorf("%d bytes, %+v, %v", len(got), a, ok)
	}
}

func TestServerSendsNoMoreThanItsBudget(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	token := register(t, s, "127.0.0.1")
	from := netip.MustParseAddrPort("127.0.0.1:4000")
	total := 0
	for range 2 * maxSentBytes / 60000 {
		p := make([]byte, probeHeaderBytes)
		putProbe(p, token, kindSend, 1, 60000)
		if r := s.answer(p, from, s.local, time.Now()); r.probe {
			total += r.bytes
		}
	}
	if total > maxSentBytes || total < maxSentBytes/2 {
		t.Errorf("%d bytes sent on request", total)
	}
	for _, c := range []struct{ bytes, size, want int }{
		{probeHeaderBytes - 1, 60, 0}, {probeHeaderBytes, 0, probeHeaderBytes}, {probeHeaderBytes, maxDatagram + 1, 0},
		{1000, 1<<32 - 1, 0},
	} {
		p := make([]byte, max(c.bytes, probeHeaderBytes))
		putProbe(p, token, kindSend, 1, c.size)
		if r := s.answer(p[:c.bytes], from, s.local, time.Now()); r != (reply{bytes: c.want}) {
			t.Errorf("%d bytes asking for %d: %+v", c.bytes, c.size, r)
		}
	}
}

// FuzzServerAnswer checks for every packet that the answer has no more bytes, unless the packet is
// a request of a search with a good token.
func FuzzServerAnswer(f *testing.F) {
	s, err := Listen(f.Context(), "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	token, err := s.Register(loopback, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	p := make([]byte, 60)
	for _, kind := range []byte{0, kindHello, kindHeard, kindSend, kindAnswer} {
		putProbe(p, token, kind, 3, 1400)
		f.Add(bytes.Clone(p[TokenBytes:]), true)
	}
	f.Add([]byte{}, true)
	f.Add(make([]byte, 100), false)
	from := netip.AddrPortFrom(loopback, 7)
	f.Fuzz(func(t *testing.T, rest []byte, good bool) {
		p := append(make([]byte, TokenBytes), rest...)
		if good {
			copy(p, token[:])
		}
		n := len(p)
		r := s.answer(p, from, s.local, time.Now())
		switch {
		case r.bytes == 0:
		case !good:
			t.Fatalf("answered without a token: %+v", r)
		case r.probe && (n < probeHeaderBytes || r.bytes > maxDatagram):
			t.Fatalf("%d bytes make the server send %d", n, r.bytes)
		case !r.probe && r.bytes > n:
			t.Fatalf("%d bytes are answered by %d", n, r.bytes)
		}
	})
}
