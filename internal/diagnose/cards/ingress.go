package cards

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// entrances are the disciplines that see packets as they arrive (sch_ingress.c). They queue
// nothing: what they drop, a filter's action dropped, and in practice that is a policer
// (act_police).
var entrances = []string{"ingress", "clsact"}

// ingressPolicer finds that a filter at the entrance of an interface drops what the host receives.
//
// The counter of the interface is that of the discipline that dropped most. So the drops belong to
// the entrance if the host only received in the run; without such a run, if the entrance is what
// dropped most since it was made.
func ingressPolicer(s *evidence.Span) *evidence.Finding {
	if !receives(s) {
		return nil
	}
	return worst(interfacesOf(s), policedEntrance)
}

// policedEntrance weighs what the entrance of one interface dropped.
func policedEntrance(c card) *evidence.Finding {
	s := c.s
	q, ok := c.entrance()
	if !ok {
		return nil
	}
	drops, received := s.Count("qdisc."+c.Name+".drops"), c.count("rx_packets")
	if s.SinceBoot && drops == 0 {
		drops = float64(q.Drops)
	}
	severity, ok := c.weigh(drops, received)
	if !ok {
		return nil
	}
	share := drops / max(drops+received, 1)
	x := &evidence.Finding{
		Code: evidence.Policer, Severity: severity, Where: where(s),
		Title: fmt.Sprintf("A filter at the entrance of %s (qdisc %s) dropped %s packets %s, %s of those that arrived.",
			c.Name, q.Kind, evidence.Count(drops), s.When(), evidence.Percent(min(share, 1))),
		Evidence: []evidence.Evidence{
			{Name: "packets dropped as they arrived", Value: drops, Unit: "packets",
				Source: s.Source("qdisc." + c.Name + ".drops")},
			{Name: "discipline", Value: q.Kind, Source: "tc qdisc show dev " + c.Name + " (" + s.Side + ")"},
		},
		Rejected: notMeasured(s),
		Confidence: evidence.Combine(0.6, evidence.When(severity == evidence.Warning, 0.5),
			evidence.When(share >= feltShare, 0.3)),
	}
	if s.Loaded() {
		x.Title = fmt.Sprintf("A filter at the entrance of %s (qdisc %s) dropped %s packets during the test, "+
			"which carried %s.", c.Name, q.Kind, evidence.Count(drops), evidence.Rate(s.Run.ThroughputBitsPerSec))
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "throughput", Value: s.Run.ThroughputBitsPerSec,
			Unit: "bits_per_second", Source: "payload counted at the receiver"})
	}
	if again, ratio, known := repaired(s); known && again > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "share of the flow that was lost", Value: ratio,
			Unit: "ratio", Source: "tcpi_total_retrans, less tcpi_dsack_dups (sender)"})
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not the path: of the %s packets that the flow lost, this filter dropped %s.",
				evidence.Count(again), evidence.Count(min(drops, again))))
	}
	x.Rejected = append(x.Rejected, "Not a queue: this discipline holds 0 packets at any time.")
	x.Remedy.Text = fmt.Sprintf("See which filter drops and at what rate with `tc -s filter show dev %s ingress`, and "+
		"whether it is still needed. To limit a rate without such losses, shape it where the data is sent.", c.Name)
	x.Remedy.Proof = "Run the same load with and without the filter alternately: the rate follows, " +
		"and `tc -s filter` counts no drops without it. Larger buffers, the control, make no difference."
	return x
}

// entrance returns the discipline at the entrance of this interface if the drops of the span are
// its own.
func (c card) entrance() (host.Qdisc, bool) {
	own := slices.DeleteFunc(slices.Clone(c.s.Host.Qdiscs), func(q host.Qdisc) bool { return q.Interface != c.Name })
	at := slices.IndexFunc(own, func(q host.Qdisc) bool { return slices.Contains(entrances, q.Kind) })
	switch {
	case at < 0:
		return host.Qdisc{}, false
	// A receiver sends acknowledgements, which no queue drops in numbers.
	case c.s.Run != nil && !sends(c.s):
		return own[at], true
	}
	for _, q := range own {
		if !slices.Contains(entrances, q.Kind) && q.Drops >= own[at].Drops {
			return host.Qdisc{}, false
		}
	}
	return own[at], true
}
