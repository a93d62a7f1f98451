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
	// manyInterrupts of one vector in a second are more than a tuned card makes at any load: at 2
	// to 5 µs each they are a tenth of a processor and more.
	manyInterrupts = 20_000
	// costlyInterrupts are enough where a processor is seen to be full of them: virtual machines
	// pay ten times as much for one.
	costlyInterrupts = 2000
	// fewFrames for each interrupt, both directions together: a poll takes up to 64, and a card
	// that waits for company gets tens of them at such rates.
	fewFrames = 4
	// interruptWork is the part of a processor's time in interrupts and softirqs that is more than
	// half of what it has.
	interruptWork = 0.5
)

// interruptStorm: the card interrupts for nearly every frame, and the processor that serves it has
// no time left.
//
// Many interrupts alone are no fault: a host that answers small questions wants one each, and a
// card with many queues has many. So frames must be few for each of them, and it is a warning only
// with a processor that is full and spends its time on them. A processor that is full of packets
// gathers them by itself, as no interrupt comes while it polls: then the frames for each are many,
// and the rule is silent. Transactions are one frame for each by nature and are not asked.
func interruptStorm(s *evidence.Span) *evidence.Finding {
	if s.SinceBoot || s.Run != nil && !s.Loaded() {
		return nil
	}
	return worst(cardsOf(s), storm)
}

// storm weighs the interrupts of one card.
func storm(c card) *evidence.Finding {
	s := c.s
	all, busiestVector, known := c.interrupts()
	if !known || s.Seconds <= 0 {
		return nil
	}
	each := (c.frames("rx") + c.frames("tx")) / all
	cpu := s.BusiestBy(func(r evidence.ClassRatios) float64 { return r.IRQ + r.SoftIRQ })
	work := cpu.IRQ + cpu.SoftIRQ
	// Interrupts that are handed to NAPI at once show as softirq and not as irq time, and without
	// CONFIG_IRQ_TIME_ACCOUNTING the tick decides which: both count.
	full := cpu.Known && cpu.Busy() >= evidence.FullProcessor && work >= interruptWork
	// By vector, as each has a processor: thirty-two queues with a thousand interrupts each are
	// nobody's burden.
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
		Title: fmt.Sprintf("Card %s interrupts %s times a second, once for every %.1f frames.", c.Name,
			evidence.Count(s.PerSecond(all)), each),
		Evidence: []evidence.Evidence{
			{Name: "interrupts of the card", Value: s.PerSecond(all), Unit: "per_second", Source: "/proc/interrupts (" +
				s.Side + ")"},
			{Name: "frames for each interrupt, both directions", Value: each, Unit: "packets",
				Source: c.source("rx_packets + tx_packets, or bytes / MTU")},
		},
		Rejected: []string{fmt.Sprintf(
			"Not many packets alone: a processor that is full of those polls, and gets tens of frames for each interrupt instead of %.1f.", each)},
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
			x.Rejected = append(x.Rejected, fmt.Sprintf("Not the program: CPU %d spent %s of its time for programs.",
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

// interrupts is how often this card interrupted in the span, all vectors together and the busiest
// of them. False: not counted, or on a line that it shares with another device, which nobody can
// tell apart.
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
	// During a run only the totals of each number are read: /proc/interrupts of a large host takes
	// milliseconds.
	for _, i := range c.Interrupts {
		add(c.s.Count("irq."+strconv.Itoa(i.Number)), i.Name)
	}
	return all, busiestVector, known
}

// unmoderated tells that the driver says that nothing holds its interrupts back.
func (c card) unmoderated() bool {
	_, told := c.Coalesce["rx-usecs"]
	_, waits := c.interval()
	return told && !waits && c.Coalesce["rx-frames"] <= 1
}

// stormRemedy goes by what the driver can do: moderation of the card, that of the kernel, or larger
// frames.
func stormRemedy(c card, x *evidence.Finding) {
	side := where(c.s)
	x.Remedy.Proof = "The same load with the old and the new value by turns: processor time per gigabyte falls with the interrupts; the median round trip shows the price."
	if _, can := c.Coalesce["rx-usecs"]; !can {
		x.Remedy.Text = "The driver cannot hold interrupts back. The kernel can instead (napi_defer_hard_irqs with gro_flush_timeout); larger frames at both ends are " +
			"the other way to fewer of them. Where processor time is plentiful, leave it."
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + c.Name + "/napi_defer_hard_irqs"), Side: side,
			Levels: []knob.Value{"1", "2"},
			Why:    "polls that find nothing before the card may interrupt again"})
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + c.Name + "/gro_flush_timeout"), Side: side,
			Levels: []knob.Value{"20000", "50000", "100000"},
			Why:    "nanoseconds until the next look; it does nothing without napi_defer_hard_irqs"})
		x.Remedy.Knobs = append(x.Remedy.Knobs, "link:"+c.Name+"/mtu")
		return
	}
	x.Remedy.Text = "Let the card wait for company before it interrupts; the shortest wait that frees the processor, as every question pays for it. Where processor " +
		"time is plentiful, leave it."
	if v, ok := c.Coalesce["adaptive-rx"]; ok && v == 0 {
		x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("coalesce.adaptive-rx"), Side: side, Levels: []knob.Value{"on"},
			Why: "waits only while there is much to do"})
	}
	x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("coalesce.rx-usecs"), Side: side, Levels: c.longerWaits(),
		Why: "microseconds from one interrupt to the next"})
}

// longerWaits are values of rx-usecs above the present one, small steps first. Drivers whose
// numbers are modes get the one that goes by the traffic first.
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
