package watch

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/nicstat"
	"github.com/linerate/linerate/internal/traffic/account"
)

// span gives what happened between two readings of one host, but for its sockets.
func span(before, after *host.Counters, then, now interrupts) *Span {
	d := host.Sub(before, after)
	d.Warnings = nil // They are those of the span.
	// The driver says what its own counters mean.
	drivers := make(map[string]string)
	for _, card := range now.cards {
		drivers[card.Interface] = card.Driver
	}
	s := &Span{Seconds: d.Seconds, Counters: d, Drops: account.DropsWith(d.Values, drivers)}
	s.Interrupts = subInterrupts(then.cards, now.cards, now.at.Sub(then.at).Seconds())
	s.CPUs = processors(d, s.Interrupts)
	return s
}

// subInterrupts leaves out what did not come in the span. The kernel counts in 32 bits (kstat_irqs_cpu), so that a lower count is one that went through zero; one
// that a driver made anew meanwhile is told by its name having changed.
func subInterrupts(before, after []host.CardInterrupts, seconds float64) []CardInterrupt {
	type key struct {
		card   string
		number int
	}
	was := make(map[key]host.Interrupt)
	for _, card := range before {
		for _, i := range card.Interrupts {
			was[key{card.Interface, i.Number}] = i
		}
	}
	var found []CardInterrupt
	for _, card := range after {
		for _, now := range card.Interrupts {
			old, known := was[key{card.Interface, now.Number}]
			// A number that was free at the first reading, or somebody else's, may have any count of before.
			if !known || old.Name != now.Name {
				continue
			}
			i := CardInterrupt{Interface: card.Interface, Interrupt: now}
			i.Queue, _ = nicstat.InterruptQueue(now.Name)
			i.Counts = nil // Those of the snapshot are since boot.
			for _, c := range now.Counts {
				n := uint64(uint32(c.Total - onCPU(old.Counts, c.CPU)))
				if n == 0 {
					continue
				}
				i.Total += n
				i.Counts = append(i.Counts, host.CPUCount{CPU: c.CPU, Total: n, PerSec: perSecond(n, seconds)})
			}
			if i.Total > 0 {
				i.PerSec = perSecond(i.Total, seconds)
				found = append(found, i)
			}
		}
	}
	return found
}

// onCPU finds the count of one CPU; those that never served it have none. The kernel's columns are in ascending order.
func onCPU(counts []host.CPUCount, cpu int) uint64 {
	i, ok := slices.BinarySearchFunc(counts, cpu, func(c host.CPUCount, cpu int) int { return cmp.Compare(c.CPU, cpu) })
	if !ok {
		return 0
	}
	return counts[i].Total
}

// perSecond is nil where no time passed.
func perSecond(n uint64, seconds float64) *float64 {
	if !(seconds > 0) {
		return nil
	}
	rate := float64(n) / seconds
	return &rate
}

// processors puts what is counted by CPU together.
func processors(d *host.Counters, interrupts []CardInterrupt) []CPU {
	// Interfaces that are functions of one device have the same interrupts, which happened once.
	served := make(map[int]uint64)
	seen := make(map[int]bool)
	for _, i := range interrupts {
		if seen[i.Number] {
			continue
		}
		seen[i.Number] = true
		for _, c := range i.Counts {
			served[c.CPU] += c.Total
		}
	}
	cpus := make([]CPU, 0, len(d.CPUs))
	for _, t := range d.CPUs {
		// The kernel's own sum over all.
		if t.CPU < 0 {
			continue
		}
		// What is absent is zero: /proc/softirqs is told of CPUs that ever ran one, softnet_stat has those that are online.
		id := strconv.Itoa(t.CPU)
		softnet := func(column string) uint64 { return d.Values["softnet."+id+"."+column] }
		cpus = append(cpus, CPU{
			CPUTimes: t,
			NetRx:    d.Values["softirq.NET_RX."+id], NetTx: d.Values["softirq.NET_TX."+id],
			Packets: softnet("processed"), Dropped: softnet("dropped"), Squeezed: softnet("time_squeeze"), ReceivedRPS: softnet("received_rps"),
			Interrupts: served[t.CPU],
		})
	}
	return cpus
}
