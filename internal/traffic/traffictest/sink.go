package traffictest

import (
	"net"
	"net/netip"
	"testing"

	"github.com/linerate/linerate/internal/traffic/datagram"
)

// Sink returns a socket that is connected to one on which nothing reads. Both end with the test.
func Sink(t *testing.T) *datagram.Socket {
	t.Helper()
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s, err := datagram.Dial(l.LocalAddr().(*net.UDPAddr).AddrPort(), datagram.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
