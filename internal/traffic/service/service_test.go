package service

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) { traffictest.Main(m) }

// TestServe talks to both sockets over both versions of IP and ends the server with a connection
// open.
func TestServe(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", ":0"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel() // each waits a second for its sweep
			s, err := Listen(t.Context(), address, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tcp, udp := s.TCP.Addr().(*net.TCPAddr).Port, s.UDP.LocalAddr().(*net.UDPAddr).Port; tcp != udp {
				t.Errorf("ports %d and %d", tcp, udp)
			}
			var swept atomic.Int32
			sources := make(chan netip.AddrPort, 10)
			h := Handler{
				Conn: func(ctx context.Context, conn *net.TCPConn) {
					defer conn.Close()
					stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
					defer stop()
					sources <- From(conn)
					_, _ = io.Copy(io.Discard, conn)
				},
				Packet: func(d Datagram) { sources <- d.From },
				Sweep:  func() { swept.Add(1) },
			}
			stop := traffictest.Serve(t, serverFunc(func(ctx context.Context) error { return s.Serve(ctx, h) }))
			port := s.Addr().Port()
			for _, network := range []string{"tcp", "udp"} {
				conn, err := net.Dial(network, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := conn.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
				if got := <-sources; got.String() != conn.LocalAddr().String() {
					t.Errorf("%s from %v, want %v", network, got, conn.LocalAddr())
				}
			}
			traffictest.Eventually(t, "a sweep", func() bool { return swept.Load() > 0 })
			stop()
			if _, err := s.TCP.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the listener after the end: %v", err)
			}
			if _, err := s.UDP.Write(nil); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the UDP socket after the end: %v", err)
			}
		})
	}
}

type serverFunc func(context.Context) error

func (f serverFunc) Serve(ctx context.Context) error { return f(ctx) }

// TestServeFailsWithItsSockets closes one of them under the server: the other one ends as well, and
// the error names the closed one.
func TestServeFailsWithItsSockets(t *testing.T) {
	for _, udp := range []bool{false, true} {
		s, err := Listen(t.Context(), "127.0.0.1:0", nil)
		if err != nil {
			t.Fatal(err)
		}
		if udp {
			_ = s.UDP.Close()
		} else {
			_ = s.TCP.Close()
		}
		if err := s.Serve(t.Context(), Handler{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("without udp: %v: %v", udp, err)
		}
	}
}

// TestListenFindsAPortForBoth refuses UDP a few times: Listen tries another port when any port will
// do, and only then.
func TestListenFindsAPortForBoth(t *testing.T) {
	refusals := 0
	refuse := func(n int) func(context.Context, string, string) (*net.UDPConn, error) {
		refusals = 0
		return func(ctx context.Context, network, address string) (*net.UDPConn, error) {
			if refusals++; refusals <= n {
				return nil, syscall.EADDRINUSE
			}
			return listenPacket(ctx, network, address)
		}
	}
	// At an address that no other program connects from: it could get the port between the two.
	s, err := Listen(t.Context(), "127.83.71.9:0", refuse(3))
	if err != nil {
		testenv.Missing(t, testenv.Network, "no other address of loopback: ", err)
	}
	taken := s.Addr().String()
	s.Close()
	s.Close()
	for _, c := range []struct {
		address   string
		refuse    int
		wantCalls int
	}{{"127.0.0.1:0", tries, tries}, {taken, 1, 1}} {
		if _, err := Listen(t.Context(), c.address, refuse(c.refuse)); !errors.Is(err, syscall.EADDRINUSE) ||
			refusals != c.wantCalls {
			t.Errorf("%s: %v after %d tries", c.address, err, refusals)
		}
	}
	if _, err := Listen(t.Context(), "no port", nil); err == nil {
		t.Error("an address without a port")
	}
}

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Rest(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		why := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		began = time.Now()
		if err := Rest(ctx, time.Hour); !errors.Is(err, why) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := Rest(ctx, 0); err != nil {
			t.Errorf("no wait: %v", err)
		}
	})
}

func TestLimited(t *testing.T) {
	var said []string
	log := Limited(func(s string) { said = append(said, s) }, 2, "tests")
	for i := range 5 {
		log("%d\n", i)
	}
	if len(said) != 2 || said[0] != "0 " {
		t.Errorf("said %q", said)
	}
	Limited(nil, 1, "no client")("%d", 1)
}
