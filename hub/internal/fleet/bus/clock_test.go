package bus

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// TestClockYearOff: hosts, whose clocks are right, connect to a hub whose clock was a year off when
// it made its authority, when it started last, or both times.
func TestClockYearOff(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, first := range []time.Duration{-year, 0, year} {
		for _, last := range []time.Duration{-year, 0, year} {
			dir := t.TempDir()
			if _, err := OpenAuthority(durable.OS(), dir, time.Now().Add(first)); err != nil {
				t.Fatal(err)
			}
			a, err := OpenAuthority(durable.OS(), dir, time.Now().Add(last))
			if err != nil {
				t.Fatalf("made at %v, started at %v: %v", first, last, err)
			}
			client, err := Client(a.PEM, ServerName)
			if err != nil {
				t.Fatal(err)
			}
			for name, config := range map[string]*tls.Config{"joins": Pinned(a.Fingerprint, nil), "connects": client} {
				if err := handshake(t, a.Server(), config); err != nil {
					t.Errorf("made at %v, started at %v: a host %s: %v", first, last, name, err)
				}
			}
		}
	}
}

// handshake does a TLS handshake over loopback.
func handshake(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := l.Accept(); err == nil {
			_ = tls.Server(c, server).Handshake() // the client's error says it
			_ = c.Close()
		}
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), client)
	if err == nil {
		err = c.Close()
	}
	<-done
	return err
}
