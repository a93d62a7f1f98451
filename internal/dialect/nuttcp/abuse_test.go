package nuttcp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// ask plays a client up to the server's answer to its parameters.
func ask(t *testing.T, s *Server, line string) (*net.TCPConn, *bufio.Reader, string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	_, _ = io.WriteString(c, hello)
	if got, err := in.ReadString('\n'); err != nil || got != hello {
		t.Fatalf("greeted with %q, %v", got, err)
	}
	_, _ = io.WriteString(c, line)
	got, _ := in.ReadString('\n')
	return c.(*net.TCPConn), in, got
}

func TestStrangersAreNamed(t *testing.T) {
	for _, c := range []struct{ sends, want string }{
		{"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n", "speaks HTTP"},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "speaks TLS"},
		{"abcdefghijklmnopqrstuvwxyz234567abcd\x00", "speaks iperf3"},
		{"", "nothing came"},
		{"HELO nut", "no greeting came"},
		{hello, "no parameters came"},
		{hello + "buflen = 1", "no parameters came"},
		{hello + strings.Repeat("buflen = 1, ", 1000), "line longer than"},
		{"HELO nuttcp " + strings.Repeat("v", 5000), "greeting"},
		{hello + "nonsense\n", "is not key = value"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			var conn net.Conn
			_, j := serve(t, admission.Limits{}, func(s *Server) { // what it sends is there before the second begins
				s.timing.ask = time.Second
				var err error
				if conn, err = net.Dial("tcp", s.Addr().String()); err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(conn, c.sends)
			})
			defer conn.Close()
			j.Await(t, 1, c.want)
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%q: the connection is not closed: %v", c.sends, err)
			}
		})
	}
}

// TestRefusalsAreSaid checks that a refused client gets the reason, in the program's form.
func TestRefusalsAreSaid(t *testing.T) {
	s, _ := serve(t, admission.Limits{Duration: time.Minute}, nil)
	for old, with := range map[string]string{"timeout = 0.000000": "timeout = 3600", "_NULL_": "192.0.2.7",
		"port = 15010": "port = 22"} {
		_, in, got := ask(t, s, strings.Replace(lineTCP, old, with, 1))
		rest, _ := io.ReadAll(in)
		if got != "KO\n" || !strings.Contains(string(rest), "Error: ") || !strings.HasSuffix(string(rest), "KO\n") {
			t.Errorf("%s: %q %q", with, got, rest)
		}
	}
}

// TestNoData checks that a server gives up a client that sends no data, and closes its port.
func TestNoData(t *testing.T) {
	for _, udp := range []bool{false, true} {
		s, j := serve(t, admission.Limits{},
			func(s *Server) { s.timing.arrive, s.timing.silent = 200*time.Millisecond, 200*time.Millisecond })
		p := params{blockBytes: 500, blocks: 10, streams: 1, rateKbit: unlimitedRate, port: testenv.FreePorts(t, 1),
			transmit: true, udp: udp}
		_, in, got := ask(t, s, p.line())
		if !strings.HasPrefix(got, "OK") {
			t.Fatalf("answered %q", got)
		}
		j.Await(t, 1, "within 200ms")
		rest, _ := io.ReadAll(in)
		if !strings.Contains(string(rest), "Error: ") {
			t.Errorf("the client received %q", rest)
		}
		s.ports.mu.Lock()
		if len(s.ports.open) != 0 {
			t.Errorf("%d data ports are still open", len(s.ports.open))
		}
		s.ports.mu.Unlock()
	}
}

// TestDeadClients ends a client in the middle of its test, in both directions of TCP and over UDP
// without an end mark.
func TestDeadClients(t *testing.T) {
	s, j := serve(t, admission.Limits{}, func(s *Server) { s.timing.silent = 300 * time.Millisecond })
	p := params{blockBytes: 500, blocks: unlimitedBlock, streams: 1, rateKbit: unlimitedRate,
		port: testenv.FreePorts(t, 3), transmit: true, seconds: 30}
	control, _, _ := ask(t, s, p.line())
	data, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = data.Write(make([]byte, 5000))
	_ = data.(*net.TCPConn).SetLinger(0)
	_ = data.Close()
	_ = control.Close()
	j.Await(t, 1, "ended early")

	p.transmit, p.reverse, p.port = false, true, p.port+1
	control, _, _ = ask(t, s, p.line())
	if data, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.CopyN(io.Discard, data, 1<<20)
	_ = data.Close()
	_ = control.Close()
	j.Await(t, 2, "ended early")

	p.transmit, p.reverse, p.udp, p.port = true, false, true, p.port+1
	ask(t, s, p.line())
	if data, err = net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", p.port)); err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	for _, d := range []string{"BOD0", "BOD1", "BOD1\x00 some data"} {
		_, _ = io.WriteString(data, d)
	}
	j.Await(t, 1, "no end of the test")
}

// TestBudget ends a test that exceeds its bytes.
func TestBudget(t *testing.T) {
	s, j := serve(t, admission.Limits{Bytes: 1 << 20}, nil)
	p := params{blockBytes: 65536, blocks: unlimitedBlock, streams: 2, rateKbit: unlimitedRate,
		port: testenv.FreePorts(t, 2), transmit: true, seconds: 30}
	ask(t, s, p.line())
	for i := range 2 {
		data, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port+i))
		if err != nil {
			t.Fatal(err)
		}
		defer data.Close()
		go func() { _, _ = data.Write(make([]byte, 64<<20)) }()
	}
	j.Await(t, 1, "are used up")
}

// TestTwoAtOnce checks that two tests of one address on one port begin one after the other and then
// run side by side.
func TestTwoAtOnce(t *testing.T) {
	s, j := serve(t, admission.Limits{}, nil)
	p := params{blockBytes: 1000, blocks: unlimitedBlock, streams: 1, rateKbit: unlimitedRate,
		port: testenv.FreePorts(t, 1), transmit: true, seconds: 5}
	var data []net.Conn
	for range 2 {
		_, _, got := ask(t, s, p.line())
		if !strings.HasPrefix(got, "OK") {
			t.Fatalf("answered %q", got)
		}
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, c)
	}
	for i, c := range data {
		_, _ = c.Write(make([]byte, 1000*(i+1)))
	}
	for _, c := range data {
		_ = c.Close()
	}
	j.Await(t, 1, "received 1000 bytes")
	j.Await(t, 1, "received 2000 bytes")
}

// TestDataOfStrangers checks that the server only takes connections that a test waits for. The
// second one to the same port comes while the test waits on another.
func TestDataOfStrangers(t *testing.T) {
	s, j := serve(t, admission.Limits{}, nil)
	p := params{blockBytes: 1000, blocks: unlimitedBlock, streams: 2, rateKbit: unlimitedRate,
		port: testenv.FreePorts(t, 2), transmit: true, seconds: 5}
	ask(t, s, p.line())
	var conns []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	j.Await(t, 1, "no test of this address waits")
	for _, c := range conns {
		_ = c.Close()
	}
}

// TestWhoIsGoneIsSentNothingMore requests a minute of data and disconnects: the server must stop
// sending.
func TestWhoIsGoneIsSentNothingMore(t *testing.T) {
	for _, udp := range []bool{false, true} {
		s, j := serve(t, admission.Limits{}, func(s *Server) { s.timing.silent = 200 * time.Millisecond })
		port := testenv.FreePorts(t, 1)
		p := params{blockBytes: 500, blocks: unlimitedBlock, seconds: 60, streams: 1, rateKbit: 100,
			port: port, udp: udp}
		at := fmt.Sprintf("127.0.0.1:%d", port)
		var arrive io.Closer
		if udp {
			c, err := net.ListenPacket("udp", at)
			if err != nil {
				t.Fatal(err)
			}
			arrive = c
		} else {
			l, err := net.Listen("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			arrive = l
		}
		conn, _, got := ask(t, s, p.line())
		if !strings.HasPrefix(got, "OK") {
			t.Fatalf("answered %q", got)
		}
		_ = conn.Close()
		j.Await(t, 1, "the client closed its control connection")
		_ = arrive.Close()
	}
}
