package processors

import (
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic"
)

// cpu returns one CPU's three seconds from shares: user, system, softirq, steal; the rest is idle.
func cpu(n int, user, system, softirq, steal float64) host.CPUTimes {
	return host.CPUTimes{CPU: n, User: 3 * user, System: 3 * system, SoftIRQ: 3 * softirq, Steal: 3 * steal,
		Idle: 3 * (1 - user - system - softirq - steal)}
}

// niced gives all programs of a CPU a lower priority.
func niced(t host.CPUTimes) host.CPUTimes {
	t.Nice = t.User
	return t
}

// span returns three seconds of a host with these CPUs and counters.
func span(counters map[string]uint64, cpus ...host.CPUTimes) *evidence.Span {
	return &evidence.Span{Side: "near", Host: &host.Snapshot{}, Seconds: 3, Counters: counters, CPUs: cpus}
}

// loaded is the same during a stream over a NIC; a speed of 0 makes the NIC a virtual one.
func loaded(s *evidence.Span, rate, speed float64) *evidence.Span {
	s.Run = &traffic.Result{Test: traffic.Stream, Streams: 1, DurationSeconds: 3, ThroughputBitsPerSec: rate,
		Bytes: int64(rate * 3 / 8)}
	s.End = &evidence.End{Name: s.Side, Host: s.Host,
		Card: &host.Interface{Name: "eth0", Virtual: speed == 0, SpeedBitsPerSec: speed}}
	return s
}

// again is a run whose sender retransmitted that many segments.
func again(s *evidence.Span, segments uint64) *evidence.Span {
	s.Run.Ends.Local.TCP = []tcpinfo.TCPInfo{{Sender: true, SegsOut: 100_000, RetransSegs: segments, SndMSSBytes: 1448}}
	return s
}

func set(s *evidence.Span, knob, value string) *evidence.Span {
	s.Host.Settings = append(s.Host.Settings, host.Setting{Knob: knob, Value: value})
	return s
}

func history(s *evidence.Span) *evidence.Span {
	s.SinceBoot, s.Seconds = true, 41*86400
	return s
}

// TestSpanRules checks that each rule reports its fault and not the nearest look-alike.
func TestSpanRules(t *testing.T) {
	const none = evidence.Severity("")
	type counts = map[string]uint64
	for _, c := range []struct {
		name string
		rule func(*evidence.Span) *evidence.Finding
		span *evidence.Span
		want evidence.Severity
	}{
		{"backlog: one in a hundred is dropped", softnetBacklogDrops,
			set(span(counts{"softnet.dropped": 1000, "softnet.processed": 99_000}), backlogKnob, "10"),
			evidence.Warning},
		{"backlog: more than the flow lost", softnetBacklogDrops, again(loaded(span(counts{"softnet.dropped": 1000,
			"softnet.processed": 99_000}), 100e6, 1e9), 900), evidence.Warning},
		// Bundles of 64 KiB: each drop is up to 45 segments.
		{"backlog: large packets of the flow", softnetBacklogDrops, again(loaded(span(counts{"softnet.dropped": 100,
			"softnet.processed": 9900}), 100e6, 1e9), 4500), evidence.Warning},
		{"backlog: of another container, beside a path that loses", softnetBacklogDrops,
			again(loaded(span(counts{"softnet.dropped": 30, "softnet.processed": 9900}), 100e6, 1e9), 9000),
			evidence.Notice},
		{"backlog: one in five thousand", softnetBacklogDrops,
			span(counts{"softnet.dropped": 200, "softnet.processed": 1_000_000}), evidence.Notice},
		{"backlog: one in a million is an accident", softnetBacklogDrops,
			span(counts{"softnet.dropped": 30, "softnet.processed": 30_000_000}), none},
		{"backlog: a few packets of few", softnetBacklogDrops,
			span(counts{"softnet.dropped": 5, "softnet.processed": 100}), none},
		{"backlog: the ring dropped and not the backlog", softnetBacklogDrops,
			span(counts{"nic.eth0.rx_missed_errors": 5000, "softnet.processed": 100_000}), none},
		{"backlog: a kernel that does not count", softnetBacklogDrops, span(nil), none},
		{"backlog: a storm of long ago", softnetBacklogDrops,
			history(span(counts{"softnet.dropped": 1_000_000, "softnet.processed": 99_000_000})), evidence.Notice},

		{"budget: lowered and hit by every round", napiBudgetExhausted,
			set(span(counts{"softnet.time_squeeze": 30_000, "softnet.processed": 300_000}), budgetKnob, "8"),
			evidence.Warning},
		{"budget: the time lowered", napiBudgetExhausted,
			set(set(span(counts{"softnet.time_squeeze": 3000, "softnet.processed": 300_000}), budgetKnob, "300"),
				budgetTimeKnob, "50"), evidence.Warning},
		{"budget: the default, often", napiBudgetExhausted,
			set(span(counts{"softnet.time_squeeze": 3000, "softnet.processed": 900_000}), budgetKnob, "300"),
			evidence.Notice},
		{"budget: lowered, and squeezes are seldom", napiBudgetExhausted,
			set(span(counts{"softnet.time_squeeze": 30, "softnet.processed": 300_000}), budgetKnob, "8"), none},
		{"budget: the default, thousands of packets to a squeeze", napiBudgetExhausted,
			set(span(counts{"softnet.time_squeeze": 900, "softnet.processed": 9_000_000}), budgetKnob, "300"), none},
		{"budget: not shown to a container, and rounds end for packets", napiBudgetExhausted,
			span(counts{"softnet.time_squeeze": 9000, "softnet.processed": 30_000}, cpu(0, 0, 0.1, 0.2, 0)),
			evidence.Warning},
		{"budget: not shown, and rounds of a slow processor end for time", napiBudgetExhausted,
			span(counts{"softnet.time_squeeze": 1200, "softnet.processed": 60_000}, cpu(0, 0, 0.1, 0.85, 0)),
			evidence.Notice},
		{"budget: not shown, and CPU times unknown", napiBudgetExhausted,
			span(counts{"softnet.time_squeeze": 9000, "softnet.processed": 30_000}), evidence.Notice},
		{"budget: unknown since boot", napiBudgetExhausted,
			history(set(span(counts{"softnet.time_squeeze": 1 << 40, "softnet.processed": 1 << 44}), budgetKnob, "8")),
			none},

		{"steal: a fifth", cpuSteal, span(nil, cpu(0, 0.2, 0.3, 0.2, 0.2)), evidence.Warning},
		{"steal: a twelfth", cpuSteal, span(nil, cpu(0, 0.2, 0.3, 0.2, 0.08)), evidence.Notice},
		{"steal: a CPU that its own work saturates", cpuSteal, span(nil, cpu(0, 0.5, 0.3, 0.2, 0)), none},
		{"steal: a history", cpuSteal, history(span(nil, cpu(0, 0.2, 0.3, 0.2, 0.2))), none},

		{"softirq: one full, one idle, behind a card", softirqCPUSaturated,
			loaded(span(nil, cpu(0, 0, 0.02, 0.97, 0), cpu(1, 0.1, 0.2, 0, 0)), 4e9, 10e9), evidence.Warning},
		{"softirq: inside one machine", softirqCPUSaturated,
			loaded(span(nil, cpu(0, 0, 0.02, 0.97, 0), cpu(1, 0.1, 0.2, 0, 0)), 4e9, 0), evidence.Notice},
		{"softirq: all are full", softirqCPUSaturated,
			loaded(span(nil, cpu(0, 0, 0.02, 0.97, 0), cpu(1, 0.1, 0.5, 0.4, 0)), 4e9, 10e9), none},
		{"softirq: a program has the processor", softirqCPUSaturated,
			loaded(span(nil, cpu(0, 0.6, 0.1, 0.3, 0), cpu(1, 0, 0, 0, 0)), 4e9, 10e9), none},
		{"softirq: one processor is all there is", softirqCPUSaturated,
			loaded(span(nil, cpu(0, 0, 0.02, 0.97, 0)), 4e9, 10e9), none},

		{"processors: programs have them", cpuSaturated,
			loaded(span(nil, cpu(0, 0.7, 0.2, 0.1, 0), cpu(1, 0.6, 0.3, 0.1, 0)), 4e9, 0), evidence.Warning},
		{"processors: our own work, memory to memory", cpuSaturated,
			loaded(span(nil, cpu(0, 0.05, 0.65, 0.3, 0), cpu(1, 0.05, 0.65, 0.3, 0)), 60e9, 0), none},
		{"processors: our own work, below the link", cpuSaturated,
			loaded(span(nil, cpu(0, 0.05, 0.65, 0.3, 0), cpu(1, 0.05, 0.65, 0.3, 0)), 4e9, 10e9), evidence.Warning},
		{"processors: our own work, and the link is full", cpuSaturated,
			loaded(span(nil, cpu(0, 0.05, 0.65, 0.3, 0), cpu(1, 0.05, 0.65, 0.3, 0)), 9.5e9, 10e9), none},
		{"processors: programs on one of two", cpuSaturated,
			loaded(span(nil, cpu(0, 0.9, 0.1, 0, 0), cpu(1, 0, 0.1, 0.1, 0)), 4e9, 0), none},
		{"processors: a busy host, watched", cpuSaturated, span(nil, cpu(0, 0.9, 0.1, 0, 0), cpu(1, 0.9, 0.1, 0, 0)),
			evidence.Notice},
		{"processors: programs that give way", cpuSaturated,
			loaded(span(nil, niced(cpu(0, 0.7, 0.2, 0.1, 0)), niced(cpu(1, 0.6, 0.3, 0.1, 0))), 4e9, 0), none},
		{"processors: nothing known", cpuSaturated, loaded(span(nil), 4e9, 10e9), none},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := c.rule(c.span)
			got := none
			if x != nil {
				got = x.Severity
				if x.Title == "" || x.Remedy.Text == "" || x.Remedy.Proof == "" || len(x.Evidence) == 0 ||
					math.IsNaN(x.Confidence) {
					t.Errorf("incomplete: %+v", x)
				}
			}
			if got != c.want {
				t.Errorf("severity %q, want %q: %+v", got, c.want, x)
			}
		})
	}
}

// queued is a host with a NIC of four queues with these packets.
func queued(streams int, hot float64, packets ...uint64) *evidence.Span {
	counters := map[string]uint64{"ethtool.eth0.tx_queue_0_packets": 1 << 30, "ethtool.eth0.rx_queue_0_bytes": 1 << 40}
	for q, n := range packets {
		counters["ethtool.eth0.rx_queue_"+string(rune('0'+q))+"_packets"] = n
	}
	s := span(counters, cpu(0, 0, 1-hot, hot, 0), cpu(1, 0, 0.1, 0.1, 0), cpu(2, 0, 0.1, 0.1, 0),
		cpu(3, 0, 0.1, 0.1, 0))
	s.Host.Interfaces = []host.Interface{{Name: "eth0"}}
	if streams > 0 {
		s = loaded(s, 4e9, 10e9)
		s.Run.Streams = streams
	}
	return s
}

func TestRSSImbalance(t *testing.T) {
	for _, c := range []struct {
		name string
		span *evidence.Span
		want evidence.Severity
	}{
		{"all on one queue, its processor full", queued(16, 0.97, 900_000, 100, 0, 200), evidence.Warning},
		{"all on one queue, and time to spare", queued(16, 0.30, 900_000, 100, 0, 200), evidence.Notice},
		{"one flow", queued(1, 0.97, 900_000, 100, 0, 200), ""},
		{"twice the mean", queued(16, 0.97, 400_000, 200_000, 200_000, 200_000), ""},
		{"hardly a packet", queued(0, 0.97, 900, 1, 0, 2), ""},
		{"one queue", queued(16, 0.97, 900_000), ""},
	} {
		got := evidence.Severity("")
		if x := rssImbalance(c.span); x != nil {
			got = x.Severity
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestQueuesInUse lists the counters of queues that are switched off, as ixgbe does: two even ones
// of ten are no imbalance.
func TestQueuesInUse(t *testing.T) {
	s := queued(16, 0.97, 600_000, 600_000, 0, 0, 0, 0, 0, 0, 0, 0)
	if x := rssImbalance(s); x == nil {
		t.Error("without the number of queues nothing was found")
	}
	s.Host.Interfaces[0].Channels = &host.Channels{Combined: 2, MaxCombined: 10}
	if x := rssImbalance(s); x != nil {
		t.Errorf("%+v", x)
	}
}

// TestOtherMask: the online CPUs are not the first ones where threads are off.
func TestOtherMask(t *testing.T) {
	number := func(n int) int { return n }
	for _, c := range []struct {
		all  []int
		want string
	}{{[]int{0, 1, 2, 3}, "b"}, {[]int{0, 2, 4, 6}, "51"}, {[]int{2, 8, 40}, ""}} {
		if got := otherMask(c.all, number, 2); got != c.want {
			t.Errorf("%v: %q, want %q", c.all, got, c.want)
		}
	}
}

// TestReceiveQueues reads the counters of queues by the names of several drivers.
func TestReceiveQueues(t *testing.T) {
	s := &evidence.Span{Counters: map[string]uint64{}}
	for name, n := range map[string]uint64{
		"rx_queue_3_packets": 1, "rx-12.packets": 2, "rx7_packets": 4, "queue_0_rx_cnt": 8, "rx_packets": 16,
		"rx_queue_3_bytes": 32, "rx_queue_3_xdp_packets": 64, "rx99999_packets": 128, "tx_queue_3_packets": 256,
		"[1]: rx_ucast_packets": 512, "[1]: rx_mcast_packets": 1024, "rq[2]_packets": 2048, "4: rcv_pkts": 4096,
		"Queue[5] InPackets": 8192, "rxq6_packets": 16384, "rx-8.rx_packets": 32768, "rx_9_packets": 65536,
	} {
		s.Counters["ethtool.eth0."+name] = n
	}
	s.Counters["ethtool.eth1.rx0_packets"] = 1 << 20
	card := &host.Interface{Name: "eth0", Channels: &host.Channels{Combined: 32}}
	want := map[int]float64{0: 8, 1: 1536, 2: 2048, 3: 1, 4: 4096, 5: 8192, 6: 16384, 7: 4, 8: 32768, 9: 65536, 12: 2}
	if got := receiveQueues(s, card); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// sockets is a host of two nodes with a NIC on node 0, an interrupt on one CPU and a worker on
// another.
func sockets(irqOn string, workerOn int, busy float64) *evidence.Span {
	node := 0
	s := loaded(span(map[string]uint64{"irq.45": 30_000}, cpu(0, 0, 0, 0.1, 0), cpu(1, 0, 0, busy, 0)), 4e9, 10e9)
	s.Host.CPUs = []host.CPU{{ID: 0, NUMANode: 0}, {ID: 1, NUMANode: 1}}
	s.End.Card.NUMANode = &node
	s.End.Card.Interrupts = []host.Interrupt{{Number: 45, EffectiveAffinity: irqOn}}
	s.End.Run.Placement = []traffic.Placement{{CPU: workerOn}}
	return s
}

func TestNUMAMisplaced(t *testing.T) {
	quiet := sockets("1", 0, 0.9)
	quiet.Counters = nil
	one := sockets("1", 1, 0.9)
	one.Host.CPUs[1].NUMANode = 0
	for _, c := range []struct {
		name string
		span *evidence.Span
		want evidence.Severity
	}{
		{"interrupt far away on a busy processor", sockets("1", 0, 0.9), evidence.Warning},
		{"worker far away with time to spare", sockets("0", 1, 0.3), evidence.Notice},
		{"all at home", sockets("0", 0, 0.9), ""},
		{"an interrupt that never came", quiet, ""},
		{"one node", one, ""},
		{"no card", span(nil), ""},
	} {
		got := evidence.Severity("")
		if x := numaMisplaced(c.span); x != nil {
			got = x.Severity
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCPUList(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "3": {3}, "0-2,8": {0, 1, 2, 8}, "x,4": {4}, "5-3": nil,
		"1-y": nil} {
		if d := cmp.Diff(want, cpuList(text)); d != "" {
			t.Errorf("%q (-want +got)\n%s", text, d)
		}
	}
	if n := len(cpuList("0-999999999")); n != 1024 {
		t.Errorf("a hostile range gave %d processors", n)
	}
}

// rested is a case with an idle ping, one beside a stream, and one idle state.
func rested(idle, under, exit float64) *evidence.Case {
	c := &evidence.Case{Near: &host.Snapshot{CPUs: []host.CPU{{ID: 0}}}, Runs: []traffic.Result{
		{Test: traffic.Ping, RTT: &stats.Latencies{P50: idle}},
		{Test: traffic.Stream, RTT: &stats.Latencies{P50: under}},
	}}
	c.Near.Idle = &host.Idle{States: []host.IdleState{{Name: "C1", LatencySeconds: 2e-6},
		{Name: "C6", LatencySeconds: exit}}}
	return c
}

func TestCPUPowerState(t *testing.T) {
	limited := func(limit int, idle float64) *evidence.Case {
		return &evidence.Case{Near: &host.Snapshot{CPUs: []host.CPU{{ID: 0, LimitMHz: limit, MaxMHz: 3000}}},
			Runs: []traffic.Result{{
				Test: traffic.Stream, DurationSeconds: 3,
				Ends: traffic.Ends{Local: traffic.End{CPUs: []host.CPUTimes{cpu(0, 0, 1-idle, 0, 0)}}},
			}}}
	}
	for _, c := range []struct {
		name string
		c    *evidence.Case
		want evidence.Severity
	}{
		{"load halves the round trip", rested(200e-6, 80e-6, 130e-6), evidence.Warning},
		{"load shortens it by a third", rested(200e-6, 130e-6, 130e-6), evidence.Notice},
		{"a queue: load lengthens it", rested(200e-6, 800e-6, 130e-6), ""},
		{"no sleep that deep", rested(200e-6, 80e-6, 10e-6), ""},
		{"a long path that happened to get quicker", rested(40e-3, 20e-3, 130e-6), ""},
		{"clock limited to a half, busy", limited(1500, 0.02), evidence.Notice},
		{"clock limited to a half, idle", limited(1500, 0.6), ""},
		{"clock limited to nine tenths", limited(2700, 0.02), ""},
		{"clocks not reported", limited(0, 0.02), ""},
		{"nothing known", &evidence.Case{}, ""},
	} {
		got := evidence.Severity("")
		if x := cpuPowerState(c.c); x != nil {
			got = x.Severity
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
