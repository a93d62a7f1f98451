package processors

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// softirqFull is the share of softirq and interrupt time at which a CPU only moves packets: the
	// rest is the program that reads them.
	softirqFull = 0.85
	// otherPrograms is the share of user mode on all CPUs that cannot come from a test: moving
	// bytes is kernel work, and a sender or receiver spends at most a tenth in user mode.
	otherPrograms = 0.35
	// lineRate is the share of the payload capacity that counts as a full link, for which any CPU
	// load is enough.
	lineRate = 0.90
)

// softirqCPUSaturated finds one CPU that does packet work all the time while others have time left.
//
// The classic causes are one queue, or all interrupts on CPU 0. Inside one machine (veth, loopback)
// a CPU is always saturated with it at full speed, which is not a fault, so a warning needs a
// physical NIC. Look-alikes are a host with all CPUs saturated, and programs that run on that one.
func softirqCPUSaturated(s *evidence.Span) *evidence.Finding {
	all := judged(s)
	c, ok := most(all, packetWork)
	if !ok || len(all) < 2 || packetWork(c) < softirqFull {
		return nil
	}
	rest := others(all, c.CPU)
	if rest > idleEnough {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.SoftirqCPUSaturated, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("CPU %d of the %s host spent %s of its time on packets %s, while the others were %s busy.",
			c.CPU, s.Side, evidence.Percent(packetWork(c)), s.When(), evidence.Percent(rest)),
		Evidence: classes(s, c),
		Rejected: []string{fmt.Sprintf("Not too few CPUs: the other %d were busy for %s of the time.", len(all)-1,
			evidence.Percent(rest))},
		Confidence: evidence.Combine(0.75, evidence.When(realCard(s), 0.5)),
	}
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not programs on that CPU: they took %s of its time.",
		evidence.Percent(c.User)))
	// On a watched host a CPU at its limit is enough: packets that arrive meanwhile wait or are
	// dropped.
	if realCard(s) || s.Run == nil && packetWork(c) >= full {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Let more CPUs share the packets: more NIC queues, their interrupts on different CPUs, " +
		"or RPS if the NIC has one queue. A single flow stays on one CPU."
	x.Remedy.Proof = "Many flows get faster with spread interrupts, and slower when they are back on one CPU; " +
		"a single flow must not change."
	if s.End != nil && s.End.Card != nil {
		card := s.End.Card
		if card.Channels != nil && card.Channels.Combined < card.Channels.MaxCombined {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("ethtool:" + card.Name + "/channels.combined"), Side: s.Side,
				Levels: []knob.Value{knob.Value(fmt.Sprint(min(card.Channels.MaxCombined, uint32(len(all)))))},
				Why:    "each queue has an interrupt that another CPU can serve"})
		} else if mask := otherMask(all, func(o evidence.ClassRatios) int { return o.CPU }, c.CPU); len(card.Queues) > 0 &&
			mask != "" {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("queue:" + card.Name + "/rx-0/rps_cpus"), Side: s.Side,
				Levels: []knob.Value{knob.Value(mask)}, Why: "moves the protocol work to other CPUs"})
		}
	}
	return x
}

// cpuSaturated finds that all CPUs together have no time left, because other programs use it, or
// because the host is too slow for its link.
//
// CPUs always limit a memory-to-memory path, so without a physical NIC only the work of other
// programs counts. With one, saturated CPUs below the link rate are the limit.
func cpuSaturated(s *evidence.Span) *evidence.Finding {
	all := judged(s)
	if len(all) == 0 {
		return nil
	}
	load, user := mean(all, busy), mean(all, programs)
	if load < full {
		return nil
	}
	c, _ := most(all, programs)
	foreign := user >= otherPrograms
	slow := realCard(s) && s.Loaded() && s.End.Card.SpeedBitsPerSec > 0 &&
		s.Run.ThroughputBitsPerSec < lineRate*s.End.Card.SpeedBitsPerSec
	if !foreign && !slow {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.CPUSaturated, Severity: evidence.Notice, Where: s.Side,
		Evidence: append([]evidence.Evidence{
			{Name: "all processors, busy", Value: load, Unit: "ratio", Source: s.Source("/proc/stat")},
			{Name: "all processors, programs", Value: user, Unit: "ratio", Source: s.Source("/proc/stat")},
			{Name: "all processors, softirq and interrupts", Value: mean(all, packetWork), Unit: "ratio",
				Source: s.Source("/proc/stat")},
		}, classes(s, c)...),
		Confidence: evidence.Combine(0.7, evidence.When(foreign, 0.5), evidence.When(slow, 0.4)),
	}
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not one CPU alone: all %d together were busy for %s of the time.",
		len(all), evidence.Percent(load)))
	x.Rejected = append(x.Rejected,
		fmt.Sprintf("Not the hypervisor: it took %s of the time.", evidence.Percent(mean(all, stolen))))
	switch {
	case foreign:
		x.Title = fmt.Sprintf(
			"Programs keep all %d CPUs of the %s host busy (%s in user mode), and the network gets the rest.",
			len(all), s.Side, evidence.Percent(user))
		x.Remedy.Text = "Find the programs (top), and move them or reserve CPUs for the network; " +
			"no network setting helps."
		x.Remedy.Proof = "Pause the busiest program for a few seconds: the rate rises meanwhile, " +
			"and falls when it continues."
	default:
		x.Title = fmt.Sprintf("All %d CPUs of the %s host are saturated at %s, while its link has %s.",
			len(all), s.Side, evidence.Rate(s.Run.ThroughputBitsPerSec), evidence.Rate(s.End.Card.SpeedBitsPerSec))
		x.Remedy.Text = "Make each packet cheaper: offloads on, a larger MTU end to end, fewer firewall rules. " +
			"Otherwise add more or faster CPUs."
		x.Remedy.Proof = "The rate per busy CPU stays the same for any number of streams, " +
			"and rises with the segment size (MTU, offloads)."
	}
	// Without a test load, saturated CPUs belong to a host at work; nothing shows that the network
	// suffers.
	if s.Loaded() {
		x.Severity = evidence.Warning
	}
	return x
}
