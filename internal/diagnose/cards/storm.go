package cards

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// manyInterrupts per second of one vector are more than a tuned NIC makes at any load: at 2 to
	// 5 µs each they take at least a tenth of a CPU.
	manyInterrupts = 20_000
	// costlyInterrupts suffice if they visibly saturate a CPU: in virtual machines each costs ten
	// times as much.
	costlyInterrupts = 2000
	// fewFrames per interrupt, both directions together: a poll takes up to 64, and a NIC with
	// moderation gathers tens of frames at such rates.
	fewFrames = 4
	// interruptWork is the share of a CPU's time in interrupts and softirqs from which on they take
	// most of it.
	interruptWork = 0.5
)

// interruptStorm finds a NIC that interrupts for nearly every frame, and a CPU that has no time
// left because of it.
//
// Many interrupts alone are not a fault: a host that answers small requests needs one each, and a
// NIC with many queues has many. So there must be few frames per interrupt, and a warning needs a
// saturated CPU that spends its time on them. A CPU saturated with packets gathers them itself,
// because no interrupt occurs while it polls: then there are many frames per interrupt, and the
// rule is silent. Transactions have one frame per interrupt by nature, so the rule skips them.
func interruptStorm(s *evidence.Span) *evidence.Finding {
	if s.SinceBoot || s.Run != nil && !s.Loaded() {
		return nil
	}
	return worst(cardsOf(s), storm)
}

// storm weighs the interrupts of one NIC.
func storm(c card) *evidence.Finding {
	s := c.s
	all, busiestVector, known := c.interrupts()
	if !known || s.Seconds <= 0 {
		return nil
	}
	each := (c.frames("rx") + c.frames("tx")) / all
	cpu := s.BusiestBy(func(r evidence.ClassRatios) float64 { return r.IRQ + r.SoftIRQ })
	work := cpu.IRQ + cpu.SoftIRQ
	// Interrupts that go to NAPI at once show as softirq and not as irq time, and without
	// CONFIG_IRQ_TIME_ACCOUNTING the tick decides which: both count.
	full := cpu.Known && cpu.Busy() >= evidence.FullProcessor && work >= interruptWork
	// By vector, because each has a CPU: thirty-two queues with a thousand interrupts each are
	// harmless.
	rate := s.PerSecond(busiestVector)
	if each >= fewFrames || rate < manyInterrupts && !(full && rate >= costlyInterrupts) {
		return nil
	}
	severity := evidence.Notice
	if full && !c.linkFull() {
		severity = evidence.Warning
	}
	x := &evidence.Finding{
		Code: evidence.InterruptStorm, Severity: severity, Where: where(s),
		Title: fmt.Sprintf("NIC %s interrupts %s times a second, once for every %.1f frames.", c.Name,
			evidence.Count(s.PerSecond(all)), each),
		Evidence: []evidence.Evidence{
			{Name: "interrupts of the card", Value: s.PerSecond(all), Unit: "per_second", Source: "/proc/interrupts (" +
				s.Side + ")"},
			{Name: "frames for each interrupt, both directions", Value: each, Unit: "packets",
				Source: c.source("rx_packets + tx_packets, or bytes / MTU")},
		},
		Rejected: []string{fmt.Sprintf(
			"Not many packets alone: a CPU saturated with those polls, and gets tens of frames per interrupt "+
				"instead of %.1f.", each)},
		Confidence: evidence.Combine(0.3, evidence.When(full, 0.5), evidence.When(each < 2, 0.3),
			evidence.When(rate >= manyInterrupts, 0.3),
			evidence.When(c.unmoderated(), 0.3)),
	}
	if cpu.Known {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: fmt.Sprintf("time in interrupts and softirqs, CPU %d", cpu.CPU), Value: work,
				Unit:   "ratio",
				Source: "/proc/stat (" + s.Side + ")"})
		if s.Run != nil {
			x.Rejected = append(x.Rejected, fmt.Sprintf("Not the program: CPU %d spent %s of its time in programs.",
				cpu.CPU, evidence.Percent(cpu.User)))
		}
	}
	if usecs, ok := c.Coalesce["rx-usecs"]; ok {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "wait before a receive interrupt, as set",
			Value: float64(usecs), Unit: "microseconds",
			Source: "ethtool -c: rx-usecs of " + c.Name + " (" + s.Side + ")"})
	}
	stormRemedy(c, x)
	return x
}

// interrupts returns how often this NIC interrupted in the span: all vectors together, and the
// busiest one; false if that was not counted, or if the NIC shares its line with another device.
func (c card) interrupts() (all, busiestVector float64, known bool) {
	add := func(n float64, name string) {
		// The kernel lists the handlers of a shared line with commas between them.
		if strings.Contains(name, ", ") {
			n = 0
		}
		all, busiestVector, known = all+n, max(busiestVector, n), known || n > 0
	}
	for _, i := range c.s.Interrupts {
		if i.Interface == c.Name {
			add(float64(i.Total), i.Name)
		}
	}
	if known {
		return all, busiestVector, true
	}
	// During a run only the totals per number are read: /proc/interrupts of a large host takes
	// milliseconds.
	for _, i := range c.Interrupts {
		add(c.s.Count("irq."+strconv.Itoa(i.Number)), i.Name)
	}
	return all, busiestVector, known
}

// unmoderated reports whether the driver reports that nothing delays its interrupts.
func (c card) unmoderated() bool {
	_, reported := c.Coalesce["rx-usecs"]
	_, waits := c.interval()
	return reported && !waits && c.Coalesce["rx-frames"] <= 1
}

// stormRemedy proposes what the driver supports: moderation of the NIC, moderation of the kernel,
// or larger frames.
func stormRemedy(c card, x *evidence.Finding) {
	side := where(c.s)
	x.Remedy.Proof = "Run the same load with the old and the new value alternately: " +
		"CPU time per gigabyte falls with the interrupts; the median round trip shows the price."
	if _, can := c.Coalesce["rx-usecs"]; !can {
		x.Remedy.Text = "The driver cannot delay interrupts. The kernel can instead (napi_defer_hard_irqs with " +
			"gro_flush_timeout); larger frames at both ends also mean fewer interrupts. " +
			"Where CPU time is plentiful, leave it."
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + c.Name + "/napi_defer_hard_irqs"), Side: side,
			Levels: []knob.Value{"1", "2"},
			Why:    "empty polls before the NIC may interrupt again"})
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + c.Name + "/gro_flush_timeout"), Side: side,
			Levels: []knob.Value{"20000", "50000", "100000"},
			Why:    "nanoseconds until the next poll; without napi_defer_hard_irqs it does nothing"})
		x.Remedy.Knobs = append(x.Remedy.Knobs, "link:"+c.Name+"/mtu")
		return
	}
	x.Remedy.Text = "Let the NIC gather packets before it interrupts, with the shortest delay that relieves the " +
		"CPU, because every request pays for it. Where CPU time is plentiful, leave it."
	if v, ok := c.Coalesce["adaptive-rx"]; ok && v == 0 {
		x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("coalesce.adaptive-rx"), Side: side, Levels: []knob.Value{"on"},
			Why: "waits only under heavy load"})
	}
	x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("coalesce.rx-usecs"), Side: side, Levels: c.longerWaits(),
		Why: "microseconds from one interrupt to the next"})
}

// longerWaits returns values of rx-usecs above the present one, smallest first. Drivers whose
// numbers are modes get the adaptive mode first.
func (c card) longerWaits() []knob.Value {
	now := c.Coalesce["rx-usecs"]
	waits := []uint32{8, 32, 64, 128}
	if moderated(c.Driver) {
		waits = []uint32{3, 50, 125, 250}
	}
	waits = slices.DeleteFunc(waits, func(n uint32) bool { return n <= now })
	var levels []knob.Value
	for _, n := range waits {
		levels = append(levels, knob.Value(fmt.Sprint(n)))
	}
	return levels
}
