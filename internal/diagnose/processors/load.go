package processors

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// full is the share of time at which a processor has nothing left to give. Processor time ticks
	// at 100 Hz, so the last per cents of a run of seconds are not to be had; and 0.95 twice in a
	// row is no accident.
	full = 0.95
	// idleEnough is how busy the other processors may be on average for work to have somewhere to
	// go.
	idleEnough = 0.60
	// shortest is the least time, in seconds, that shares of processor time are taken from: fifty
	// ticks.
	shortest = 0.5
)

// judged are the processors of a span whose shares mean something: none of a history since boot, in
// which an hour's storm vanishes among idle days, and none of too short a time.
func judged(s *evidence.Span) []evidence.ClassRatios {
	if s.SinceBoot || s.Seconds < shortest {
		return nil
	}
	return s.Classes()
}

// others is how busy all processors but one are, on average; 0 where there is no other.
func others(all []evidence.ClassRatios, but int) float64 {
	var sum float64
	var n int
	for _, c := range all {
		if c.CPU != but {
			sum, n = sum+c.Busy(), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// mean is how much of all processors one class of time took.
func mean(all []evidence.ClassRatios, part func(evidence.ClassRatios) float64) float64 {
	var sum float64
	for _, c := range all {
		sum += part(c)
	}
	if len(all) == 0 {
		return 0
	}
	return sum / float64(len(all))
}

// most is the processor of which part says most; ok is false without processors.
func most(all []evidence.ClassRatios, part func(evidence.ClassRatios) float64) (worst evidence.ClassRatios, ok bool) {
	for _, c := range all {
		if !ok || part(c) > part(worst) {
			worst, ok = c, true
		}
	}
	return worst, ok
}

// The parts of processor time that rules ask for. Programs of a lower priority (nice) give way to
// whatever else there is to do, so they keep nothing busy.
func packetWork(c evidence.ClassRatios) float64 { return c.SoftIRQ + c.IRQ }
func programs(c evidence.ClassRatios) float64   { return c.User - c.Nice }
func stolen(c evidence.ClassRatios) float64     { return c.Steal }
func busy(c evidence.ClassRatios) float64       { return c.Busy() - c.Nice }

// classes tells how a processor spent its time.
func classes(s *evidence.Span, c evidence.ClassRatios) []evidence.Evidence {
	source := s.Source("/proc/stat")
	name := func(what string) string { return fmt.Sprintf("CPU %d, %s", c.CPU, what) }
	return []evidence.Evidence{
		{Name: name("softirq and interrupts"), Value: packetWork(c), Unit: "ratio", Source: source},
		{Name: name("programs"), Value: programs(c), Unit: "ratio", Source: source},
		{Name: name("kernel for programs"), Value: c.System, Unit: "ratio", Source: source},
		{Name: name("stolen by the hypervisor"), Value: c.Steal, Unit: "ratio", Source: source},
		{Name: name("idle"), Value: c.Idle, Unit: "ratio", Source: source},
	}
}

// realCard is the physical card that carries the run of a span, or nil: where there is none,
// packets move from memory to memory, a processor is always what limits, and that is no fault.
func realCard(s *evidence.Span) bool {
	return s.End != nil && s.End.Card != nil && !s.End.Card.Virtual
}

// received are the packets that the host took in from cards and backlogs in the span; of a
// container they are the whole machine's.
func received(s *evidence.Span) float64 { return s.Count("softnet.processed") }
