package flows

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
)

// Worlds that look the same to one stream at a bound set by loss; eight streams distinguish them.
var (
	policed     = seen{rate: 16.5e6, rtt: 0.0208, base: 0.0202, sent: 4335, again: 42, scatter: 0.03}
	lossy       = seen{rate: 17e6, rtt: 0.0207, base: 0.0202, sent: 4500, again: 12, scatter: 0.25}
	policedMany = seen{rate: 19.2e6, rtt: 0.021, base: 0.0202, streams: 8, sent: 640, again: 60}.run()
	lossyMany   = seen{rate: 120e6, rtt: 0.021, base: 0.0202, streams: 8, sent: 4000, again: 11}.run()
	shallowMany = seen{rate: 19.2e6, rtt: 0.030, base: 0.0202, streams: 8, sent: 640, again: 60}.run()
)

func TestPolicer(t *testing.T) {
	bbr := policed
	bbr.control = "bbr"
	mild := policed
	mild.again = 1
	overshoot := policed.of(probes(evidence.ProbeStreams, policedMany))
	overshoot.Runs[1].Intervals[0].RetransmitsTotal = 42
	flood := seen{rate: 45.8e6, rtt: 0.0216, base: 0.0202, streams: 8, sent: 780, again: 34}.run()
	start := seen{rate: 45.8e6, rtt: 0.0216, base: 0.0202, streams: 8, sent: 780, again: 34}.run()
	start.Intervals[0].RetransmitsTotal = 272
	for i := range flood.Intervals {
		flood.Intervals[i].RetransmitsTotal = 45
	}
	dropped := policed.of(probes(evidence.ProbeStreams, policedMany))
	dropped.Runs[1].Ends.Local.Drops = []drops.Drop{{Place: "qdisc eth0", Total: 42}}
	strangers := policed.of(probes(evidence.ProbeStreams, policedMany))
	strangers.Runs[1].Ends.Remote.Drops = []drops.Drop{{Place: "TcpExt.ListenOverflows", Total: 1574, Stage: "tcp"},
		{Place: "Udp.RcvbufErrors", Total: 900, Stage: "socket"}}
	crowd := seen{rate: 19e6, rtt: 0.021, base: 0.0202, streams: 16, sent: 320, again: 20}
	paced := seen{rate: 15.2e6, rtt: 0.0203, base: 0.0202, sent: 1900}.run()
	refused := policed.of(nil)
	refused.Refused = map[evidence.Probe]string{evidence.ProbeStreams: "no time"}
	hold(t, evidence.Policer, []expect{
		{"gross", policed.of(probes(evidence.ProbeStreams, policedMany)), evidence.Warning},
		{"under bbr", bbr.of(probes(evidence.ProbeStreams, policedMany)), evidence.Warning},
		{"one stream far below the bound", seen{rate: 15.5e6, rtt: 0.0208, base: 0.0202, sent: 4060, again: 8,
			scatter: 0.3}.of(probes(evidence.ProbeStreams, flood)),
			evidence.Warning},
		{"eight that started at once", seen{rate: 15.5e6, rtt: 0.0208, base: 0.0202, sent: 4060, again: 8,
			scatter: 0.3}.of(probes(evidence.ProbeStreams, start)), none},
		{"one loss", mild.of(probes(evidence.ProbeStreams, policedMany)), none},
		{"not tried yet", policed.of(nil), none},
		{"cannot be tried", refused, none},
		{"a path that loses by chance", lossy.of(probes(evidence.ProbeStreams, lossyMany)), none},
		{"a short queue at a slower link", policed.of(probes(evidence.ProbeStreams, shallowMany)), none},
		{"two overshoots on a long path", seen{rate: 22e6, rtt: 0.102, base: 0.1, sent: 5647, again: 200, scatter: 0.3,
			counters: map[string]uint64{"TcpExt.TCPSackRecovery": 2}}.of(
			probes(evidence.ProbeStreams, policedMany)), none},
		{"a queue of this host", dropped, none},
		{"drops of other programs", strangers, evidence.Warning},
		{"one overshoot", overshoot, none},
		{"segments overtaken", seen{rate: 16e6, rtt: 0.0208, base: 0.0202, again: 42,
			reordered: 300}.of(probes(evidence.ProbeStreams, policedMany)), none},
		{"window", seen{rate: 16e6, rtt: 0.0208, base: 0.0202, again: 42,
			rwnd: 0.9}.of(probes(evidence.ProbeStreams, policedMany)), none},
		{"sixteen streams, and one paced loses nothing", crowd.of(probes(evidence.ProbePaced, paced)),
			evidence.Warning},
		{"sixteen streams, and one paced loses as before",
			crowd.of(probes(evidence.ProbePaced,
				seen{rate: 4e6, rtt: 0.021, base: 0.0202, sent: 600, again: 24}.run())),
			none},
		{"sixteen streams in a queue", seen{rate: 19e6, rtt: 0.032, base: 0.0202, streams: 16, sent: 320,
			again: 20}.of(probes(evidence.ProbePaced, paced)), none},
		{"nothing known", &evidence.Case{Runs: []traffic.Result{{Test: traffic.Stream, Direction: traffic.Up}}}, none},
	})
	// Linux 6.1, `limit rate over 1250 kbytes/second drop` in the receiver's input chain: no counter
	// rises, and both hosts see a path that loses.
	for hook, asks := range map[string]bool{"input": true, "output": false} {
		limited := policed.of(probes(evidence.ProbeStreams, policedMany))
		limited.Far.Firewall = []host.FirewallChain{{Family: "ip", Type: "filter", Hook: hook, Rules: 1, Compared: 1}}
		x := ask(t, evidence.Policer, limited)
		if x == nil || strings.Contains(x.Remedy.Text, "look for a rule of the far host that limits a rate") != asks ||
			strings.Contains(strings.Join(x.Rejected, " "), "the packet filter of the far host (1 rule) drops") != asks {
			t.Errorf("rules at %s of the receiver: %+v", hook, x)
		}
	}
	// IP of the receiver delivered all that it received, so its rules at input are innocent.
	delivered := policed.of(probes(evidence.ProbeStreams, policedMany))
	delivered.Far.Firewall = []host.FirewallChain{{Family: "ip", Type: "filter", Hook: "input", Rules: 1, Compared: 1}}
	delivered.Runs[1].Ends.Remote.Counters = map[string]uint64{"Ip.InReceives": 900, "Ip.InDelivers": 900}
	if x := ask(t, evidence.Policer, delivered); x == nil || strings.Contains(x.Remedy.Text, "nft") || x.Where != "path" {
		t.Errorf("innocent rules at input: %+v", x)
	}
	c := policed.of(nil)
	ask(t, evidence.Policer, c)
	if w := c.Wanted(); len(w) != 1 || w[0] != evidence.ProbeStreams {
		t.Errorf("wanted %v", w)
	}
}

func TestPathLoss(t *testing.T) {
	sackless := lossy
	sackless.again = 4
	overshoot := lossy.of(nil)
	overshoot.Runs[1].Intervals[0].RetransmitsTotal = 12
	single := lossy
	single.again = 2
	hold(t, evidence.PathLoss, []expect{
		{"before more streams have run", lossy.of(nil), evidence.Warning},
		{"eight streams get seven times as much", lossy.of(probes(evidence.ProbeStreams, lossyMany)), evidence.Warning},
		{"four losses", sackless.of(nil), evidence.Warning},
		{"two losses", single.of(nil), none},
		{"a policer", policed.of(probes(evidence.ProbeStreams, policedMany)), none},
		{"a policer before more streams have run", seen{rate: 16.5e6, rtt: 0.0208, base: 0.0202, sent: 4335, again: 42,
			scatter: 0.2}.of(nil), evidence.Warning},
		// Recorded beside neighbours on a full link: some losses, and a queue that is half empty.
		{"a full link with neighbours", seen{rate: 69.5e6, rtt: 0.0148, base: 0.0101, sent: 17956, again: 16,
			scatter: 0.2}.of(nil), none},
		{"sixteen streams over a policer", seen{rate: 19e6, rtt: 0.021, base: 0.0202, streams: 16, sent: 320, again: 20,
			scatter: 0.2}.of(probes(evidence.ProbePaced,
			seen{rate: 15.2e6, rtt: 0.0203, base: 0.0202, sent: 1900}.run())), none},
		{"four streams that lose by chance", seen{rate: 60e6, rtt: 0.0207, base: 0.0202, streams: 4, sent: 3900,
			again: 12, scatter: 0.2}.of(probes(evidence.ProbePaced,
			seen{rate: 17e6, rtt: 0.0207, base: 0.0202, sent: 2200, again: 6}.run())), evidence.Warning},
		{"one overshoot", overshoot, none},
		// Recorded after slow start: 131 segments at one moment, and two more by chance.
		{"an overshoot and losses by chance", seen{rate: 42.8e6, rtt: 0.0206, base: 0.0202, sent: 11315, again: 133,
			scatter:  0.4,
			counters: map[string]uint64{"TcpExt.TCPSackRecovery": 3}}.of(nil), evidence.Warning},
		{"two overshoots on a long path", seen{rate: 22e6, rtt: 0.102, base: 0.1, sent: 5647, again: 200, scatter: 0.3,
			counters: map[string]uint64{"TcpExt.TCPSackRecovery": 2}}.of(nil), none},
		// Recorded on a busy host: eight streams fill the queue that one leaves half empty.
		{"a full link beside programs that take the processors",
			seen{rate: 43e6, rtt: 0.0125, base: 0.0101, sent: 11165, again: 21, scatter: 0.25}.of(probes(
				evidence.ProbeStreams, seen{rate: 72e6, rtt: 0.0254, base: 0.0101, streams: 8, sent: 1160,
					again: 30}.run())), none},
		{"reordering", seen{rate: 17e6, rtt: 0.0207, base: 0.0202, sent: 4500, again: 20, reordered: 400,
			scatter: 0.2}.of(nil), none},
		{"a black hole that the kernel found", seen{rate: 17e6, rtt: 0.0207, base: 0.0202, sent: 4500, again: 24,
			scatter: 0.2, mss: 1300,
			counters: map[string]uint64{"TcpExt.TCPMTUPSuccess": 3}}.of(nil), none},
	})
}

func TestPathLossWithoutSACK(t *testing.T) {
	c := lossy.of(nil)
	c.Runs[1].Ends.Local.TCP[0].SACKOK = false
	for i := range c.Far.Settings {
		if c.Far.Settings[i].Knob == "sysctl:net.ipv4.tcp_reordering" {
			c.Far.Settings[i].Knob, c.Far.Settings[i].Value = tcpSACK, "0"
		}
	}
	x := ask(t, evidence.PathLoss, c)
	if x == nil || len(x.Remedy.Settings) == 0 || x.Remedy.Settings[0].Knob != tcpSACK ||
		x.Remedy.Settings[0].Side != "far" {
		t.Errorf("%+v", x)
	}
}

func TestBufferbloat(t *testing.T) {
	full := seen{rate: 18.8e6, rtt: 0.216, base: 0.0203}
	withPings := func(p50 float64) *evidence.Case {
		c := full.of(nil)
		c.Runs[1].RTT = &stats.Latencies{Count: 60, P50: p50}
		return c
	}
	jitters := seen{rate: 66e6, rtt: 0.062, base: 0.021}.of(nil)
	jitters.Runs[0].RTT.P50 = 0.055
	busy := seen{rate: 10e9, rtt: 0.045, base: 0.0004}.of(nil)
	busy.Runs[1].Ends.Local.CPUs = idleCPUs(0, 0.01)
	linked := full.of(nil)
	linked.Near.Interfaces[0].Virtual, linked.Near.Interfaces[0].SpeedBitsPerSec = false, 20e6
	linked.Far.Interfaces[0].Virtual, linked.Far.Interfaces[0].SpeedBitsPerSec = false, 20e6
	hold(t, evidence.Bufferbloat, []expect{
		{"gross", seen{rate: 14e6, rtt: 0.75, base: 0.0203, scatter: 0.8}.of(nil), evidence.Warning},
		{"plain", full.of(nil), evidence.Warning},
		{"plain, and pings say so", withPings(0.2), evidence.Warning},
		{"at a link whose speed is known", linked, evidence.Warning},
		{"mild", seen{rate: 18.8e6, rtt: 0.060, base: 0.0203}.of(nil), evidence.Notice},
		{"pings do not wait", withPings(0.021), none},
		{"a path that jitters", jitters, none},
		{"a queue that fills a link", seen{rate: 94e6, rtt: 0.040, base: 0.0202}.of(nil), none},
		{"a long path", seen{rate: 94e6, rtt: 0.302, base: 0.3}.of(nil), none},
		{"one buffer of a long path", seen{rate: 200e6, rtt: 0.131, base: 0.080}.of(nil), none},
		{"a little more of a long path", seen{rate: 87e6, rtt: 0.184, base: 0.080}.of(nil), evidence.Notice},
		{"half a second of a long path", seen{rate: 87e6, rtt: 0.85, base: 0.300}.of(nil), evidence.Warning},
		{"full processors", busy, none},
		{"no round trip", seen{rate: 94e6}.of(nil), none},
	})
	local := full.of(nil)
	local.Runs[1].Ends.Local.Counters = map[string]uint64{"qdisc.eth0.backlog_bytes": 400_000}
	if x := ask(t, evidence.Bufferbloat, local); x == nil || x.Where != "near" ||
		x.Remedy.Settings[0].Knob != "qdisc:eth0/root" {
		t.Errorf("a queue of the sender itself: %+v", x)
	}
}

func TestReordering(t *testing.T) {
	old := seen{rate: 40e6, rtt: 0.044, base: 0.021, sent: 10000, again: 371, scatter: 0.3,
		counters: map[string]uint64{"TcpExt.TCPSACKReorder": 1500}}
	aged := old.of(nil)
	aged.Near.Kernel = "4.9.0-19"
	// A kernel that counts for each connection: these were of other connections.
	others := seen{rate: 6e6, rtt: 0.0207, base: 0.0202, sent: 4500, again: 90, scatter: 0.2,
		counters: map[string]uint64{"TcpExt.TCPSACKReorder": 1500}}
	if x := ask(t, evidence.PathLoss, others.of(probes(evidence.ProbeStreams, seen{rate: 8 * 6e6, rtt: 0.0208,
		base: 0.0202, streams: 8, sent: 4500, again: 90, scatter: 0.1}.run()))); x == nil {
		t.Error("what overtook segments of other programs hides the loss of this flow")
	}
	hold(t, evidence.Reordering, []expect{
		{"of other connections", others.of(nil), none},
		{"gross", seen{rate: 40e6, rtt: 0.044, base: 0.021, sent: 10244, again: 371, reordered: 1688, dsacks: 55,
			scatter: 0.4}.of(nil), evidence.Warning},
		{"plain", seen{rate: 61e6, rtt: 0.0427, base: 0.0328, sent: 15442, again: 109, reordered: 1735, dsacks: 13,
			scatter: 0.17}.of(nil), evidence.Warning},
		{"by the counters of an older kernel", aged, evidence.Warning},
		{"nothing sent again", seen{rate: 61e6, rtt: 0.041, base: 0.0393, sent: 15848, reordered: 578,
			scatter: 0.1}.of(nil), evidence.Notice},
		{"a full link", seen{rate: 95e6, rtt: 0.041, base: 0.0393, sent: 15848, again: 109, reordered: 578}.of(nil),
			evidence.Notice},
		{"loss", lossy.of(nil), none},
		{"a few", seen{rate: 61e6, rtt: 0.041, base: 0.0393, sent: 15848, again: 10, reordered: 19}.of(nil), none},
		{"no tcp_info", &evidence.Case{
			Runs: []traffic.Result{{Test: traffic.Stream, Direction: traffic.Up, ThroughputBitsPerSec: 1e6}}}, none},
	})
}

// TestDown checks that with data in the other direction the far host is the sender, and every
// verdict changes sides.
func TestDown(t *testing.T) {
	down := func(s seen, p map[evidence.Probe]traffic.Result) *evidence.Case {
		c := s.of(p)
		swap := func(r *traffic.Result) {
			r.Direction = traffic.Down
			r.Ends.Local, r.Ends.Remote = r.Ends.Remote, r.Ends.Local
		}
		swap(&c.Runs[1])
		for name, r := range c.Probes {
			if r.Test == traffic.Stream {
				swap(&r)
				c.Probes[name] = r
			}
		}
		return c
	}
	many := seen{rate: 19.2e6, rtt: 0.021, base: 0.0202, streams: 8, sent: 640, again: 60}.run()
	x := ask(t, evidence.Policer, down(policed, probes(evidence.ProbeStreams, many)))
	if x == nil || len(x.Remedy.Settings) == 0 || x.Remedy.Settings[0].Side != "far" {
		t.Errorf("policer: %+v", x)
	}
	slow := seen{rate: 43.4e6, rtt: 0.081, base: 0.0802, cwnd: 441e3}
	if x := ask(t, evidence.CongestionControlMismatch, down(slow, probes(evidence.ProbeCongestion("bbr"),
		seen{rate: 180e6, rtt: 0.09, base: 0.0802, control: "bbr"}.run()))); x == nil || x.Where != "far" {
		t.Errorf("congestion control: %+v", x)
	}
	stalled := seen{rate: 0, rtt: 0.0102, base: 0.0102, cwnd: 1448, sent: 3, again: 2}
	if x := ask(t, evidence.MTUBlackHole,
		down(stalled, found(traffic.PathMTU{UpBytes: 1500, DownBytes: 1400, BlackHoleDown: true}))); x == nil ||
		x.Severity != evidence.Critical ||
		x.Remedy.Settings[0].Side != "far" {
		t.Errorf("black hole: %+v", x)
	}
}
