package watch

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/nicstat"
)

// span returns the difference of two readings of one host, except its sockets.
func span(before, after *host.Counters, then, now interrupts) *Span {
	d := host.Sub(before, after)
	d.Warnings = nil // They are those of the span.
	s := &Span{Seconds: d.Seconds, Counters: d, Drops: drops.Find(d.Values, d.Drivers)}
	s.Interrupts = subInterrupts(then, now)
	s.CPUs = processors(d, s.Interrupts)
	return s
}

// line is one interrupt of one card.
type line struct {
	card   string
	number int
}

// byNumber returns the interrupts of a reading by their lines.
func (r interrupts) byNumber() map[line]host.Interrupt {
	all := make(map[line]host.Interrupt)
	for _, card := range r.cards {
		for _, i := range card.Interrupts {
			all[line{card.Interface, i.Number}] = i
		}
	}
	return all
}

// counted returns how often an interrupt came to one CPU since the reading before. The kernel
// counts in 32 bits (kstat_irqs_cpu), so a lower count has wrapped. Its columns are in ascending
// order, and a CPU that never served the interrupt has none.
func counted(before []host.CPUCount, now host.CPUCount) uint64 {
	was := uint64(0)
	if i, ok := slices.BinarySearchFunc(before, now.CPU,
		func(c host.CPUCount, cpu int) int { return cmp.Compare(c.CPU, cpu) }); ok {
		was = before[i].Total
	}
	return uint64(uint32(now.Total - was))
}

// subInterrupts leaves out interrupts that did not occur in the span, and those that a driver
// allocated again meanwhile, which have a new name.
func subInterrupts(before, after interrupts) []CardInterrupt {
	seconds := after.at.Sub(before.at).Seconds()
	was := before.byNumber()
	var found []CardInterrupt
	for _, card := range after.cards {
		for _, now := range card.Interrupts {
			old, known := was[line{card.Interface, now.Number}]
			// A number that was free at the first reading, or another device's, may have any
			// earlier count.
			if !known || old.Name != now.Name {
				continue
			}
			i := CardInterrupt{Interface: card.Interface, Interrupt: now}
			i.Queue, _ = nicstat.InterruptQueue(now.Name)
			i.Counts = nil // The counts read are since boot.
			for _, c := range now.Counts {
				if n := counted(old.Counts, c); n > 0 {
					i.Total += n
					i.Counts = append(i.Counts, host.CPUCount{CPU: c.CPU, Total: n, PerSec: perSecond(n, seconds)})
				}
			}
			if i.Total > 0 {
				i.PerSec = perSecond(i.Total, seconds)
				found = append(found, i)
			}
		}
	}
	return found
}

// perSecond returns nil if no time passed.
func perSecond(n uint64, seconds float64) *float64 {
	if !(seconds > 0) {
		return nil
	}
	rate := float64(n) / seconds
	return &rate
}

// processors combines what is counted by CPU.
func processors(d *host.Counters, interrupts []CardInterrupt) []CPU {
	// Interfaces that are functions of one device share interrupts, each of which occurred once.
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
		// Absent means zero: /proc/softirqs lists CPUs that ever ran one, softnet_stat those that
		// are online.
		id := strconv.Itoa(t.CPU)
		softnet := func(column string) uint64 { return d.Values["softnet."+id+"."+column] }
		cpus = append(cpus, CPU{
			CPUTimes: t,
			NetRx:    d.Values["softirq.NET_RX."+id], NetTx: d.Values["softirq.NET_TX."+id],
			Packets: softnet("processed"), Dropped: softnet("dropped"), Squeezed: softnet("time_squeeze"),
			ReceivedRPS: softnet("received_rps"),
			Interrupts:  served[t.CPU],
		})
	}
	return cpus
}
