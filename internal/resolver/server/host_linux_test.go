package server

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
)

func TestProcesses(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	at := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	if got := Processes(at); !slices.Equal(got, []int{os.Getpid()}) {
		t.Errorf("%v has a socket at %v, not %d", got, at, os.Getpid())
	}
	other := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), at.Port())
	if got := Processes(other); slices.Contains(got, os.Getpid()) {
		t.Errorf("a socket at %v gets what is sent to %v", at, other)
	}
	_ = conn.Close() // nothing is unwritten
}
