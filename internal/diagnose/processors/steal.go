package processors

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// seenSteal is the share of a CPU's time from which on steal is worth a notice. costlySteal slows a
// flow: while one CPU in seven is away its queues fill.
const seenSteal, costlySteal = 0.05, 0.15

// cpuSteal finds that the hypervisor ran other work while this host had work to do.
//
// /proc/stat counts steal only if the hypervisor reports it (KVM, Xen, some others), so none
// counted is no proof. It counts only time in which the CPU was needed: an idle CPU has no steal.
// The look-alike is a CPU that the host itself saturates, which has no steal either.
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
	x.Remedy.Text = "No setting of this host helps: ask for less oversubscription, reserved or pinned CPUs, " +
		"or a larger instance."
	x.Remedy.Proof = "Measure at a quiet hour, or pin the virtual CPUs: throughput rises as steal falls, " +
		"while settings of this host make no difference."
	return x
}
