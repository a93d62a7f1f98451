package load

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/resolver/answer"
)

func TestCancelEndsEarly(t *testing.T) {
	t.Parallel()
	s := serve(t, answer.Options{})
	for _, transport := range []Transport{UDP, TCP} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := Run(ctx, Options{Server: s.Addr(), Transport: transport, Rate: 1000, Duration: time.Hour,
			Interval: 100 * time.Millisecond, Timeout: MaxTimeout, Names: questions(t)}, func(i Interval) {
			if i.AnswersPerSecond > 0 { // the first interval may end before a connection is there
				cancel()
			}
		})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if r.Answers == 0 || r.Answers+r.Interrupted != r.Queries || r.DurationSeconds > 600 {
			t.Errorf("%s: %d of %d answers in %g s", transport, r.Answers, r.Queries, r.DurationSeconds)
		}
	}
}

// TestCancelOfASilentServer interrupts a load on a server that accepts connections and reads
// nothing: the load waited for the timeout, in a write or for the answers, and counted them lost.
func TestCancelOfASilentServer(t *testing.T) {
	t.Parallel()
	certificate := httptest.NewUnstartedServer(nil)
	certificate.EnableHTTP2 = true
	certificate.StartTLS()
	defer certificate.Close()
	for _, transport := range []Transport{UDP, TCP, TLS, HTTPS} {
		at := silent(t, transport, certificate.TLS)
		ctx, cancel := context.WithCancel(t.Context())
		sent := false
		// Among 50 000 queries some find no room in the connection, so a write waits.
		r, err := Run(ctx, Options{Server: at, Transport: transport, Mode: Closed, Outstanding: 50_000, Sockets: 1,
			Duration: MaxDuration, Interval: 100 * time.Millisecond, Timeout: MaxTimeout, Names: questions(t)},
			func(i Interval) {
				if sent = sent || i.QueriesPerSecond > 0; sent && i.QueriesPerSecond == 0 {
					cancel()
				}
			})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if r.Queries == 0 || r.Interrupted != r.Queries || r.Lost != 0 {
			t.Errorf("%s: %+v", transport, r.Counts)
		}
	}
}

// silent returns the address of a server that reads nothing, behind the handshake of TLS.
func silent(t *testing.T, transport Transport, config *tls.Config) netip.AddrPort {
	if transport == UDP {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.LocalAddr().(*net.UDPAddr).AddrPort()
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if transport == TLS || transport == HTTPS {
				c := config.Clone()
				c.NextProtos = []string{"dot", "h2"}
				_ = tls.Server(conn, c).Handshake() // a load that has ended needs none
			}
			context.AfterFunc(t.Context(), func() { _ = conn.Close() })
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}
