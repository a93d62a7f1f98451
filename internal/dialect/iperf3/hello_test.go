package iperf3

import (
	"net"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/datagram"
)

// TestOneHelloOnALongPath has a server whose answer takes longer than the usual time between two
// hellos. The program would count a second one as data.
func TestOneHelloOnALongPath(t *testing.T) {
	t.Parallel()
	for trip, want := range map[time.Duration]time.Duration{
		0: helloEvery, 100 * time.Millisecond: helloEvery, 600 * time.Millisecond: 1800 * time.Millisecond,
	} {
		if got := helloWait(trip); got != want {
			t.Errorf("round trip of %v: %v between hellos, want %v", trip, got, want)
		}
	}
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	near, err := datagram.Dial(u.LocalAddr().(*net.UDPAddr).AddrPort(), datagram.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	go func() {
		p := make([]byte, 100)
		n, from, err := u.ReadFromUDPAddrPort(p)
		if err == nil && isHello(p[:n]) {
			time.Sleep(2 * helloEvery)
			_, _ = u.WriteToUDPAddrPort(reply, from)
		}
	}()
	if answered, err := greet(t.Context(), near, time.Minute); !answered || err != nil {
		t.Fatalf("answered %v, %v", answered, err)
	}
	_ = u.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, err := u.Read(make([]byte, 100)); err == nil {
		t.Errorf("%d bytes after the first hello", n)
	}
}
