package nuttcp

import (
	"context"
	"testing"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// TestFastDatagramsLeaveInBursts: a sender that kept packets 37 µs apart would spin for the whole
// test.
func TestFastDatagramsLeaveInBursts(t *testing.T) {
	for rate, want := range map[float64]int{300e6: 6, 20e6: 1} {
		test := &Test{p: params{blockBytes: 1400}}
		spec := traffic.Spec{Streams: 1, PacketBytes: 1400, RateBitsPerSec: rate}
		means := Means{Out: &engine.Phase{},
			Socket: func(context.Context, int, int) (*datagram.Socket, error) { return traffictest.Sink(t), nil }}
		if err := test.sendUDP(t.Context(), spec, means); err != nil {
			t.Fatal(err)
		}
		sender := test.sender
		if got := sender.Sent().BurstPackets; got != want {
			t.Errorf("%g b/s in datagrams of 1400 bytes: bursts of %d, want %d", rate, got, want)
		}
	}
}
