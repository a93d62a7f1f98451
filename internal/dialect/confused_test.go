package dialect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// TestStrangersOnASharedPort checks that a client of a protocol that is not served on a port is
// refused, and that the log names its protocol.
func TestStrangersOnASharedPort(t *testing.T) {
	port := uint16(freePort(t))
	for _, names := range [][]string{{"iperf2", "ttcp"}, {"iperf2"}, {"ttcp"}} {
		t.Run(strings.Join(names, "+"), func(t *testing.T) {
			var accept []Acceptance
			for _, n := range names {
				accept = append(accept, Acceptance{n, port})
			}
			_, j := serve(t, accept, admission.Limits{})
			for what, head := range map[string]string{
				"HTTP": "GET / HTTP/1.1\r\nHost: example.net\r\n",
				"TLS":  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
				"SSH":  "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "iperf3": "abcdefghijklmnopqrstuvwxyz234567abcd\x00",
				"nuttcp": "HELO nuttcp v6.1.2\n",
			} {
				conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(conn, head+strings.Repeat(" ", 64-len(head)))
				j.Await(t, 1, "speaks "+what)
				_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
				if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: the connection is not closed: %v", what, err)
				}
				_ = conn.Close()
			}
		})
	}
}

// TestClientsOfOtherDialects runs every client against a server of every other dialect: it must end
// with an error, and the server must then serve its own clients.
func TestClientsOfOtherDialects(t *testing.T) {
	var accept []Acceptance
	for _, n := range []string{"iperf3", "iperf2", "nuttcp"} {
		accept = append(accept, Acceptance{n, uint16(freePort(t))})
	}
	s, _ := serve(t, accept, admission.Limits{})
	target := func(i int) string { return s.places[i].Address.String() }
	for _, scheme := range []string{"iperf3", "nuttcp"} {
		for i, a := range accept {
			if a.Dialect == scheme {
				continue
			}
			t.Run(scheme+" to "+a.Dialect, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				spec := traffic.Spec{Test: traffic.Stream, Duration: 50 * time.Millisecond}
				_, err := Run(ctx, scheme, target(i), spec, ClientOptions{DataPort: freePort(t)}, nil)
				if err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
			})
		}
	}
	for i, a := range accept {
		spec := traffic.Spec{Test: traffic.Stream, Bytes: 1 << 20}
		r, err := Run(t.Context(), a.Dialect, target(i), spec, ClientOptions{DataPort: freePort(t)}, nil)
		if err != nil || r.Bytes != spec.Bytes {
			t.Errorf("%s: %v, %+v", a.Dialect, err, r)
		}
	}
}

// TestFarEndDies ends the far end in the middle of a test: the client reports that and leaves
// nothing behind.
func TestFarEndDies(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, conn, 1<<20)
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}()
	for _, scheme := range []string{"iperf2", "ttcp"} {
		_, err := Run(t.Context(), scheme, l.Addr().String(),
			traffic.Spec{Test: traffic.Stream, Duration: 5 * time.Minute}, ClientOptions{}, nil)
		if !errors.Is(err, traffic.ErrPeerGone) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s, _ := serve(t, []Acceptance{{"iperf2", 0}}, admission.Limits{})
	_, err = Run(ctx, "iperf2", s.places[0].Address.String(), traffic.Spec{Test: traffic.Stream, Duration: time.Minute},
		ClientOptions{}, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a test whose context ended: %v", err)
	}
}

func TestImpossibleSpecs(t *testing.T) {
	for name, c := range map[string]struct {
		scheme string
		spec   traffic.Spec
	}{
		"no dialect":         {"iperf9", traffic.Spec{Test: traffic.Stream}},
		"iperf2 rr":          {"iperf2", traffic.Spec{Test: traffic.RR}},
		"iperf2 udp down":    {"iperf2", traffic.Spec{Test: traffic.UDP, Direction: traffic.Down}},
		"iperf2 small":       {"iperf2", traffic.Spec{Test: traffic.UDP, PacketBytes: 64}},
		"warm-up":            {"iperf2", traffic.Spec{Test: traffic.Stream, WarmUp: time.Second}},
		"ttcp down":          {"ttcp", traffic.Spec{Test: traffic.Stream, Direction: traffic.Down}},
		"ttcp streams":       {"ttcp", traffic.Spec{Test: traffic.Stream, Streams: 2}},
		"nuttcp bidir":       {"nuttcp", traffic.Spec{Test: traffic.Stream, Direction: traffic.Bidir}},
		"nuttcp udp streams": {"nuttcp", traffic.Spec{Test: traffic.UDP, Streams: 2}},
		"nuttcp part block":  {"nuttcp", traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Bytes: 100_000}},
	} {
		_, err := Run(t.Context(), c.scheme, "127.0.0.1:1", c.spec, ClientOptions{}, nil)
		if !errors.Is(err, traffic.ErrBadSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSilentConnectionsLeavePlaces opens more silent connections from one address than there are
// places for it: another address is still served.
func TestSilentConnectionsLeavePlaces(t *testing.T) {
	port := uint16(freePort(t))
	_, said := serve(t, []Acceptance{{"iperf2", port}, {"ttcp", port}}, admission.Limits{})
	at := fmt.Sprintf("127.0.0.1:%d", port)
	for range maxPeeking {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	said.Await(t, 1, "too many silent connections")
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := d.Dial("tcp", at)
	if err != nil {
		testenv.Missing(t, testenv.Network, "a second address of loopback: ", err)
	}
	defer conn.Close()
	_, _ = conn.Write(make([]byte, 1000))
	_ = conn.(*net.TCPConn).CloseWrite()
	said.Await(t, 1, "127.0.0.2", "received 1000 bytes")
}

// TestConnectionsThatBreakBeforeTheirFirstByte has one connection that the client resets, and one
// that is open when the server ends. Peeking at their first bytes fails in both cases.
func TestConnectionsThatBreakBeforeTheirFirstByte(t *testing.T) {
	port := uint16(freePort(t))
	_, said := serve(t, []Acceptance{{"iperf2", port}, {"ttcp", port}}, admission.Limits{})
	for _, reset := range []bool{true, false} {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if reset {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
			said.Await(t, 1, "turned away", c.LocalAddr().String())
		}
	}
}
