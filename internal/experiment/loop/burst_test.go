package loop

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
)

// queuePath is a path whose queue holds some packets and loses what is longer.
type queuePath struct {
	holds  uint64
	place  string
	single int // this train, counted from 1, loses one packet whatever its length; 0: none does
	sent   []uint64
}

func (q *queuePath) run(_ context.Context, s traffic.Spec, _ func(traffic.Interval)) (*traffic.Result, error) {
	if _, err := s.Normalize(); err != nil {
		return nil, err
	}
	packets := uint64(s.Bytes) / uint64(s.PacketBytes)
	q.sent = append(q.sent, packets)
	lost := packets - min(packets, q.holds)
	place := q.place
	if lost == 0 && len(q.sent) == q.single {
		lost, place = 1, drops.OnPath
	}
	r := &traffic.Result{Test: s.Test, DurationSeconds: 0.5,
		UDP: &traffic.Datagrams{DatagramCounts: traffic.DatagramCounts{Sent: packets, Received: packets - lost, Lost: lost}}}
	if lost > 0 {
		r.Losses = []drops.Loss{{Place: place, Packets: lost}}
	}
	return r, nil
}

func TestBurstFindsTheLengthThatAQueueHolds(t *testing.T) {
	for _, c := range []struct {
		holds   uint64
		single  int
		held    uint64
		lostAt  uint64
		place   string
		atMost  int // trains
		longest uint64
	}{
		{holds: 0, held: 0, lostAt: 1, place: drops.ReceiverSocket, atMost: 2},
		{holds: 3, held: 3, lostAt: 4, place: drops.ReceiverSocket, atMost: 6}, // 8 kB of a card: three frames
		{holds: 57, held: 57, lostAt: 58, place: drops.ReceiverSocket, atMost: 22},
		{holds: 57, single: 3, held: 57, lostAt: 58, place: drops.ReceiverSocket, atMost: 22},
		{holds: 1 << 20, held: 1000, place: "", longest: 1000, atMost: 11},
		{holds: 1000, held: 993, lostAt: 1001, longest: 1001, place: drops.ReceiverSocket, atMost: 18},
	} {
		q := &queuePath{holds: c.holds, place: drops.ReceiverSocket, single: c.single}
		r, err := Measure(t.Context(), q.run, traffic.Spec{Test: traffic.Burst, Bytes: int64(c.longest) * 1400}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := r.Burst
		if b.HeldPackets != c.held || b.LostAtPackets != c.lostAt || b.Place != c.place {
			t.Errorf("a queue of %d: held %d, lost at %d at %q; trains %v", c.holds, b.HeldPackets, b.LostAtPackets,
				b.Place, q.sent)
		}
		if len(q.sent) > c.atMost || len(b.Trains) != len(q.sent) {
			t.Errorf("a queue of %d: %d trains, %d reported: %v", c.holds, len(q.sent), len(b.Trains), q.sent)
		}
	}
}

// Above 64 packets a 64th of the length is exact enough.
func TestBurstEndsWithinA64th(t *testing.T) {
	for holds := uint64(64); holds < 30000; holds = holds*5/3 + 1 {
		q := &queuePath{holds: holds, place: drops.ReceiverRing}
		r, err := Measure(t.Context(), q.run, traffic.Spec{Test: traffic.Burst}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := r.Burst
		if b.HeldPackets > holds || b.LostAtPackets <= holds || b.LostAtPackets-b.HeldPackets > b.LostAtPackets/burstSteps {
			t.Errorf("a queue of %d: held %d, lost at %d", holds, b.HeldPackets, b.LostAtPackets)
		}
		if len(q.sent) > 32 {
			t.Errorf("a queue of %d: %d trains", holds, len(q.sent))
		}
	}
}

func TestBurstOfAFailingTest(t *testing.T) {
	broken := errors.New("link down")
	_, err := Measure(t.Context(), func(context.Context, traffic.Spec, func(traffic.Interval)) (*traffic.Result, error) {
		return nil, broken
	}, traffic.Spec{Test: traffic.Burst}, nil)
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	for _, spec := range []traffic.Spec{
		{Test: traffic.Burst, Bytes: 1399}, {Test: traffic.Burst, Streams: 2}, {Test: traffic.Burst, RateBitsPerSec: 1e6},
		{Test: traffic.Burst, PacketBytes: 15}, {Test: traffic.Burst, PacketBytes: 70000},
	} {
		if _, err := Measure(t.Context(), nil, spec, nil); !errors.Is(err, traffic.ErrBadSpec) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

func TestBurstBounds(t *testing.T) {
	near := &host.Snapshot{Interfaces: []host.Interface{{Name: "veth0", Virtual: true, TxQueueLen: 1000,
		Qdisc: "pfifo_fast", Addresses: []string{"192.0.2.1/24"}}}}
	far := &host.Snapshot{
		Interfaces: []host.Interface{{Name: "eth0", MTUBytes: 1500, SpeedBitsPerSec: 1e9, Qdisc: "fq_codel",
			TxQueueLen: 1000, Addresses: []string{"192.0.2.7/24"},
			Rings: &host.Rings{Rx: host.Ring{Current: 256}, Tx: host.Ring{Current: 512}}}},
		Settings: []host.Setting{{Knob: "sysctl:net.core.netdev_max_backlog", Value: "1000"},
			{Knob: "sysctl:net.core.rmem_default", Value: "212992"}},
	}
	bounds := func(d traffic.Direction, spec traffic.Spec) []traffic.BurstBound {
		r := &traffic.Result{Direction: d, LocalAddress: "192.0.2.1", RemoteAddress: "192.0.2.7", MTUBytes: 1500,
			Burst: &traffic.BurstResult{PacketBytes: 1400}}
		BurstBounds(r, spec, near, far)
		return r.Burst.Bounds
	}
	const ringTime = 256 * 1538 * 8 / 1e9 // seconds: a frame of MTU 1500 takes 1538 bytes of the wire
	up := bounds(traffic.Up, traffic.Spec{})
	if len(up) != 4 || up[1].FullAfter < ringTime*0.999 || up[1].FullAfter > ringTime*1.001 {
		t.Fatalf("%+v", up)
	}
	up[1].FullAfter = 0
	if d := cmp.Diff([]traffic.BurstBound{
		{Place: drops.SenderQdisc, Interface: "veth0", Source: "txqueuelen", Packets: 1000},
		{Place: drops.ReceiverRing, Interface: "eth0", Source: "ring.rx", Packets: 256},
		{Place: drops.ReceiverSoftnet, Source: "net.core.netdev_max_backlog", Packets: 1000},
		{Place: drops.ReceiverSocket, Source: "net.core.rmem_default, 2304 bytes of memory a frame", Packets: 92},
	}, up); d != "" {
		t.Error(d)
	}
	down := bounds(traffic.Down, traffic.Spec{WindowBytes: 2304})
	if d := cmp.Diff([]traffic.BurstBound{
		{Place: drops.SenderCard, Interface: "eth0", Source: "ring.tx", Packets: 512, FullAfter: down[0].FullAfter},
		{Place: drops.ReceiverSocket, Source: "the receive buffer asked for, 2304 bytes of memory a frame", Packets: 2},
	}, down); d != "" {
		t.Error(d)
	}
}
