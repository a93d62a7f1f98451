package cards

import (
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// singles are the counters of a NIC in 3 s of 700 Mb/s in full frames.
var singles = counts{"rx_packets": 180_000, "rx_bytes": 270_000_000}

func TestOffloadsOffWatched(t *testing.T) {
	without := func(feature string, fixed bool) host.Interface {
		return gigabit(func(x *host.Interface) { x.Features = map[string]host.Feature{feature: {Fixed: fixed}} })
	}
	small := counts{"rx_packets": 600_000, "rx_bytes": 60_000_000}
	kernel := func(s *evidence.Span) { s.CPUs = []host.CPUTimes{{CPU: 0, SoftIRQ: 2.9, Idle: 0.1}} }
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"time to spare", watched(without("rx-gro", false), singles), want{evidence.Notice, "rx-gro is off on eth0"}},
		{"a full processor", watched(without("rx-gro", false), singles, kernel),
			want{evidence.Warning, "rx-gro is off on eth0, which moves 60"}},
		{"sending", watched(without("tx-tcp-segmentation", false),
			counts{"tx_packets": 180_000, "tx_bytes": 270_000_000}, kernel),
			want{evidence.Warning, "tx-tcp-segmentation"}},
		{"on", watched(gigabit(), singles, kernel), want{}},
		{"cannot be switched on", watched(without("rx-gro", true), singles, kernel), want{}},
		{"small packets", watched(without("rx-gro", false), small, kernel), want{}},
		{"few packets", watched(without("rx-gro", false), counts{"rx_packets": 9000, "rx_bytes": 13_500_000}, kernel),
			want{}},
		{"bundles all the same",
			watched(without("rx-gro", false), counts{"rx_packets": 100_000, "rx_bytes": 1_500_000_000}, kernel),
			want{}},
		{"a test run, which the rule on flows covers",
			watched(without("rx-gro", false), singles, kernel, loadedBy(700e6, 0, traffic.Down)), want{}},
		{"history", watched(without("rx-gro", false), singles, sinceBoot), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, offloadsOffHere(c.span), c.want) })
	}
}

// TestOffloadsOffOnASlowProcessor checks that single segments saturate a slow CPU at rates that a
// fast one does not notice, and that a program that saturates it is no evidence.
func TestOffloadsOffOnASlowProcessor(t *testing.T) {
	flow := func(cpus []host.CPUTimes, rate float64) *evidence.Flow {
		near, far := gigabit(), gigabit(func(x *host.Interface) { x.Features = map[string]host.Feature{"rx-gro": {}} })
		c := transactions(near, far, 1)
		r := evidence.Run{Test: traffic.Stream, Direction: traffic.Up, Streams: 1, DurationSeconds: 3,
			ThroughputBitsPerSec: rate, Bytes: int64(rate * 3 / 8), MSSBytes: 1448}
		r.Ends.Local.CPUs, r.Ends.Remote.CPUs = idle(), cpus
		r.Ends.Remote.Counters = map[string]uint64{"softnet.processed": uint64(rate * 3 / 8 / 1448)}
		c.Runs = []evidence.Run{r}
		return evidence.FlowsOf(c)[0]
	}
	program := []host.CPUTimes{{CPU: 0, User: 2, System: 0.4, SoftIRQ: 0.5, Idle: 0.1}}
	check(t, offloadsOff(flow(full(), 120e6)), want{evidence.Warning, "rx-gro at far"})
	check(t, offloadsOff(flow(program, 120e6)), want{})
	check(t, offloadsOff(flow(full(), 20e6)), want{})
	check(t, offloadsOff(flow(idle(), 120e6)), want{})

	// Both ends have no time left, the sender with a program of its own: the receiver is judged by
	// its own CPU, and by the one that handles packets.
	both := flow(full(), 120e6)
	both.Sender.Run.CPUs = program
	check(t, offloadsOff(both), want{evidence.Warning, "rx-gro at far"})
	both.Receiver.Run.CPUs = []host.CPUTimes{{CPU: 0, User: 3}, {CPU: 1, System: 0.4, SoftIRQ: 2.6}}
	check(t, offloadsOff(both), want{evidence.Warning, "rx-gro at far"})
	// Look-alike: the sender is busy with packets, and the receiver, whose feature is off, is not.
	idleFar := flow(idle(), 120e6)
	idleFar.Sender.Run.CPUs = full()
	check(t, offloadsOff(idleFar), want{})

	// A physical sender without segmentation: what its own driver got counts, and not the bundles
	// that the receiver makes.
	f := flow(idle(), 120e6)
	f.Receiver.Card.Features = nil
	f.Receiver.Run.Counters = map[string]uint64{"softnet.processed": 1000}
	f.Sender.Card.Features = map[string]host.Feature{"tx-tcp-segmentation": {}, "tx-generic-segmentation": {}}
	f.Sender.Run.CPUs = full()
	f.Sender.Run.Counters = map[string]uint64{"nic.eth0.tx_bytes": 47e6, "nic.eth0.tx_packets": 31_000}
	check(t, offloadsOff(f), want{evidence.Warning, "tx-tcp-segmentation at near"})
	f.Sender.Run.Counters["nic.eth0.tx_packets"] = 1500
	check(t, offloadsOff(f), want{})
}
