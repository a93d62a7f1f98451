package processors

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// backlogKnob bounds the queue in front of each processor, in packets: 1000 by default.
	backlogKnob    = "sysctl:net.core.netdev_max_backlog"
	defaultBacklog = 1000
	// seenDrops of the packets taken in are worth a word, one in ten thousand: the least loss that
	// any congestion control feels on a long path. costlyDrops, one in a thousand, is felt on every
	// path.
	seenDrops, costlyDrops = 1e-4, 1e-3
	// fewDrops is what an accident may drop.
	fewDrops = 20
)

// softnetBacklogDrops: packets that one processor hands to another (RPS), to itself (loopback,
// veth, tunnels), or that an old driver hands up, wait in a queue per processor, and what finds it
// full dies there without a trace at the card.
//
// It is the second column of /proc/net/softnet_stat. A flow limit (net.core.flow_limit_cpu_bitmap)
// drops earlier and counts by itself. A queue of the default length that runs over means that its
// processor does not keep up, which is another rule's to say; a short one runs over by itself.
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
		Code: evidence.SoftnetBacklogDrops, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("The queue in front of a processor of the %s host ran over: %s of %s packets were dropped there %s.",
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
	if share >= costlyDrops && !s.SinceBoot {
		x.Severity = evidence.Warning
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
				fmt.Sprintf("Not a full processor: the busiest, CPU %d, worked %s of the time, so the queue was too short for a burst.",
					c.CPU, evidence.Percent(c.Busy())))
		case !short:
			x.Confidence *= 0.7
		}
	}
	missed := s.Sum("nic.", ".rx_missed_errors") + s.Sum("nic.", ".rx_fifo_errors")
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not the ring of a card: cards missed %s packets.",
		evidence.Count(missed)))
	if missed > dropped {
		x.Confidence *= 0.8
	}
	x.Remedy.Text = "Make the queue longer (net.core.netdev_max_backlog), or spread the packets over more processors (RPS, more card queues) so that none falls behind."
	x.Remedy.Proof = "Raise net.core.netdev_max_backlog four times and back by turns: the drops per gigabyte follow; with no drops left a further step must change nothing."
	levels := []knob.Value{"1000", "4000", "16000"}
	for len(levels) > 0 && known {
		n, err := strconv.ParseFloat(string(levels[0]), 64)
		if err == nil && n > length {
			break
		}
		levels = levels[1:]
	}
	x.Remedy.Add(evidence.Candidate{Knob: backlogKnob, Side: s.Side, Levels: levels,
		Why: "the queue that ran over is this long; it is global, so refused inside a container"})
	return x
}
