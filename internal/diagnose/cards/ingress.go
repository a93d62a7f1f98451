package cards

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// entrances are the disciplines that see packets as they arrive (sch_ingress.c). They queue
// nothing: what they drop, a filter's action dropped, and in practice that is a policer
// (act_police). bothWays is the one of them that also sees packets as they leave, and has one
// counter for the two.
var entrances = []string{"ingress", bothWays}

const bothWays = "clsact"

// ingressPolicer finds that a filter at the entrance of an interface drops what the host receives,
// or one at its exit what the host sends.
//
// One counter has the drops of both. Those of a run are at the entrance if the host only received,
// and at the exit if it only sent.
func ingressPolicer(s *evidence.Span) *evidence.Finding {
	return worst(interfacesOf(s), policedEntrance)
}

// passage is where a filter without a queue sees packets.
type passage struct{ where, verb, hook string }

// passageOf returns where the filters of a discipline drop, and how many packets passed there;
// false if they cannot drop the payload of the run.
func (c card) passageOf(kind string) (p passage, passed float64, ok bool) {
	in, out := c.count("rx_packets"), c.count("tx_packets")
	switch {
	case kind != bothWays || !sends(c.s):
		return passage{"entrance", "arrived", "ingress"}, in, receives(c.s)
	case !receives(c.s):
		return passage{"exit", "were to be sent", "egress"}, out, true
	}
	return passage{"entrance or exit", "passed", "ingress, and egress"}, in + out, true
}

// policedEntrance weighs what the entrance of one interface dropped.
func policedEntrance(c card) *evidence.Finding {
	s := c.s
	q, drops, ok := c.entrance()
	if !ok {
		return nil
	}
	at, received, ok := c.passageOf(q.Kind)
	if !ok {
		return nil
	}
	if s.SinceBoot && drops == 0 {
		drops = float64(q.Drops)
	}
	severity, ok := c.weigh(drops, received)
	if !ok {
		return nil
	}
	share := drops / max(drops+received, 1)
	// The sender's TCP learns of a drop at its own exit at once (NET_XMIT_DROP): it slows down as for
	// any loss, and has nothing to retransmit.
	if at.hook == "egress" && s.Loaded() && share >= feltShare && !c.linkFull() {
		severity = evidence.Warning
	}
	// A filter counts a bundle of segments as one. Packets that pass a virtual interface are bundles
	// too, so that the share is that of the segments; a NIC counts frames, before GRO.
	again, ratio, lossKnown := repaired(s)
	if most := c.mostSegments(drops); lossKnown && drops < ownShare*again && most >= ownShare*again {
		if !c.Virtual {
			share = most / (most + received)
		}
		if ratio >= evidence.MinLoss && share >= max(evidence.MinLoss, ownShare*ratio) && !c.linkFull() {
			severity = evidence.Warning
		}
	}
	x := &evidence.Finding{
		Code: evidence.Policer, Severity: severity, Where: where(s), LostPerSec: s.PerSecond(drops),
		Title: fmt.Sprintf("A filter at the %s of %s (qdisc %s) dropped %s packets %s, %s of those that %s.",
			at.where, c.Name, q.Kind, evidence.Count(drops), s.When(), evidence.Percent(min(share, 1)), at.verb),
		Evidence: []evidence.Evidence{
			{Name: "packets dropped at the " + at.where, Value: drops, Unit: "packets",
				Source: s.Source("qdisc." + c.Name + ".drops")},
			{Name: "discipline", Value: q.Kind, Source: "tc qdisc show dev " + c.Name + " (" + s.Side + ")"},
		},
		Rejected: notMeasured(s),
		Confidence: evidence.Combine(0.6, evidence.When(severity == evidence.Warning, 0.5),
			evidence.When(share >= feltShare, 0.3)),
	}
	if s.Loaded() {
		x.Title = fmt.Sprintf("A filter at the %s of %s (qdisc %s) dropped %s packets during the test, "+
			"which carried %s.", at.where, c.Name, q.Kind, evidence.Count(drops), evidence.Rate(s.Run.ThroughputBitsPerSec))
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "throughput", Value: s.Run.ThroughputBitsPerSec,
			Unit: "bits_per_second", Source: "payload counted at the receiver"})
	}
	if lossKnown && again > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "share of the flow that was lost", Value: ratio,
			Unit: "ratio", Source: "tcpi_total_retrans, less tcpi_dsack_dups (sender)"})
		x.Rejected = append(x.Rejected, c.notThePath("filter", drops, again))
	}
	x.Rejected = append(x.Rejected, "Not a queue: this discipline holds 0 packets at any time.")
	x.Remedy.Text = fmt.Sprintf("See which filter drops and at what rate with `tc -s filter show dev %s` (%s), and "+
		"whether it is still needed. To limit a rate without such losses, shape it where the data is sent.", c.Name,
		at.hook)
	x.Remedy.Proof = "Run the same load with and without the filter alternately: the rate follows, " +
		"and `tc -s filter` counts no drops without it. Larger buffers, the control, make no difference."
	return x
}

// entrance returns the discipline whose filters drop at this interface, and how much of the drops
// of the span is theirs. Linux has a counter for it (qdisc.X.filter_drops); where a far host of an
// older version reports none, it is inferred: a receiver sends acknowledgements, which no queue
// drops in numbers, and without a run the discipline that dropped most since it was made counts.
func (c card) entrance() (q host.Qdisc, drops float64, ok bool) {
	own := slices.DeleteFunc(slices.Clone(c.s.Host.Qdiscs), func(q host.Qdisc) bool { return q.Interface != c.Name })
	at := slices.IndexFunc(own, func(q host.Qdisc) bool { return slices.Contains(entrances, q.Kind) })
	if at < 0 {
		return host.Qdisc{}, 0, false
	}
	if n, counted := c.filtered(); counted {
		return own[at], n, n > 0
	}
	all := c.s.Count("qdisc." + c.Name + ".drops")
	if c.s.Run != nil {
		return own[at], all, !sends(c.s)
	}
	for _, q := range own {
		if !slices.Contains(entrances, q.Kind) && q.Drops >= own[at].Drops {
			return host.Qdisc{}, 0, false
		}
	}
	return own[at], all, true
}

// filtered returns what filters outside of the tree of queues dropped in the span; false if that is
// not known, as in a run where it is zero.
func (c card) filtered() (float64, bool) {
	n, counted := c.s.Counters["qdisc."+c.Name+".filter_drops"]
	return float64(n), counted
}
