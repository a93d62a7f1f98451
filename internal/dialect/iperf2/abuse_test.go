package iperf2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/service"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:9")

func dial(t *testing.T, s *Server) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// TestStrangersAreNamed checks that a client of another protocol is refused, and that the log names
// the protocol.
func TestStrangersAreNamed(t *testing.T) {
	for _, c := range []struct{ name, sends, want string }{
		{"browser", "GET / HTTP/1.1\r\nHost: example.net\r\n\r\n" + strings.Repeat(" ", 60), "speaks HTTP"},
		{"tls", "\x16\x03\x01\x02\x00\x01" + strings.Repeat("x", 60), "speaks TLS"},
		{"ssh", "SSH-2.0-OpenSSH_9.2p1 Debian" + strings.Repeat(" ", 60), "speaks SSH"},
		{"iperf3", "abcdefghijklmnopqrstuvwxyz234567abcd\x00" + strings.Repeat("\x00", 60), "speaks iperf3"},
		{"nuttcp", "HELO nuttcp v6.1.2\n" + strings.Repeat(" ", 60), "speaks nuttcp"},
		{"slow", "@\x01", "only 2 bytes came"},
		{"silent", "", "nothing came"},
		{"bounceback", "\x00\x80\x00\x00\x7f\xff\xff\xff" + strings.Repeat("\x00", 92), "messages of 2147483647 bytes"},
		{"bounceback of nothing", "\x00\x80\x00\x00" + strings.Repeat("\x00", 96), "messages of 0 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var conn *net.TCPConn
			_, j := serve(t, admission.Limits{}, func(s *Server) { // what it sends is there before the second begins
				s.timing.settings = time.Second
				conn = dial(t, s)
				if _, err := io.WriteString(conn, c.sends); err != nil {
					t.Fatal(err)
				}
			})
			j.Await(t, 1, c.want)
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection is not closed: %v", err)
			}
		})
	}
}

// TestServesOnAfterAStranger checks that a refused connection leaves the server usable.
func TestServesOnAfterAStranger(t *testing.T) {
	s, j := serve(t, admission.Limits{}, nil)
	stranger := dial(t, s)
	_, _ = io.WriteString(stranger, "GET / HTTP/1.1\r\n"+strings.Repeat(" ", 80))
	j.Await(t, 1, "speaks HTTP")
	conn := dial(t, s)
	_, _ = conn.Write(make([]byte, 1000))
	_ = conn.CloseWrite()
	j.Await(t, 1, "received 1000 bytes")
}

// TestIdleConnectionsTakeNoPlaces checks that silent connections do not keep clients out.
func TestIdleConnectionsTakeNoPlaces(t *testing.T) {
	s, j := serve(t, admission.Limits{Clients: 1}, nil)
	for range 20 {
		dial(t, s)
	}
	conn := dial(t, s)
	_, _ = conn.Write(make([]byte, 500))
	_ = conn.CloseWrite()
	j.Await(t, 1, "received 500 bytes")
}

// TestOnePlacePerTest checks that the connections of one test share a visit, and those of another
// do not.
func TestOnePlacePerTest(t *testing.T) {
	s, j := serve(t, admission.Limits{Clients: 1}, nil)
	head := make([]byte, settingsBytes)
	settings{streams: 4, bytes: 1000}.put(head, false)
	for range 5 {
		conn := dial(t, s)
		_, _ = conn.Write(head)
	}
	j.Await(t, 1, "1 test is being served")
}

func TestBudgets(t *testing.T) {
	s, j := serve(t, admission.Limits{Bytes: 1 << 20}, nil)
	conn := dial(t, s)
	go func() { _, _ = conn.Write(make([]byte, 64<<20)) }()
	j.Await(t, 1, "that this host allows per test are used up")
	head := make([]byte, settingsBytes)
	settings{reverse: true, bytes: 1 << 30, streams: 1}.put(head, false)
	conn = dial(t, s)
	_, _ = conn.Write(head)
	if n, _ := io.Copy(io.Discard, conn); n > 1<<20 {
		t.Errorf("%d bytes sent to a client that may have %d", n, 1<<20)
	}
}

// TestConnectsBackToTheClientAlone has clients that request a connection back, one of them to the
// port of a service. The server connects to the address of the client, and to no such port.
func TestConnectsBackToTheClientAlone(t *testing.T) {
	s, j := serve(t, admission.Limits{}, nil)
	ask := func(port int) {
		t.Helper()
		head := make([]byte, settingsBytes)
		settings{port: port, bytes: 1000, streams: 1}.put(head, false)
		binary.BigEndian.PutUint32(head, binary.BigEndian.Uint32(head)|flagConnect|flagAtOnce)
		conn := dial(t, s)
		if _, err := conn.Write(head); err != nil {
			t.Fatal(err)
		}
		_ = conn.CloseWrite()
	}
	for _, port := range []int{0, 22, lowestPort - 1, 1 << 16, 1<<31 - 1} {
		ask(port)
		j.Await(t, 1, fmt.Sprintf("connect back: port %d is not within 1024 and 65535", port))
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ask(l.Addr().(*net.TCPAddr).Port)
	_ = l.SetDeadline(time.Now().Add(time.Minute))
	back, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if from := service.From(back).Addr(); from != s.Addr().Addr() {
		t.Errorf("comes from %v, the client called %v", from, s.Addr())
	}
	got, err := io.ReadAll(back)
	if err != nil || len(got) != 1000 || looksLikeSettings(got) {
		t.Errorf("%d bytes, settings %v, %v", len(got), looksLikeSettings(got), err)
	}
	_ = back.Close()
	j.Await(t, 1, "sent 1000 bytes")
	// No listener: the client reads why in nothing, and the server's log has it.
	_ = l.Close()
	ask(l.Addr().(*net.TCPAddr).Port)
	j.Await(t, 1, "connect back: dial tcp")
}

// TestFirstHalfEndsBeforeTheSecond has a client that requests both directions one after the other.
// The program measures its own direction until the server closes that connection, so it has to be
// closed while the other direction still runs.
func TestFirstHalfEndsBeforeTheSecond(t *testing.T) {
	// The connection back is not read and never ends.
	s, _ := serve(t, admission.Limits{}, func(s *Server) { s.timing.idle = time.Hour })
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	head := make([]byte, settingsBytes)
	settings{port: l.Addr().(*net.TCPAddr).Port, bytes: 1 << 30, streams: 1}.put(head, false)
	binary.BigEndian.PutUint32(head, binary.BigEndian.Uint32(head)|flagConnect)
	conn := dial(t, s)
	if _, err := conn.Write(head); err != nil {
		t.Fatal(err)
	}
	_ = conn.CloseWrite()
	_ = l.SetDeadline(time.Now().Add(time.Minute))
	back, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("the first half is still open during the second: %v", err)
	}
}

// TestShortEndsBack checks that the ends of a stream for a client that listens (-d) are no more
// than what came from it, also where its datagrams after the first are short.
func TestShortEndsBack(t *testing.T) {
	s, _ := serve(t, admission.Limits{}, nil)
	for _, n := range []int{20, markBytes + settingsBytes, 500} {
		l, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := net.Dial("udp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		out := atOnce(l.LocalAddr().(*net.UDPAddr).Port, max(n, markBytes+settingsBytes))
		asked, answered := 0, 0
		for id := int64(1); id <= 20; id++ {
			mark{id: id, wide: true}.put(out)
			_, _ = c.Write(out) // loopback takes it
			asked += len(out) + packetHeaders
			out = out[:n]
		}
		in := make([]byte, 2000)
		for range 4 {
			_ = l.SetReadDeadline(time.Now().Add(time.Minute))
			size, err := l.Read(in)
			if err != nil {
				t.Fatalf("datagrams of %d bytes: %v", n, err)
			}
			if answered += size + packetHeaders; answered > asked {
				t.Errorf("%d bytes for %d", answered, asked)
			}
		}
	}
}

// atOnce returns the first datagram, of n bytes, of a client that listens at a port while it sends.
func atOnce(port, n int) []byte {
	out := make([]byte, n)
	settings{port: port, streams: 1, duration: time.Second}.put(out[markBytes:], true)
	flags := out[markBytes:]
	binary.BigEndian.PutUint32(flags, binary.BigEndian.Uint32(flags)|flagConnect|flagAtOnce)
	mark{id: 1, wide: true}.put(out)
	return out
}

// TestEndsBackOverTime has a client whose port opens late: the end of a stream comes there again,
// more and more rarely, and not after the client's own end.
func TestEndsBackOverTime(t *testing.T) {
	for _, c := range []struct {
		name         string
		every        time.Duration // between two datagrams
		datagrams    int64
		milliseconds []int64 // when the end comes, from the first datagram
	}{
		{"1 Mb/s", time.Millisecond, 30_000,
			[]int64{1, 2, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120}},
		{"few", 100 * time.Millisecond, 10, []int64{100, 200, 300, 400, 500, 600, 700, 800, 900}},
		{"one", time.Millisecond, 1, nil},
	} {
		table := newFlowTable(t.Logf, 0)
		from := netip.MustParseAddrPort("192.0.2.1:4000")
		start := time.Hour // of the clock
		var at []int64
		for id := int64(1); id <= c.datagrams; id++ {
			p, after := atOnce(5001, 100), time.Duration(id-1)*c.every
			mark{id: id, wide: true}.put(p)
			_, due := table.take(p, from, start+after)
			if port := table.listener(from, due); port == 5001 {
				at = append(at, after.Milliseconds())
			}
		}
		if !slices.Equal(at, c.milliseconds) {
			t.Errorf("%s: ends after %d ms, want %d", c.name, at, c.milliseconds)
		}
	}
}

// TestBackSocketsEndWithTheirFlows: a flow keeps its socket to the port where its client waits, and
// the table closes it when the flow goes, so that strangers take no descriptors.
func TestBackSocketsEndWithTheirFlows(t *testing.T) {
	for name, end := range map[string]func(*flowTable, netip.AddrPort){
		"silence":   func(table *flowTable, _ netip.AddrPort) { table.sweep(time.Hour, time.Second) },
		"next test": func(table *flowTable, from netip.AddrPort) { table.insert(from, &flow{}) },
		"full table": func(table *flowTable, _ netip.AddrPort) {
			for i := range maxFlows {
				table.insert(netip.AddrPortFrom(loopback.Addr(), uint16(10_000+i)), &flow{count: count{received: 9}})
			}
		},
	} {
		table := newFlowTable(t.Logf, 0)
		from := netip.AddrPortFrom(loopback.Addr(), 4000)
		table.take(atOnce(5001, 100), from, 0)
		conn := table.backSocket(from, loopback.Addr())
		if conn == nil || table.backSocket(from, loopback.Addr()) != conn {
			t.Fatalf("%s: no socket, or another one for the same flow", name)
		}
		end(table, from)
		if _, err := conn.WriteToUDPAddrPort([]byte{0}, loopback); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the socket is open: %v", name, err)
		}
	}
	if conn := newFlowTable(t.Logf, 0).backSocket(loopback, loopback.Addr()); conn != nil {
		t.Error("a socket without a flow")
	}
}

// TestNoEndAfterOneIsTaken: a client that has confirmed the end of a stream gets no other one, of
// which the program would warn.
func TestNoEndAfterOneIsTaken(t *testing.T) {
	table := newFlowTable(t.Logf, 0)
	from := netip.AddrPortFrom(loopback.Addr(), 4000)
	for id := int64(1); id <= 2; id++ {
		p := atOnce(5001, 100)
		mark{id: id, wide: true}.put(p)
		table.take(p, from, 0)
	}
	f, conn := table.flows[from], table.backSocket(from, loopback.Addr())
	if !f.backEndDue() {
		t.Fatal("no end is due at the second datagram")
	}
	c, err := net.DialUDP("udp", nil, conn.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, reportBytes)); err != nil {
		t.Fatal(err)
	}
	for !f.taken.Load() {
		time.Sleep(time.Millisecond)
	}
	if f.heard = time.Hour; f.backEndDue() {
		t.Error("another end is due")
	}
	table.forget(from)
}

// TestNothingIsReflected checks that no more is sent to an address than came from it, that every
// test gets its report all the same, and that the server sends no datagrams of data.
func TestNothingIsReflected(t *testing.T) {
	s, j := serve(t, admission.Limits{}, nil)
	in := make([]byte, 2000)
	for _, n := range []int{bareMarkBytes, 20, 55, 56, 76, 127, 500} {
		c, err := net.Dial("udp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		left := 0
		for _, id := range []int64{1, 2, 3, -4, -5, -6} {
			out := make([]byte, max(n, markBytes))
			mark{id: id}.put(out)
			_, _ = c.Write(out[:n])
			left += n + packetHeaders
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		got, err := c.Read(in)
		if err != nil {
			t.Errorf("no report for datagrams of %d bytes: %v", n, err)
		}
		for ; err == nil; got, err = c.Read(in) {
			if left -= got + packetHeaders; left < 0 {
				t.Errorf("datagrams of %d bytes: %d bytes too many in answer", n, -left)
			}
			_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // for more than is due
		}
	}
	out := make([]byte, 500)
	mark{id: 1}.put(out)
	settings{reverse: true, duration: time.Second}.put(out[markBytes:], true)
	c2, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c2.Close()
	for range 3 {
		_, _ = c2.Write(out)
	}
	j.Await(t, 1, "nothing proves that the address is its own")
	// Each request is answered by the end of a stream of nothing, so that the client does not wait.
	for range 3 {
		_ = c2.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := c2.Read(in)
		m, ok := parseMark(in[:n])
		if err != nil || n > len(out) || !ok || m.id != -1 {
			t.Errorf("%d bytes for a client that asked for datagrams, %+v, %v", n, m, err)
		}
	}
	_ = c2.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := c2.Read(in); err == nil {
		t.Errorf("%d more bytes for a client that asked for datagrams", n)
	}
}

// TestOldClientsGetTheirReport sends what a client of 2.0.5 does (Client.cpp, UDP_datagram and
// server_hdr of Settings.hpp): numbers from 0 on after which the settings follow at once, and the
// report is where they are.
func TestOldClientsGetTheirReport(t *testing.T) {
	s, j := serve(t, admission.Limits{}, nil)
	c, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := make([]byte, 100)
	// With -l 100, whose number of bytes could be that of a port.
	for i, v := range []uint32{0, 1, 5001, 100, 1 << 20, 500} {
		binary.BigEndian.PutUint32(out[bareMarkBytes+4*i:], v)
	}
	for _, id := range []int32{0, 1, 3, 4, -5} {
		binary.BigEndian.PutUint32(out, uint32(id))
		_, _ = c.Write(out) // loopback takes it
	}
	in := make([]byte, 2000)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := c.Read(in)
	word := func(i int) uint32 { return binary.BigEndian.Uint32(in[bareMarkBytes+4*i:]) }
	if err != nil || n != 52 || word(0)&flagConnect == 0 || word(2) != 400 || word(5) != 1 || word(7) != 5 {
		t.Errorf("%d bytes, %v: flags %#x, %d bytes, lost %d of %d", n, err, word(0), word(2), word(5), word(7))
	}
	j.Await(t, 1, "received 4 of 5 datagrams")
}

// TestForgedAddressesTakeNoPlaceFromTests fills the table with addresses that send one datagram
// each while a test runs.
func TestForgedAddressesTakeNoPlaceFromTests(t *testing.T) {
	table := newFlowTable(func(string, ...any) {}, 0)
	p := make([]byte, 100)
	honest := netip.MustParseAddrPort("192.0.2.1:1000")
	for i := range 10 * maxFlows {
		mark{id: int64(i + 1)}.put(p)
		table.take(p, honest, 0)
		mark{id: 1}.put(p)
		table.take(p, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 5), 0)
	}
	if f := table.flows[honest]; len(table.flows) > maxFlows || f == nil || f.received != 10*maxFlows {
		t.Errorf("%d flows; the honest one: %+v", len(table.flows), f)
	}
}

// TestEarlyDeath ends a client in the middle, in both directions, and the server in the middle of a
// test.
func TestEarlyDeath(t *testing.T) {
	s, j := serve(t, admission.Limits{}, nil)
	conn := dial(t, s)
	_, _ = conn.Write(make([]byte, 100_000))
	_ = conn.SetLinger(0)
	_ = conn.Close()
	j.Await(t, 1, "ended early")
	head := make([]byte, settingsBytes)
	settings{reverse: true, duration: time.Minute, streams: 1}.put(head, false)
	conn = dial(t, s)
	_, _ = conn.Write(head)
	_, _ = io.CopyN(io.Discard, conn, 1<<20)
	_ = conn.Close()
	j.Await(t, 2, "ended early")
	conn = dial(t, s) // left open: the end of the server must not wait for it
	_, _ = conn.Write(append(head, make([]byte, 1000)...))
	_, _ = fmt.Fprint(conn, "more")
}

// TestForgedFlowsDoNotFloodTheLog requests datagrams, and begins and ends tests, from a thousand
// addresses each, as forged datagrams can.
func TestForgedFlowsDoNotFloodTheLog(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		var lines []string
		s := NewServer(ServerOptions{Log: func(line string) { lines = append(lines, line) }})
		p := make([]byte, markBytes+settingsBytes)
		settings{reverse: reverse}.put(p[markBytes:], true)
		for i := range uint16(1000) {
			from := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), i)
			for _, id := range []int64{1, -2} {
				mark{id: id}.put(p)
				s.flows.take(p, from, 1)
			}
		}
		if len(lines) != admission.ClientLines {
			t.Errorf("reverse %v: %d lines", reverse, len(lines))
		}
	}
}

// TestRefusedOnce checks that a refused client is logged once, although it repeats its request,
// also with numbers that begin a test.
func TestRefusedOnce(t *testing.T) {
	var lines []string
	s := NewServer(ServerOptions{Log: func(line string) { lines = append(lines, line) }})
	p := make([]byte, markBytes+settingsBytes)
	settings{reverse: true}.put(p[markBytes:], true)
	for i := range 60 {
		mark{id: int64(1 + i%2)}.put(p)
		if _, due := s.flows.take(p, loopback, 1); due != theEnd {
			t.Errorf("answer %v is due", due)
		}
	}
	s.flows.sweep(time.Hour, time.Second)
	if len(lines) != 1 || len(s.flows.flows) != 0 {
		t.Errorf("%d flows left, log %q", len(s.flows.flows), lines)
	}
}

// TestFullDuplexGetsNoDatagrams receives what such a client sends, reports it, and ends the half
// that nothing proves to be wanted.
func TestFullDuplexGetsNoDatagrams(t *testing.T) {
	var lines []string
	s := NewServer(ServerOptions{Log: func(line string) { lines = append(lines, line) }})
	p := make([]byte, markBytes+settingsBytes)
	settings{duplex: true}.put(p[markBytes:], true)
	ends := 0
	for id := range int64(100) {
		mark{id: id + 1}.put(p)
		_, due := s.flows.take(p, loopback, time.Duration(id))
		if due == theEnd {
			ends++
		}
		if id == 0 && due != noAnswer {
			t.Error("the first datagram was answered: both threads of the program still wait then")
		}
	}
	mark{id: -101}.put(p)
	r, due := s.flows.take(p, loopback, 100)
	if due != theReport || r.datagrams != 101 || r.lost != 0 || ends != mostEnds {
		t.Errorf("answer %v, %+v, after %d ends", due, r, ends)
	}
	if len(lines) != 2 {
		t.Errorf("log %q", lines)
	}
}

// TestServicesAreNotAnswered forges requests from the ports of services, whose answers to an answer
// would go on for ever.
func TestServicesAreNotAnswered(t *testing.T) {
	s := NewServer(ServerOptions{})
	p := make([]byte, markBytes+settingsBytes)
	from := netip.AddrPortFrom(loopback.Addr(), lowestPort-1)
	for _, id := range []int64{1, -2} {
		mark{id: id}.put(p)
		s.ServePacket(service.Datagram{Payload: p, From: from, At: time.Now()})
	}
	// The gate was not even asked: had it been, a bucket would be less than full.
	if !s.o.Gate.Allow(from.Addr(), int(s.o.Gate.Limits().PacketsPerSecond), 0) {
		t.Error("a service was answered")
	}
}

// TestManyConnectionsAtOnce opens as many connections as a test may have before any of them sends
// data: the server greets all of them.
func TestManyConnectionsAtOnce(t *testing.T) {
	s, _ := serve(t, admission.Limits{}, nil)
	var conns []net.Conn
	for range maxStreams {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		conns = append(conns, c)
	}
	p := make([]byte, settingsBytes)
	settings{streams: maxStreams, bytes: settingsBytes}.put(p, false)
	for i, c := range conns {
		_, _ = c.Write(p) // the read detects a refused connection
		if _, err := io.ReadFull(c, make([]byte, greetingBytes)); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
}
