package processors

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// seenSteal of a processor's time is worth a word, costlySteal is what a flow feels: while one
// processor in seven is away its queues fill.
const seenSteal, costlySteal = 0.05, 0.15

// cpuSteal: the hypervisor let others run while this host had work.
//
// /proc/stat counts it only where the hypervisor tells (KVM, Xen, some others), so none counted is
// no proof. It is time that was wanted: an idle processor is not stolen from. The look-alike is a
// processor that is full by itself: that one has no steal.
func cpuSteal(s *evidence.Span) *evidence.Finding {
	all := judged(s)
	c, ok := most(all, stolen)
	if !ok || c.Steal < seenSteal {
		return nil
	}
	total := mean(all, stolen)
	x := &evidence.Finding{
		Code: evidence.CPUSteal, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("The hypervisor took %s of the time of CPU %d from the %s host %s.",
			evidence.Percent(c.Steal), c.CPU, s.Side, s.When()),
		Evidence: append(classes(s, c),
			evidence.Evidence{Name: "stolen from all processors", Value: total, Unit: "ratio",
				Source: s.Source("/proc/stat")}),
		Rejected: []string{fmt.Sprintf("Not work of this host alone: its own part of CPU %d was %s of the time.",
			c.CPU, evidence.Percent(c.Busy()-c.Steal))},
		Confidence: evidence.Combine(0.8, evidence.When(c.Steal >= costlySteal, 0.5)),
	}
	if c.Steal >= costlySteal {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Nothing in this host helps: ask for less oversubscription, reserved or pinned processors, or a larger instance."
	x.Remedy.Proof = "Measure at a quiet hour, or pin the virtual processors: throughput and steal move against each other, while settings of this host make no difference."
	return x
}
