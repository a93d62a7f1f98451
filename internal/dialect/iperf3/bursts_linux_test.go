package iperf3

import (
	"net"
	"net/netip"
	"testing"

	"github.com/linerate/linerate/internal/traffic/datagram"
)

// sink returns a socket that is connected to one on which nothing reads.
func sink(t *testing.T) *datagram.Socket {
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

// TestFastDatagramsLeaveInBursts: a sender that kept packets 37 µs apart would spin for the whole
// test.
func TestFastDatagramsLeaveInBursts(t *testing.T) {
	for rate, want := range map[float64]int{300e6: 6, 20e6: 1} {
		l := &load{p: params{BlockBytes: 1400, BitsPerSec: rate}}
		if err := l.addUDP(sink(t), true, udpOptions{}); err != nil {
			t.Fatal(err)
		}
		sender := l.flows[0].sender
		if got := sender.Sent().BurstPackets; got != want {
			t.Errorf("%g b/s in datagrams of 1400 bytes: bursts of %d, want %d", rate, got, want)
		}
	}
}
