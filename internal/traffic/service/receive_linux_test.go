package service

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// TestDatagramsArriveWhenTheyCame: while datagrams arrive fast, one that waits in the socket has
// the time of its arrival, not that of its turn. The handler holds the receiver until the datagram
// was sent, so a slow machine makes no difference; only a second of silence, which ends the fast
// phase, costs a round.
func TestDatagramsArriveWhenTheyCame(t *testing.T) {
	s, err := Listen(t.Context(), ":0", nil)
	if err != nil {
		t.Fatal(err)
	}
	seen, proceed := make(chan Datagram), make(chan struct{})
	stop := traffictest.Serve(t, serverFunc(func(ctx context.Context) error {
		return s.Serve(ctx, Handler{Conn: func(context.Context, *net.TCPConn) {}, Packet: func(d Datagram) {
			d.Payload = append([]byte(nil), d.Payload...)
			if string(d.Payload) == "hello" {
				_ = d.Answer([]byte("answer"))
			}
			select {
			case seen <- d:
			case <-ctx.Done():
				return
			}
			if string(d.Payload) == "hold" {
				select {
				case <-proceed:
				case <-ctx.Done():
				}
			}
		}})
	}))
	defer stop()
	for _, ip := range []string{"127.0.0.1", "::1"} {
		conn, err := net.Dial("udp", netip.AddrPortFrom(netip.MustParseAddr(ip), s.Addr().Port()).String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		send := func(text string) {
			if _, err := conn.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		want := func(text string) Datagram {
			d := <-seen
			if string(d.Payload) != text || d.From.String() != conn.LocalAddr().String() {
				t.Fatalf("%q from %v, want %q from %v", d.Payload, d.From, text, conn.LocalAddr())
			}
			return d
		}
		send("hello")
		want("hello")
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		p := make([]byte, 10)
		if n, err := conn.Read(p); err != nil || string(p[:n]) != "answer" {
			t.Fatalf("answer: %q, %v", p[:n], err)
		}
		right := false
		for round := 0; round < 20 && !right; round++ {
			send("hold")
			want("hold")
			for range 3 {
				send("many")
			}
			proceed <- struct{}{}
			for range 3 {
				want("many")
			}
			send("hold")
			want("hold")
			before := time.Now()
			send("late")
			after := time.Now()
			proceed <- struct{}{}
			late := want("late")
			// The wall clock of the kernel and ours may differ by the reading between them.
			right = !late.At.Before(before.Add(-time.Millisecond)) && late.At.Before(after)
		}
		if !right {
			t.Errorf("over %s no datagram has the time of its arrival", ip)
		}
	}
}
