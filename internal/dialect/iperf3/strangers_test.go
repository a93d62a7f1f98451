package iperf3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// TestByteByByte sends every byte of a client as a segment of its own.
func TestByteByByte(t *testing.T) {
	t.Parallel()
	addr, _ := ourServer(t, "127.0.0.1:0", admission.Limits{})
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	slowly := func(s string) {
		t.Helper()
		for i := range len(s) {
			if _, err := c.Write([]byte{s[i]}); err != nil {
				t.Fatal(err)
			}
		}
	}
	slowly(seenCookie)
	expectState(t, c, paramExchange)
	slowly("\x00\x00\x00\x80" + seenParams)
	expectState(t, c, createStreams)
	data, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	fmt.Fprint(data, seenCookie)
	expectState(t, c, testStart)
	expectState(t, c, testRunning)
	fmt.Fprint(data, strings.Repeat("x", 5000))
	slowly("\x04")
	expectState(t, c, exchangeResults)
	results := `{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,` +
		`"streams":[{"id":1,"bytes":5000,"retransmits":-1,"jitter":0,"errors":0,"packets":0}]}`
	slowly(string(binary.BigEndian.AppendUint32(nil, uint32(len(results)))) + results)
	body, err := (control{conn: c}).readMessage(1<<20, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := decodeResults(body, 1); err != nil || r.Streams[0].Bytes != 5000 {
		t.Errorf("%s: %v", body, err)
	}
	expectState(t, c, displayResults)
	slowly("\x10")
}

// exchange sends the results of a client, and returns those of the server.
func exchange(t *testing.T, c net.Conn, own string, streams int) results {
	t.Helper()
	if err := (control{conn: c}).writeMessage([]byte(own), time.Minute); err != nil {
		t.Fatal(err)
	}
	body, err := (control{conn: c}).readMessage(1<<20, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r, err := decodeResults(body, streams)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// TestAgreedTimeEndsTheCount sends on one of two streams what was still under way when the test
// ended. It belongs to no rate of that time, however long a slow stream goes on. Of an amount it
// counts.
func TestAgreedTimeEndsTheCount(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]int64{`"time":1`: 1000, `"num":101000`: 101_000} {
		t.Run(amount, func(t *testing.T) {
			t.Parallel()
			addr, _ := ourServer(t, "127.0.0.1:0", admission.Limits{})
			dial := func() net.Conn {
				d, err := net.Dial("tcp", addr.String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = d.Close() })
				fmt.Fprint(d, seenCookie)
				return d
			}
			c := dial()
			expectState(t, c, paramExchange)
			params := `{"tcp":true,"omit":0,` + amount + `,"parallel":2,"len":1000,"client_version":"3.12"}`
			if err := (control{conn: c}).writeMessage([]byte(params), time.Minute); err != nil {
				t.Fatal(err)
			}
			expectState(t, c, createStreams)
			data := [2]net.Conn{dial(), dial()}
			expectState(t, c, testStart)
			expectState(t, c, testRunning)
			fmt.Fprint(data[0], strings.Repeat("x", 1000))
			if strings.Contains(amount, "time") {
				time.Sleep(time.Second) // the agreed time; longer does no harm
			}
			_, _ = c.Write([]byte{byte(testEnd)})
			expectState(t, c, exchangeResults)
			fmt.Fprint(data[1], strings.Repeat("x", 100_000))
			message := func(id, bytes int) string {
				return fmt.Sprintf(`{"id":%d,"bytes":%d,"retransmits":-1,"jitter":0,"errors":0,"packets":0}`, id, bytes)
			}
			results := `{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,` +
				`"streams":[` + message(1, 1000) + "," + message(3, 100_000) + `]}`
			r := exchange(t, c, results, 2)
			// A server that had no CPU for a second may have read nothing in time.
			got := r.Streams[0].Bytes + r.Streams[1].Bytes
			if got > want || got < want && strings.Contains(amount, "num") {
				t.Errorf("%d bytes counted, want %d: %+v", got, want, r)
			}
		})
	}
}

// TestScanDoesNotFloodTheLog checks that only some of many strangers get a line in the log.
func TestScanDoesNotFloodTheLog(t *testing.T) {
	addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{})
	for range 3 * admission.StrangerLines {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("not turned away: %v", err)
		}
		_ = conn.Close()
	}
	// The line is written after the connection is closed, so the last one may still be missing.
	said.Await(t, admission.StrangerLines, "turned away")
	if n := len(said.Find("turned away")); n != admission.StrangerLines {
		t.Errorf("%d lines for %d strangers", n, 3*admission.StrangerLines)
	}
}

// TestStrangers opens connections that are no clients: each is closed with a reason in the log, and
// clients are served meanwhile.
func TestStrangers(t *testing.T) {
	t.Parallel()
	hasty, saidSoon := ourServer(t, "127.0.0.1:0", admission.Limits{}, func(s *Server) { s.cookieWithin = time.Second })
	addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{})
	var open []net.Conn
	say := func(addr netip.AddrPort, s string) net.Conn {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		fmt.Fprint(c, s)
		return c
	}
	say(hasty, "")        // stays silent
	say(addr, seenCookie) // and stalls
	say(hasty, "qwmfdye") // half a cookie
	say(addr, "GET / HTTP/1.1\r\n\r\n")
	say(addr, "\x40\x01\x00\x78"+strings.Repeat("\x00", 56)) // iperf2
	say(addr, strings.Repeat("\xff", 5000))
	say(addr, strings.Replace(seenCookie, "q", "a", 1)+"\x7f\xff\xff\xff{")     // a length of 2 GiB
	say(addr, strings.Replace(seenCookie, "q", "b", 1)+"\x00\x00\x00\x05[1,2]") // no object
	// a length of datagrams is missing
	say(addr, strings.Replace(seenCookie, "q", "c", 1)+"\x00\x00\x00\x0f{\"udp\":true}   ")
	dialParams(t, addr, `{"tcp":true,"parallel":128}`) // opens no stream
	if _, err := Run(t.Context(), addr.String(), traffic.Spec{Test: traffic.Stream, Bytes: 100_000}, ClientOptions{},
		nil); err != nil {
		t.Errorf("a client beside them: %v", err)
	}
	for _, want := range []string{"speaks HTTP", "speaks iperf2", "speaks something unknown", "are more than 8192",
		"parameters: json", "datagrams of 0 bytes"} {
		said.Await(t, 1, want)
	}
	saidSoon.Await(t, 2, "no whole cookie")
	// The server closes all but those that may still open streams.
	for _, c := range open[2:7] {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a stranger is still connected")
		}
	}
	for _, c := range open {
		_ = c.Close()
	}
}

// TestHellosFromNowhere sends datagrams without a control connection: they get no answer.
func TestHellosFromNowhere(t *testing.T) {
	t.Parallel()
	addr, _ := ourServer(t, "127.0.0.1:0", admission.Limits{})
	ask := func() error {
		c, err := net.Dial("udp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, p := range []string{"9876", "", "x", strings.Repeat("9876", 100)} {
			fmt.Fprint(c, p)
		}
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err = c.Read(make([]byte, 10))
		return err
	}
	if ask() == nil {
		t.Error("an answer to an unknown address")
	}
	dialParams(t, addr, `{"tcp":true}`) // a client, but not of UDP
	if ask() == nil {
		t.Error("an answer to a client of TCP")
	}
	c := dialParams(t, addr, `{"udp":true,"len":100,"parallel":1}`)
	expectState(t, c, createStreams)
	u, err := net.Dial("udp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	answered := make([]byte, 10)
	fmt.Fprint(u, "9876")
	_ = u.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := u.Read(answered); err != nil || string(answered[:n]) != "6789" {
		t.Errorf("%q, %v", answered[:n], err)
	}
	expectState(t, c, testStart)
	if ask() == nil {
		t.Error("an answer after the last stream was opened")
	}
}

// TestDatagramsEndTheCount has a client that is slow to send its results. The rate of its datagrams
// is that of the time until its test or the last of them ended, and not until the server looked.
func TestDatagramsEndTheCount(t *testing.T) {
	t.Parallel()
	addr, _ := ourServer(t, "127.0.0.1:0", admission.Limits{})
	c := dialParams(t, addr, `{"udp":true,"omit":0,"time":1,"len":100,"parallel":1,"client_version":"3.12"}`)
	expectState(t, c, createStreams)
	u, err := net.Dial("udp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	began := time.Now() // before the server's clock starts
	fmt.Fprint(u, "9876")
	expectState(t, c, testStart)
	expectState(t, c, testRunning)
	datagram := make([]byte, 100)
	for n := range 10 {
		binary.BigEndian.PutUint32(datagram[8:], uint32(n+1))
		_, _ = u.Write(datagram)
	}
	_, _ = c.Write([]byte{byte(testEnd)})
	expectState(t, c, exchangeResults)
	most := time.Since(began)
	time.Sleep(500 * time.Millisecond)
	results := `{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[` +
		`{"id":1,"bytes":1000,"retransmits":-1,"jitter":0,"errors":0,"packets":10}]}`
	if s := exchange(t, c, results, 1).Streams[0]; s.Packets != 10 || s.EndSeconds > most.Seconds() {
		t.Errorf("%d datagrams in %.3f s, want 10 in %v at most", s.Packets, s.EndSeconds, most)
	}
}

// TestUDPTestsOfOneAddressTakeTurns opens three tests at once. A hello does not identify its test,
// so the server asks the second test for its streams once the first has all of its own, and skips
// one that has left.
func TestUDPTestsOfOneAddressTakeTurns(t *testing.T) {
	t.Parallel()
	addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{})
	var clients []net.Conn
	for range 3 {
		c := dialParams(t, addr, `{"udp":true,"len":100,"parallel":1,"reverse":true,"time":60}`)
		clients = append(clients, c)
		if len(clients) == 1 {
			expectState(t, c, createStreams)
		}
	}
	_ = clients[1].Close()
	said.Await(t, 1, "broken off", "went away")
	if s, err := (control{conn: clients[2]}).readState(10 * time.Millisecond); err == nil {
		t.Errorf("the third hears %v while the first has no streams", s)
	}
	var ports []net.Conn
	for _, c := range []net.Conn{clients[0], clients[2]} {
		if c != clients[0] {
			expectState(t, c, createStreams)
		}
		u, err := net.Dial("udp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		fmt.Fprint(u, "9876")
		expectState(t, c, testStart)
		expectState(t, c, testRunning)
		ports = append(ports, u)
	}
	// Each gets datagrams at the port that it has opened.
	for i, u := range ports {
		_ = u.SetReadDeadline(time.Now().Add(time.Minute))
		p := make([]byte, 200)
		for n := 0; n != 100; {
			var err error
			if n, err = u.Read(p); err != nil {
				t.Fatalf("stream of test %d: %v", i, err)
			}
		}
	}
}

// TestLostAnswers repeats a hello while other streams are still missing.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	addr, _ := ourServer(t, "127.0.0.1:0", admission.Limits{})
	c := dialParams(t, addr, `{"udp":true,"len":100,"parallel":2}`)
	expectState(t, c, createStreams)
	u, err := net.Dial("udp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for range 3 {
		fmt.Fprint(u, "9876")
		_ = u.SetReadDeadline(time.Now().Add(time.Minute))
		p := make([]byte, 10)
		if n, err := u.Read(p); err != nil || string(p[:n]) != "6789" {
			t.Errorf("%q, %v", p[:n], err)
		}
	}
}

// TestMemoryStaysFlat sends garbage to the server and checks its heap.
func TestMemoryStaysFlat(t *testing.T) {
	addr, _ := ourServer(t, "127.0.0.1:0", admission.Limits{})
	throw := func(n int) {
		for i := range n {
			c, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Fatal(err)
			}
			cookie := newCookie()
			switch i % 3 {
			case 0:
				fmt.Fprint(c, strings.Repeat("\x01", 100))
			case 1:
				fmt.Fprintf(c, "%s\x00\x00\x20\x00%s", cookie[:], strings.Repeat("{", 8192))
			default:
				fmt.Fprintf(c, "%s\x00\x00\x00\x0d{\"udp\":false}", cookie[:])
			}
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}
	inUse := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	throw(50)
	before := inUse()
	throw(600)
	if after := inUse(); after > before+2<<20 {
		t.Errorf("%d bytes of heap before, %d after 600 strangers", before, after)
	}
}

// dialParams connects as a client and sends its parameters.
func dialParams(t *testing.T, addr netip.AddrPort, params string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	cookie := newCookie()
	if _, err := c.Write(cookie[:]); err != nil {
		t.Fatal(err)
	}
	expectState(t, c, paramExchange)
	if err := (control{conn: c}).writeMessage([]byte(params), time.Minute); err != nil {
		t.Fatal(err)
	}
	return c
}

func expectState(t *testing.T, c net.Conn, want state) {
	t.Helper()
	if s, err := (control{conn: c}).readState(time.Minute); err != nil || s != want {
		t.Fatalf("the server says %v, %v; want %v", s, err, want)
	}
}
