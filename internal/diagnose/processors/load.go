package processors

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// full is the share of busy time at which a CPU has nothing left. CPU time ticks at 100 Hz, so
	// the last per cent of a run of seconds are not measurable.
	full = 0.95
	// idleEnough is how busy the other CPUs may be on average to take over work.
	idleEnough = 0.60
	// shortest is the least time, in seconds, for shares of CPU time: fifty ticks.
	shortest = 0.5
)

// judged returns the CPUs of a span whose shares mean something: none for counters since boot, in
// which an hour's storm vanishes among idle days, and none for too short a time.
func judged(s *evidence.Span) []evidence.ClassRatios {
	if s.SinceBoot || s.Seconds < shortest {
		return nil
	}
	return s.Classes()
}

// others returns how busy all CPUs but one are on average; 0 if there is no other.
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

// otherMask returns all CPUs but one as rps_cpus has them; empty if one is beyond the first 32,
// which a word holds. The numbers of online CPUs have gaps where others are off.
func otherMask[T any](all []T, number func(T) int, but int) string {
	var mask uint32
	for _, c := range all {
		n := number(c)
		if n > 31 {
			return ""
		}
		mask |= 1 << n
	}
	return fmt.Sprintf("%x", mask&^(1<<but))
}

// mean returns the share of all CPUs that one class of time took.
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

// most returns the CPU for which part is largest; ok is false without CPUs.
func most(all []evidence.ClassRatios, part func(evidence.ClassRatios) float64) (worst evidence.ClassRatios, ok bool) {
	for _, c := range all {
		if !ok || part(c) > part(worst) {
			worst, ok = c, true
		}
	}
	return worst, ok
}

// The parts of CPU time that rules use. Programs of a lower priority (nice) give way to all other
// work, so they do not count as load.
func packetWork(c evidence.ClassRatios) float64 { return c.SoftIRQ + c.IRQ }
func programs(c evidence.ClassRatios) float64   { return c.User - c.Nice }
func stolen(c evidence.ClassRatios) float64     { return c.Steal }
func busy(c evidence.ClassRatios) float64       { return c.Busy() - c.Nice }

// classes returns how a CPU spent its time.
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

// realCard reports whether a physical NIC carries the run of a span. Without one, packets move from
// memory to memory, and a CPU always is the limit, which is not a fault.
func realCard(s *evidence.Span) bool {
	return s.End != nil && s.End.Card != nil && !s.End.Card.Virtual
}

// received returns the packets that the host took from NICs and backlogs in the span; a container
// sees those of the whole machine.
func received(s *evidence.Span) float64 { return s.Count("softnet.processed") }

// Saturated reports whether a CPU had no time left in a span, so that a profile shows what it did.
// Inside one machine that is no fault, so a run counts only with a physical NIC.
func Saturated(s *evidence.Span) bool {
	c, ok := most(judged(s), busy)
	return ok && busy(c) >= full && (s.Run == nil || realCard(s))
}
