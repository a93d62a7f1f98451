package iperf3

import (
	"testing"

	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// TestFastDatagramsLeaveInBursts: a sender that kept packets 37 µs apart would spin for the whole
// test.
func TestFastDatagramsLeaveInBursts(t *testing.T) {
	for rate, want := range map[float64]int{300e6: 6, 20e6: 1} {
		l := &load{p: params{BlockBytes: 1400, BitsPerSec: rate}}
		if err := l.addUDP(traffictest.Sink(t), true, udpOptions{}); err != nil {
			t.Fatal(err)
		}
		sender := l.flows[0].sender
		if got := sender.Sent().BurstPackets; got != want {
			t.Errorf("%g b/s in datagrams of 1400 bytes: bursts of %d, want %d", rate, got, want)
		}
	}
}
