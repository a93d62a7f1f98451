package processors

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// A round of polling ends after this many packets, or microseconds, even if work is left
	// (net.core.netdev_budget, 300 by default, and netdev_budget_usecs, 2000, since Linux 4.12; two
	// ticks before). One NIC may take dev_weight packets, 64, at a time.
	budgetKnob, budgetTimeKnob, weightKnob = "sysctl:net.core.netdev_budget",
		"sysctl:net.core.netdev_budget_usecs", "sysctl:net.core.dev_weight"
	defaultBudget, defaultBudgetUsecs, defaultWeight = 300, 2000, 64

	// squeezedOften is how many packets there are per squeeze if polling keeps ending early: with
	// the default budget there cannot be much fewer than that budget, so twice as many leave room
	// for rounds of several CPUs, and for squeezes by time.
	squeezedOften = 2 * defaultBudget
	// fewSqueezes per second come from bursts: one round in ten milliseconds.
	fewSqueezes = 100
)

// napiBudgetExhausted finds rounds of polling that end before the work does.
//
// A squeeze alone costs little: the next softirq continues the round, or ksoftirqd does, which
// waits for the scheduler. So it is a notice with the default budget, even if it is frequent. It is
// a warning if the budget is set below its default and rounds keep ending because of it: then every
// few packets wait for the scheduler.
func napiBudgetExhausted(s *evidence.Span) *evidence.Finding {
	squeezes, taken := s.Count("softnet.time_squeeze"), received(s)
	if squeezes <= 0 || taken <= 0 || s.SinceBoot || s.Seconds < shortest {
		return nil
	}
	per := taken / squeezes
	if s.PerSecond(squeezes) < fewSqueezes || per > squeezedOften {
		return nil
	}
	budget, budgetKnown := s.Number(budgetKnob, 0)
	usecs, usecsKnown := s.Number(budgetTimeKnob, 0)
	weight, weightKnown := s.Number(weightKnob, 0)
	smallBudget := budgetKnown && budget < defaultBudget && per <= 3*max(budget, weight) ||
		// A container does not see the setting, but its work is that of the machine.
		!budgetKnown && per < defaultBudget/3 && endedByPackets(s, squeezes)
	smallTime := usecsKnown && usecs < defaultBudgetUsecs && !smallBudget
	smallWeight := weightKnown && weight < defaultWeight
	x := &evidence.Finding{
		Code: evidence.NAPIBudgetExhausted, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("Polling of the %s host stopped early %s times a second, every %s packets, "+
			"with work left.",
			s.Side, evidence.Count(s.PerSecond(squeezes)), evidence.Count(per)),
		Evidence: []evidence.Evidence{
			{Name: "rounds of polling that ended early", Value: squeezes, Unit: "rounds",
				Source: s.Source("/proc/net/softnet_stat, third column")},
			{Name: "packets for each of them", Value: per, Unit: "packets", Source: "first column / third column"},
		},
		Confidence: evidence.Combine(0.6, evidence.When(smallBudget || smallTime, 0.6)),
	}
	for _, k := range []struct {
		name, unit string
		value      float64
		known      bool
	}{
		{"net.core.netdev_budget", "packets", budget, budgetKnown},
		{"net.core.netdev_budget_usecs", "microseconds", usecs, usecsKnown},
		{"net.core.dev_weight", "packets", weight, weightKnown},
	} {
		if k.known {
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: k.name, Value: k.value, Unit: k.unit,
				Source: s.Source("sysctl")})
		}
	}
	if c, ok := most(judged(s), packetWork); ok {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: fmt.Sprintf("softirq and interrupts of CPU %d", c.CPU),
			Value: packetWork(c), Unit: "ratio",
			Source: s.Source("/proc/stat")})
		if packetWork(c) < full {
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not a CPU saturated with packets: CPU %d spent %s of its time on them.", c.CPU,
					evidence.Percent(packetWork(c))))
		}
	}
	drops := s.Count("softnet.dropped") + s.Sum("nic.", ".rx_missed_errors")
	x.Rejected = append(x.Rejected,
		fmt.Sprintf("Nothing was lost because of it, as far as counters show: NICs and backlogs dropped %s packets.",
			evidence.Count(drops)))
	x.Remedy.Proof = "Quadruple the budget that binds and restore it, alternately; " +
		"measure the rate and the 99th percentile of the round trip. With the default budget, " +
		"expect no effect."
	switch {
	case smallBudget:
		x.Severity = evidence.Warning
		x.Remedy.Text = fmt.Sprintf(
			"Set net.core.netdev_budget back to %d or more: it is %s, and rounds end because of it.", defaultBudget,
			evidence.Count(budget))
		if !budgetKnown {
			x.Remedy.Text = fmt.Sprintf(
				"Check net.core.netdev_budget of the machine, which this namespace does not show: "+
					"rounds end after fewer packets than the default of %d allows, "+
					"long before their time is over.", defaultBudget)
		}
		x.Remedy.Add(evidence.Candidate{Knob: budgetKnob, Side: s.Side, Levels: []knob.Value{"300", "600"},
			Why: "rounds of polling end at this number of packets"})
	case smallTime:
		x.Severity = evidence.Warning
		x.Remedy.Text = fmt.Sprintf(
			"Set net.core.netdev_budget_usecs back to %d: it is %s, and rounds end before the budget of packets "+
				"is used.",
			defaultBudgetUsecs, evidence.Count(usecs))
		x.Remedy.Add(evidence.Candidate{Knob: budgetTimeKnob, Side: s.Side, Levels: []knob.Value{"2000", "8000"},
			Why: "rounds of polling end at this time"})
	default:
		x.Remedy.Text = "Mostly harmless with the default budget. If latency matters, " +
			"spread the packets over more CPUs before you raise net.core.netdev_budget."
		now := max(budget, defaultBudget)
		x.Remedy.Add(evidence.Candidate{Knob: budgetKnob, Side: s.Side,
			Levels: []knob.Value{knob.Value(fmt.Sprintf("%.0f", 2*now)), knob.Value(fmt.Sprintf("%.0f", 4*now))},
			Why:    "unlikely to change throughput; the experiment shows whether it does"})
	}
	if smallWeight {
		x.Remedy.Add(evidence.Candidate{Knob: weightKnob, Side: s.Side, Levels: []knob.Value{"64"},
			Why: "how much a backlog may pass on at once"})
	}
	return x
}

// endedByPackets reports whether rounds end because of their number of packets. If they ended
// because of their time, each would have taken netdev_budget_usecs of softirq time, but the CPUs
// spent less than half of that.
func endedByPackets(s *evidence.Span, squeezes float64) bool {
	var spent float64
	for _, c := range s.CPUs {
		if c.CPU >= 0 {
			spent += c.SoftIRQ + c.IRQ
		}
	}
	return len(s.CPUs) > 0 && spent < 0.5*squeezes*defaultBudgetUsecs/1e6
}
