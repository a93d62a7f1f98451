package ttcp

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/service"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// TestNuttcpWithoutServer checks that a nuttcp client without a server sends bare bytes, and
// compares what it shows.
func TestNuttcpWithoutServer(t *testing.T) {
	testenv.Program(t, "nuttcp")
	for _, amount := range []string{"-n64", "-T0.3"} {
		s, j := serve(t, admission.Limits{}, nil)
		// No process listens on its control port.
		unused := testenv.FreePorts(t, 1)
		out := traffictest.Run(t, "nuttcp", "-t", "-P", fmt.Sprint(unused), "-p", fmt.Sprint(s.Addr().Port()), amount,
			"127.0.0.1")
		line := j.Await(t, 1, "received")[0]
		m := regexp.MustCompile(`([0-9.]+) MB`).FindStringSubmatch(out)
		n := regexp.MustCompile(`received (\d+) bytes`).FindStringSubmatch(line)
		if m == nil || n == nil {
			t.Fatalf("%s\n%s", line, out)
		}
		var megabytes float64
		var bytes int64
		_, _ = fmt.Sscan(m[1], &megabytes)
		_, _ = fmt.Sscan(n[1], &bytes)
		if d := megabytes - float64(bytes)/(1<<20); bytes == 0 || d > 0.0001 || d < -0.0001 || amount == "-n64" &&
			bytes != 64<<16 {
			t.Errorf("received %d bytes, the sender says %g MB", bytes, megabytes)
		}
	}
}

func TestDatagrams(t *testing.T) {
	t.Parallel()
	send := func(c net.Conn, sizes ...int) {
		for _, n := range sizes {
			_, _ = c.Write(make([]byte, n))
		}
	}
	dial := func(s *Server) net.Conn {
		c, err := net.Dial("udp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	s, j := serve(t, admission.Limits{}, func(s *Server) { s.timing.forget = time.Hour })
	c := dial(s)
	send(c, 4, 500, 500, 100, 4, 4, 4)
	j.Await(t, 1, "received 3 datagrams, 1100 bytes")
	send(c, 4, 200, 200, 4) // the same sender once more
	j.Await(t, 1, "received 2 datagrams, 400 bytes")
	// Without an end mark; all of them are there before the server reads the first.
	_, j = serve(t, admission.Limits{}, func(s *Server) {
		s.timing.forget = 300 * time.Millisecond
		c = dial(s)
		send(c, 100, 100, 100, 100, 100)
	})
	j.Await(t, 1, "received 5 datagrams, 500 bytes", "without marking the end")
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := c.Read(make([]byte, 10)); err == nil {
		t.Errorf("answered with %d bytes", n)
	}
}

func TestStrangersAndLimits(t *testing.T) {
	t.Parallel()
	connect := func(s *Server) *net.TCPConn {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c.(*net.TCPConn)
	}
	s, j := serve(t, admission.Limits{Clients: 1, Bytes: 1 << 20}, nil)
	dial := func() *net.TCPConn { return connect(s) }
	for range 20 {
		dial() // silent, so it takes no place
	}
	for head, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n":  "speaks HTTP",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": "speaks TLS",
		"abcdefghijklmnopqrstuvwxyz234567abcd\x00":     "speaks iperf3",
		"HELO nuttcp v6.1.2\n":                         "speaks nuttcp",
	} {
		_, _ = io.WriteString(dial(), head)
		j.Await(t, 1, want)
	}
	_, hasty := serve(t, admission.Limits{}, func(s *Server) { // the bytes are there before the second begins
		s.timing.idle = time.Second
		_, _ = connect(s).Write(make([]byte, 1000))
	})
	hasty.Await(t, 1, "ended early after 1000 bytes")
	c := dial()
	go func() { _, _ = c.Write(make([]byte, 64<<20)) }()
	j.Await(t, 1, "are used up")
	c = dial()
	_, _ = c.Write(make([]byte, 1000))
	_ = c.SetLinger(0)
	_ = c.Close()
	j.Await(t, 1, "ended early after 1000 bytes")
	c = dial()
	_, _ = c.Write(make([]byte, 777))
	_ = c.CloseWrite()
	j.Await(t, 1, "received 777 bytes")
}

// TestRestsEndWithTheServer ends a server while a test pauses for its rate, which would take a
// quarter of an hour.
func TestRestsEndWithTheServer(t *testing.T) {
	s, said := serve(t, admission.Limits{Clients: 1, BitsPerSecond: 8}, nil)
	for range 2 {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write(make([]byte, 1000))
		// The second one is turned away once the first has been let in, whichever that is.
	}
	said.Await(t, 1, "turned away")
}

func TestForgedAddressesTakeNoPlaceFromTests(t *testing.T) {
	table := newFlowTable(func(string, ...any) {})
	honest := netip.MustParseAddrPort("192.0.2.1:1000")
	for i := range 10 * maxFlows {
		table.take(100, honest, 0)
		table.take(100, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 5), 0)
	}
	if f := table.flows[honest]; len(table.flows) > maxFlows || f == nil || f.packets != 10*maxFlows {
		t.Errorf("%d flows; the honest one: %+v", len(table.flows), f)
	}
	if n := testing.AllocsPerRun(100, func() { table.take(100, honest, 0) }); n != 0 {
		t.Errorf("%v allocations per datagram", n)
	}
}

func FuzzDatagrams(f *testing.F) {
	f.Add([]byte{4, 200, 200, 4, 4, 0})
	f.Fuzz(func(t *testing.T, sizes []byte) {
		var logged int
		table := newFlowTable(func(string, ...any) { logged++ })
		for i, n := range sizes {
			table.take(int(n), netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, n & 3}), 5), time.Duration(i))
		}
		bare{}.Parse(sizes)
		bare{}.Put(sizes, datagram.Mark{})
		table.sweep(1<<40, time.Second)
		if len(table.flows) != 0 || logged > len(sizes) {
			t.Errorf("%d flows left, %d sentences for %d datagrams", len(table.flows), logged, len(sizes))
		}
	})
}

// TestForgedFlowsDoNotFloodTheLog begins and ends tests from a thousand addresses, as forged
// datagrams can.
func TestForgedFlowsDoNotFloodTheLog(t *testing.T) {
	var lines []string
	s := NewServer(ServerOptions{Log: func(line string) { lines = append(lines, line) }})
	for i := range uint16(1000) {
		from := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), i)
		for _, bytes := range []int{100, edgeBytes} {
			s.TakePacket(service.Datagram{Payload: make([]byte, bytes), From: from, At: time.Now()})
		}
	}
	if len(lines) != admission.ClientLines {
		t.Errorf("%d lines", len(lines))
	}
}
