package processors

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// softirqFull is the share of softirq and interrupts at which one processor does nothing but
	// move packets: the rest is the program that reads them.
	softirqFull = 0.85
	// otherPrograms is the share of all processors in user mode that cannot be our own: moving
	// bytes is kernel work, of which a sender or receiver spends a tenth in user mode at most.
	otherPrograms = 0.35
	// lineRate of what the link could carry as payload is full: then whatever the processors do is
	// enough.
	lineRate = 0.90
)

// softirqCPUSaturated: one processor does packet work all the time while others have time to spare.
//
// It is the classic of one queue, or of all interrupts on CPU 0. Inside one machine (veth,
// loopback) one processor is always full of it at full speed, and that is no fault, so it takes a
// real card to be a warning. The look-alikes are a host all of whose processors are full, and
// programs that work on that one.
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
		Title: fmt.Sprintf("CPU %d of the %s host spent %s of its time on packets %s while the others were %s busy.",
			c.CPU, s.Side, evidence.Percent(packetWork(c)), s.When(), evidence.Percent(rest)),
		Evidence: classes(s, c),
		Rejected: []string{fmt.Sprintf("Not too few processors: the other %d worked %s of the time.", len(all)-1,
			evidence.Percent(rest))},
		Confidence: evidence.Combine(0.75, evidence.When(realCard(s), 0.5)),
	}
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not programs on that processor: they had %s of it.",
		evidence.Percent(c.User)))
	// Passively a processor at its limit is enough: packets that come meanwhile wait or die.
	if realCard(s) || s.Run == nil && packetWork(c) >= full {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Let more processors share the packets: more card queues, their interrupts on different processors, or RPS where the card has one queue. One flow alone stays on one processor."
	x.Remedy.Proof = "Many flows get faster when their interrupts are spread, and slower when they are put back on one processor; one single flow must not change."
	if s.End != nil && s.End.Card != nil {
		card := s.End.Card
		if card.Channels != nil && card.Channels.Combined < card.Channels.MaxCombined {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("ethtool:" + card.Name + "/channels.combined"), Side: s.Side,
				Levels: []knob.Value{knob.Value(fmt.Sprint(min(card.Channels.MaxCombined, uint32(len(all)))))},
				Why:    "each queue has an interrupt that another processor can serve"})
		} else if len(card.Queues) > 0 && len(all) <= 32 {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("queue:" + card.Name + "/rx-0/rps_cpus"), Side: s.Side,
				Levels: []knob.Value{knob.Value(fmt.Sprintf("%x", (uint64(1)<<len(all)-1)&^(uint64(1)<<c.CPU)))},
				Why:    "the protocol's part of the work moves to other processors"})
		}
	}
	return x
}

// cpuSaturated: the processors as a whole have nothing left, because other programs have them, or
// because the host is too slow for its link.
//
// A memory-to-memory path is always limited by processors; so without a real card only work that is
// not ours counts. With one, full processors below the rate of the link are the limit.
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
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not one processor alone: all %d together worked %s of the time.",
		len(all), evidence.Percent(load)))
	x.Rejected = append(x.Rejected,
		fmt.Sprintf("Not the hypervisor: it took %s of the time.", evidence.Percent(mean(all, stolen))))
	switch {
	case foreign:
		x.Title = fmt.Sprintf(
			"Programs keep all %d processors of the %s host busy (%s in user mode), and the network gets what is left.",
			len(all), s.Side, evidence.Percent(user))
		x.Remedy.Text = "Look at which programs run (top), move them or give the network processors of its own; no network setting helps."
		x.Remedy.Proof = "Stop or pause the busiest program for a few seconds: the rate rises while it rests, and falls when it goes on."
	default:
		x.Title = fmt.Sprintf("All %d processors of the %s host are busy at %s, of the %s that its link is rated.",
			len(all), s.Side, evidence.Rate(s.Run.ThroughputBitsPerSec), evidence.Rate(s.End.Card.SpeedBitsPerSec))
		x.Remedy.Text = "Make each packet cheaper: offloads on, a larger MTU end to end, fewer firewall rules; or more and faster processors."
		x.Remedy.Proof = "The rate per busy processor stays the same with any number of streams, and rises with segment size (MTU, offloads)."
	}
	// Watched without a load of ours, full processors are a host at work; whether the network
	// suffers is not shown.
	if s.Loaded() {
		x.Severity = evidence.Warning
	}
	return x
}
