package processors

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// backlogKnob bounds the queue in front of each CPU, in packets: 1000 by default.
	backlogKnob    = "sysctl:net.core.netdev_max_backlog"
	defaultBacklog = 1000
	// seenDrops is the share of received packets from which on drops are worth a notice: one in ten
	// thousand, the least loss that slows any congestion control on a long path. costlyDrops, one
	// in a thousand, slows traffic on every path.
	seenDrops, costlyDrops = 1e-4, 1e-3
	// fewDrops is how many drops may be an accident.
	fewDrops = 20
)

// softnetBacklogDrops finds drops at the per-CPU backlog. Packets wait there that one CPU hands to
// another (RPS) or to itself (loopback, veth, tunnels), and those of drivers without polling. A
// full backlog drops packets without a trace at the NIC.
//
// The counter is the second column of /proc/net/softnet_stat. A flow limit
// (net.core.flow_limit_cpu_bitmap) drops earlier and has a counter of its own. If a queue of the
// default length overflows, its CPU does not keep up, which is the subject of another rule; a short
// one overflows even with a fast CPU.
func softnetBacklogDrops(s *evidence.Span) *evidence.Finding {
	dropped, taken := s.Count("softnet.dropped"), received(s)
	if dropped < fewDrops || taken <= 0 {
		return nil
	}
	share := dropped / (dropped + taken)
	if share < seenDrops {
		return nil
	}
	length, known := s.Number(backlogKnob, 0)
	short := known && length < defaultBacklog
	x := &evidence.Finding{
		Code: evidence.SoftnetBacklogDrops, Severity: evidence.Notice, Where: s.Side, LostPerSec: s.PerSecond(dropped),
		Title: fmt.Sprintf("The backlog queue of a CPU of the %s host overflowed: it dropped %s of %s packets %s.",
			s.Side, evidence.Percent(share), evidence.Count(taken+dropped), s.When()),
		Evidence: []evidence.Evidence{
			{Name: "packets dropped by full backlogs", Value: dropped, Unit: "packets",
				Source: s.Source("/proc/net/softnet_stat, second column")},
			{Name: "packets taken in", Value: taken, Unit: "packets",
				Source: s.Source("/proc/net/softnet_stat, first column")},
			{Name: "share of packets dropped", Value: share, Unit: "ratio", Source: "dropped / (dropped + taken in)"},
		},
		Confidence: evidence.Combine(0.8, evidence.When(share >= costlyDrops, 0.5), evidence.When(short, 0.5)),
	}
	// The counter is that of the whole machine, other namespaces included.
	x.Aside = s.FewFor(dropped)
	if share >= costlyDrops && !s.SinceBoot {
		x.Severity = evidence.Warning
	}
	if x.Aside {
		x.Severity = evidence.Notice
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not what slows the flow of the test: it retransmitted far more than these %s packets can hold.",
				evidence.Count(dropped)))
	}
	if known {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "length of the queue", Value: length, Unit: "packets",
			Source: s.Source("sysctl net.core.netdev_max_backlog")})
	}
	if c, ok := most(judged(s), busy); ok {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: fmt.Sprintf("busiest processor, CPU %d", c.CPU),
			Value: c.Busy(), Unit: "ratio",
			Source: s.Source("/proc/stat")})
		switch {
		case c.Busy() < full:
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not a saturated CPU: the busiest one, CPU %d, was busy for %s of the time, "+
					"so the queue was too short for a burst.",
					c.CPU, evidence.Percent(c.Busy())))
		case !short:
			x.Confidence *= 0.7
		}
	}
	missed := s.Sum("nic.", ".rx_missed_errors") + s.Sum("nic.", ".rx_fifo_errors")
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not the ring of a NIC: NICs missed %s packets.",
		evidence.Count(missed)))
	if missed > dropped {
		x.Confidence *= 0.8
	}
	x.Remedy.Text = "Lengthen the queue (net.core.netdev_max_backlog), or spread the packets over more CPUs " +
		"(RPS, more NIC queues) so that none falls behind."
	x.Remedy.Proof = "Quadruple net.core.netdev_max_backlog and restore it, alternately: " +
		"drops per gigabyte follow; once nothing drops, a further step must change nothing."
	levels := []knob.Value{"1000", "4000", "16000"}
	for len(levels) > 0 && known {
		n, err := strconv.ParseFloat(string(levels[0]), 64)
		if err == nil && n > length {
			break
		}
		levels = levels[1:]
	}
	x.Remedy.Add(evidence.Candidate{Knob: backlogKnob, Side: s.Side, Levels: levels,
		Why: "the queue that overflowed has this length; the setting is global, so refused inside a container"})
	return x
}
