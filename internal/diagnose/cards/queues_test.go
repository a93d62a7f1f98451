package cards

import (
	"maps"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// halfGigabit are the counters of a NIC in 3 s of 500 Mb/s in each direction.
var halfGigabit = counts{"rx_packets": 125_000, "rx_bytes": 187_500_000, "tx_packets": 125_000, "tx_bytes": 187_500_000}

func TestRXRingOverrun(t *testing.T) {
	longest := func(x *host.Interface) { x.Rings.Rx.Current = 4096 }
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"mild: a few of a watch", watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 8})),
			want{evidence.Notice, "the NIC dropped 8 frames in 3"}},
		{"plain: one in a thousand", watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 150})),
			want{evidence.Warning, "150 frames"}},
		{"gross: of another driver's counter", watched(gigabit(func(x *host.Interface) { x.Driver = "mlx5_core" }),
			halfGigabit.with(counts{"ethtool.eth0.rx_out_of_buffer": 9000})), want{evidence.Warning, "9000 frames"}},
		{"the flow lost them", watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 60}),
			loadedBy(500e6, 5e-4, traffic.Down)),
			want{evidence.Warning, "during the test"}},
		{"the flow lost none", watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 60}),
			loadedBy(500e6, 0, traffic.Down)), want{evidence.Notice, ""}},
		{"the link is full all the same", watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 60}),
			loadedBy(941e6, 5e-4, traffic.Down)), want{evidence.Notice, ""}},
		{"an imitated link, which is passed", watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 60}),
			loadedBy(1.5e9, 5e-4, traffic.Down)),
			want{evidence.Warning, ""}},
		{"another place lost most", watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 60}),
			loadedBy(500e6, 1e-2, traffic.Down)), want{evidence.Notice, ""}},
		{"the processor is full and the ring as long as can be",
			watched(gigabit(longest), halfGigabit.with(counts{"rx_missed_errors": 9000}), busy),
			want{evidence.Notice, ""}},
		{"the processor is full and the ring short",
			watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 9000}), busy), want{evidence.Warning, ""}},
		{"waited in the card and were not lost",
			watched(gigabit(), halfGigabit.with(counts{"ethtool.eth0.rx_no_buffer_count": 9000})), want{}},
		{"an accident", watched(gigabit(), counts{"rx_packets": 100, "rx_missed_errors": 4}), want{}},
		{"history", watched(gigabit(), counts{"rx_packets": 1e9, "rx_missed_errors": 1e6}, sinceBoot),
			want{evidence.Notice, "since boot"}},
		{"harmless history", watched(gigabit(), counts{"rx_packets": 1e9, "rx_missed_errors": 1e4}, sinceBoot), want{}},
		{"damning history", watched(gigabit(), counts{"rx_packets": 1e9, "rx_missed_errors": 5e7}, sinceBoot),
			want{evidence.Warning, "since boot"}},
		{"a card that the flow did not use",
			watched(gigabit(), halfGigabit.with(counts{"nic.eth9.rx_missed_errors": 9000}),
				loadedBy(500e6, 1e-3, traffic.Down)), want{}},
		{"no hardware", watched(gigabit(func(x *host.Interface) { x.Virtual = true }),
			halfGigabit.with(counts{"rx_missed_errors": 9000})), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, rxRingOverrun(c.span), c.want) })
	}
	x := rxRingOverrun(watched(gigabit(), halfGigabit.with(counts{"rx_missed_errors": 150})))
	if got := x.Remedy.Settings[0]; got.Knob != "ethtool:eth0/ring.rx" ||
		!equal(got.Levels, "512", "1024", "2048", "4096") {
		t.Errorf("%+v", got)
	}
	// 10 ms between interrupts are more than 256 frames of a full link.
	slow := gigabit(func(x *host.Interface) { x.Coalesce = map[string]uint32{"rx-usecs": 10000} })
	x = rxRingOverrun(watched(slow, halfGigabit.with(counts{"rx_missed_errors": 150})))
	if got := x.Remedy.Settings[1]; got.Knob != "ethtool:eth0/coalesce.rx-usecs" || !equal(got.Levels, "3", "1", "0") {
		t.Errorf("%+v", got)
	}
}

func equal(got []knob.Value, wanted ...knob.Value) bool {
	if len(got) != len(wanted) {
		return false
	}
	for i := range got {
		if got[i] != wanted[i] {
			return false
		}
	}
	return true
}

func TestTXQueueDrops(t *testing.T) {
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"mild", watched(gigabit(), halfGigabit.with(counts{"tx_dropped": 8})), want{evidence.Notice, "8 packets"}},
		{"plain", watched(gigabit(), halfGigabit.with(counts{"tx_dropped": 500})),
			want{evidence.Warning, "500 packets"}},
		{"the flow lost them", watched(gigabit(), halfGigabit.with(counts{"tx_dropped": 500}),
			loadedBy(500e6, 4e-3, traffic.Up)), want{evidence.Warning, ""}},
		{"the discipline dropped", watched(gigabit(), halfGigabit.with(counts{"qdisc.eth0.drops": 5000})), want{}},
		{"a ring that was merely full",
			watched(gigabit(), halfGigabit.with(counts{"ethtool.eth0.tx_queue_0_restart": 5000})), want{}},
		{"reset while watched", watched(gigabit(), halfGigabit.with(counts{"ethtool.eth0.tx_timeout_count": 1})),
			want{evidence.Warning, "its driver restarted it 1 times in 3"}},
		{"reset at some time", watched(gigabit(), counts{"ethtool.eth0.tx_timeout_count": 3}, sinceBoot),
			want{evidence.Notice, "3 times since boot"}},
		{"what came and was dropped", watched(gigabit(), halfGigabit.with(counts{"rx_dropped": 5000})), want{}},
		{"history", watched(gigabit(), counts{"tx_packets": 1e9, "tx_dropped": 1e6}, sinceBoot),
			want{evidence.Notice, "since boot"}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, txQueueDrops(c.span), c.want) })
	}
}

func TestQdiscDrops(t *testing.T) {
	with := func(kind string, parameters map[string]string) func(*evidence.Span) {
		return func(s *evidence.Span) {
			s.Host.Qdiscs = []host.Qdisc{{Interface: "eth0", Kind: kind, Parent: "root",
				QdiscState: host.QdiscState{Parameters: parameters}}}
		}
	}
	queued := func(drops, packets uint64) func(*evidence.Span) {
		return func(s *evidence.Span) {
			s.Host.Qdiscs = []host.Qdisc{{Interface: "eth0", Kind: "cake", Parent: "root",
				QdiscState: host.QdiscState{Drops: drops, Packets: packets}}}
		}
	}
	slow := counts{"tx_packets": 25_000, "tx_bytes": 37_500_000} // 100 Mb/s for 3 s
	// Measured behind a tbf with a limit of 70 kB at 300 Mb/s (Linux 6.18, veth): iperf3 sent 19 866
	// segments again, for 481 drops among 99 056 packets. Here in 3 s.
	tso := func(s *evidence.Span) {
		s.Host.Interfaces[0].Features = map[string]host.Feature{"tx-tcp-segmentation": {On: true}}
	}
	bundles := counts{"tx_packets": 74_000, "tx_bytes": 112_500_000, "qdisc.eth0.drops": 361}
	for _, c := range []struct {
		name  string
		rate  float64
		lost  float64
		c     counts
		sides []func(*evidence.Span)
		want  want
	}{
		{"mild: what a sender loses normally", 500e6, 3e-4, halfGigabit.with(counts{"qdisc.eth0.drops": 60}), nil,
			want{evidence.Notice, "60 packets"}},
		{"plain: a queue of few places", 500e6, 4e-3, halfGigabit.with(counts{"qdisc.eth0.drops": 500}), nil,
			want{evidence.Warning, "500 packets"}},
		{"the link is full, as its queue then is", 941e6, 4e-3, halfGigabit.with(counts{"qdisc.eth0.drops": 500}),
			nil, want{}},
		{"others fill the link", 300e6, 4e-3, counts{"tx_packets": 240_000, "tx_bytes": 365e6, "qdisc.eth0.drops": 900},
			nil, want{}},
		{"dropped elsewhere", 500e6, 2e-2, halfGigabit.with(counts{"qdisc.eth0.drops": 130}), nil,
			want{evidence.Notice, ""}},
		{"bundles", 300e6, 0.19, bundles, []func(*evidence.Span){tso}, want{evidence.Warning, "361 packets"}},
		{"the same drops without bundles", 300e6, 0.19, bundles, nil, want{evidence.Notice, "361 packets"}},
		{"a shaper that drops", 100e6, 4e-3,
			slow.with(counts{"qdisc.eth0.drops": 100, "qdisc.eth0.overlimits": 24_000}),
			[]func(*evidence.Span){with("tbf", nil)},
			want{evidence.Warning, "shaper (tbf) at eth0 limits the traffic to 100 Mb/s"}},
		{"a shaper that only delays", 100e6, 0, slow.with(counts{"qdisc.eth0.overlimits": 24_000}),
			[]func(*evidence.Span){with("htb", nil)},
			want{evidence.Warning, "shaper (htb)"}},
		{"a shaper that has nothing to do", 100e6, 0, slow.with(counts{"qdisc.eth0.overlimits": 3}),
			[]func(*evidence.Span){with("htb", nil)}, want{}},
		{"a shaper, and a processor that is full", 100e6, 0, slow.with(counts{"qdisc.eth0.overlimits": 4000}),
			[]func(*evidence.Span){with("htb", nil), busy},
			want{evidence.Notice, "shaper"}},
		{"most packets wait, and a processor is full of other work", 100e6, 0,
			slow.with(counts{"qdisc.eth0.overlimits": 70_000}), []func(*evidence.Span){with("tbf",
				nil), busy}, want{evidence.Warning, "shaper (tbf)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := watched(gigabit(), c.c, append(c.sides, loadedBy(c.rate, c.lost, traffic.Up))...)
			check(t, qdiscDrops(s), c.want)
			s.Side = "far" // which receives: its queues carry acknowledgements
			if x := qdiscDrops(s); x != nil {
				t.Errorf("at the receiver: %s", x.Title)
			}
		})
	}
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"watched, mild", watched(gigabit(), halfGigabit.with(counts{"qdisc.eth0.drops": 300})),
			want{evidence.Notice, ""}},
		{"watched, gross", watched(gigabit(), halfGigabit.with(counts{"qdisc.eth0.drops": 5000})),
			want{evidence.Warning, "5000 packets in 3"}},
		{"history", watched(gigabit(), counts{"tx_packets": 1e8, "qdisc.eth0.drops": 1e6}, sinceBoot),
			want{evidence.Notice, "since boot"}},
		{"an emulator of bad paths", watched(gigabit(), halfGigabit.with(counts{"qdisc.eth0.drops": 5000}),
			with("netem", nil)), want{evidence.Warning, ""}},
		{"history of a shaper", watched(gigabit(), counts{"tx_packets": 1e8, "qdisc.eth0.overlimits": 1e8}, sinceBoot,
			with("htb", nil)), want{}},
		// Of a report with the output of tc alone. The first figures are from an AQM that does its work.
		{"disciplines without an interface's counters", watched(gigabit(), counts{}, sinceBoot,
			queued(76_632, 140_847_783)), want{}},
		{"the same with more drops", watched(gigabit(), counts{}, sinceBoot, queued(1e6, 99e6)),
			want{evidence.Notice, ", 1 % of those to be sent"}},
		{"the same with nothing known of what was sent", watched(gigabit(), counts{}, sinceBoot, queued(1e6, 0)), want{}},
		{"software without a link", watched(gigabit(func(x *host.Interface) { x.Virtual, x.Kind = true, "veth" }),
			halfGigabit.with(counts{"qdisc.eth0.drops": 5000})),
			want{evidence.Warning, ""}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, qdiscDrops(c.span), c.want) })
	}
	x := qdiscDrops(watched(gigabit(), halfGigabit.with(counts{"qdisc.eth0.drops": 5000}),
		with("fq", map[string]string{"flow_limit": "100", "limit": "10000"})))
	if got := x.Remedy.Settings[0]; got.Knob != "qdisc:eth0/fq.flow_limit" || !equal(got.Levels, "200", "400") {
		t.Errorf("%+v", got)
	}
}

func TestPauseFrames(t *testing.T) {
	heard, sent := counts{"ethtool.eth0.rx_flow_control_xoff": 900}, counts{"ethtool.eth0.tx_flow_control_xoff": 900}
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"watched", watched(gigabit(), halfGigabit.with(heard)),
			want{evidence.Notice, "asks eth0 to stop sending 300 times"}},
		{"a sender is held", watched(gigabit(), halfGigabit.with(heard), loadedBy(500e6, 0, traffic.Up)),
			want{evidence.Warning, "asks eth0"}},
		{"the link is full", watched(gigabit(), halfGigabit.with(heard), loadedBy(941e6, 0, traffic.Up)),
			want{evidence.Notice, ""}},
		{"a receiver that is too slow", watched(gigabit(), halfGigabit.with(sent), loadedBy(500e6, 0, traffic.Down),
			busy), want{evidence.Warning, "eth0 asks"}},
		{"heard by a receiver", watched(gigabit(), halfGigabit.with(heard), loadedBy(500e6, 0, traffic.Down)),
			want{evidence.Notice, ""}},
		{"now and then", watched(gigabit(), halfGigabit.with(counts{"ethtool.eth0.rx_flow_control_xoff": 6})), want{}},
		{"another driver", watched(gigabit(func(x *host.Interface) { x.Driver = "mlx5_core" }),
			counts{"ethtool.eth0.rx_prio0_pause": 500,
				"ethtool.eth0.rx_prio3_pause": 40}), want{evidence.Notice, "167 times"}},
		{"too fast a link for so few", watched(gigabit(func(x *host.Interface) { x.SpeedBitsPerSec = 100e9 }),
			halfGigabit.with(counts{"ethtool.eth0.rx_flow_control_xoff": 60})), want{}},
		{"a full ring is no pause", watched(gigabit(), counts{"ethtool.eth0.tx_queue_0_restart": 9000}), want{}},
		{"history", watched(gigabit(), counts{"ethtool.eth0.tx_flow_control_xoff": 4e7}, sinceBoot),
			want{evidence.Notice, ""}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, pauseFrames(c.span), c.want) })
	}
}

// TestIngressPolicer: recorded from a guest whose far host polices its entrance at 6 Mb/s, and what
// looks like it.
func TestIngressPolicer(t *testing.T) {
	qdiscs := func(entrance, root uint64) func(*evidence.Span) {
		return func(s *evidence.Span) {
			s.Host.Qdiscs = []host.Qdisc{
				{Interface: "eth0", Kind: "fq_codel", Parent: "root", QdiscState: host.QdiscState{Drops: root}},
				{Interface: "eth0", Kind: "ingress", Parent: "ingress", QdiscState: host.QdiscState{Drops: entrance}},
				{Interface: "eth9", Kind: "clsact", QdiscState: host.QdiscState{Drops: 1e6}},
			}
		}
	}
	none := func(s *evidence.Span) { s.Host.Qdiscs = s.Host.Qdiscs[:1] }
	bothWays := func(s *evidence.Span) {
		qdiscs(0, 0)(s)
		s.Host.Qdiscs[1].Kind = "clsact"
	}
	policed := counts{"rx_packets": 1554, "rx_bytes": 2_250_000, "qdisc.eth0.drops": 962}
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"the flow lost them", watched(gigabit(), policed, qdiscs(0, 0), loadedBy(6e6, 0.38, traffic.Down)),
			want{evidence.Warning, "dropped 962 packets during the test, which carried 6"}},
		{"watched", watched(gigabit(), policed, qdiscs(962, 0)), want{evidence.Warning, "(qdisc ingress) dropped 962"}},
		{"watched, and the queue drops more", watched(gigabit(), policed, qdiscs(0, 9000)), want{}},
		{"no such discipline", watched(gigabit(), policed, qdiscs(0, 0), none, loadedBy(6e6, 0.38, traffic.Down)), want{}},
		{"it drops nothing", watched(gigabit(), counts{"rx_packets": 1554}, qdiscs(0, 0),
			loadedBy(6e6, 0.38, traffic.Down)), want{}},
		{"counted for filters", watched(gigabit(), counts{"rx_packets": 1554, "rx_bytes": 2_250_000,
			"qdisc.eth0.drops": 962, "qdisc.eth0.filter_drops": 962}, qdiscs(0, 9000), loadedBy(6e6, 0.38, traffic.Down)),
			want{evidence.Warning, "at the entrance of eth0 (qdisc ingress) dropped 962"}},
		{"a queue dropped beside filters that did not", watched(gigabit(), counts{"rx_packets": 1554,
			"qdisc.eth0.drops": 962, "qdisc.eth0.filter_drops": 0}, qdiscs(962, 0)), want{}},
		// TCP hears of drops at its own exit at once and retransmits next to nothing.
		{"at the exit of the sender", watched(gigabit(), counts{"tx_packets": 5000, "tx_bytes": 7_250_000,
			"qdisc.eth0.drops": 400, "qdisc.eth0.filter_drops": 400}, bothWays, loadedBy(19e6, 0, traffic.Up)),
			want{evidence.Warning, "at the exit of eth0 (qdisc clsact) dropped 400 packets during the test"}},
		{"either way of a watched host", watched(gigabit(), counts{"rx_packets": 5000, "tx_packets": 5000,
			"qdisc.eth0.drops": 400, "qdisc.eth0.filter_drops": 400}, bothWays),
			want{evidence.Warning, "at the entrance or exit of eth0 (qdisc clsact) dropped 400"}},
		{"ingress of a sender", watched(gigabit(), counts{"tx_packets": 5000, "rx_packets": 900,
			"qdisc.eth0.drops": 40, "qdisc.eth0.filter_drops": 40}, qdiscs(40, 0), loadedBy(19e6, 0, traffic.Up)), want{}},
		{"the host sent, so its queue dropped", watched(gigabit(), policed, qdiscs(0, 0),
			loadedBy(6e6, 0.38, traffic.Up)), want{}},
		{"a few of a full link", watched(gigabit(), counts{"rx_packets": 240_000, "qdisc.eth0.drops": 4}, qdiscs(4, 0),
			loadedBy(941e6, 0, traffic.Down)), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, ingressPolicer(c.span), c.want) })
	}
	// Linux 6.1, a policer of 500 Mb/s at a veth, which passes bundles: 66 drops cost 1886 segments.
	// A NIC counts frames, before GRO. Without bundles this is a tenth of the loss at most.
	few := func(passed uint64, change ...func(*host.Interface)) *evidence.Finding {
		return ingressPolicer(watched(gigabit(change...), counts{"rx_packets": passed, "qdisc.eth0.drops": 66,
			"qdisc.eth0.filter_drops": 66}, qdiscs(66, 0), loadedBy(56.6e6, 0.114, traffic.Down)))
	}
	gro := func(x *host.Interface) { x.Features = map[string]host.Feature{"rx-gro": {On: true}} }
	virtual := func(x *host.Interface) { x.Virtual, x.SpeedBitsPerSec = true, 10e9 }
	for _, x := range []*evidence.Finding{few(700, gro, virtual), few(14_000, gro)} {
		check(t, x, want{evidence.Warning, "dropped 66 packets during the test"})
		if !strings.Contains(strings.Join(x.Rejected, " "), "this filter dropped at least 66") {
			t.Errorf("a bundle counts as a packet: %q", x.Rejected)
		}
	}
	check(t, few(14_000), want{evidence.Notice, "dropped 66 packets"})
	check(t, few(700_000, gro, virtual), want{evidence.Notice, "dropped 66 packets"})
	arriving := watched(gigabit(), policed, qdiscs(962, 0))
	if x := qdiscDrops(arriving); x != nil {
		t.Errorf("packets that arrived are called packets to be sent: %s", x.Title)
	}
	exit := watched(gigabit(), counts{"tx_packets": 5000, "qdisc.eth0.drops": 700, "qdisc.eth0.filter_drops": 400},
		bothWays, loadedBy(19e6, 0.05, traffic.Up))
	if x := qdiscDrops(exit); x == nil || !strings.Contains(x.Title, "300 packets") {
		t.Errorf("what the queue dropped itself: %+v", x)
	}
}

// TestWorstOfTwoCards checks that a rule reports the interface that dropped most of those that are
// equally severe, whichever comes first.
func TestWorstOfTwoCards(t *testing.T) {
	few := counts{"rx_packets": 100000, "rx_bytes": 1e8, "rx_missed_errors": 200}
	many := counts{"rx_packets": 100000, "rx_bytes": 1e8, "rx_missed_errors": 20000}
	for _, order := range [][2]counts{{few, many}, {many, few}} {
		second := gigabit()
		second.Name, second.Index = "eth1", 3
		s := watched(gigabit(), order[0])
		s.Host.Interfaces = append(s.Host.Interfaces, second)
		maps.Copy(s.Counters, order[1].of("eth1"))
		check(t, rxRingOverrun(s), want{evidence.Warning, "20.0 k"})
	}
}
