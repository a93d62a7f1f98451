package cards

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
	"github.com/linerate/linerate/internal/host/nicstat"
)

const (
	// busReached is the share of the capacity of a bus from which on it limits the NIC: the
	// capacity that a NIC reaches is known to about a tenth.
	busReached = 0.85
	// busShort is the share of the link that a bus must carry to be unremarkable: a smaller deficit
	// is within the accuracy of its estimate.
	busShort = 0.9
)

// busLimited finds a slot that carries less than the link, and a NIC whose own buffer overflowed
// although its rings had room.
//
// The capacity of a bus follows from its kind, width and clock (package ceiling), so a slow slot is
// known before any measurement; then the finding is a notice. It is a warning if the NIC moved
// nearly that much, alone or together with the devices on the bus. A slot that is narrower than the
// NIC supports but not than the link costs nothing. In virtual machines the bus is unknown, and
// package ceiling returns no rate.
func busLimited(s *evidence.Span) *evidence.Finding {
	if s.Host == nil {
		return nil
	}
	rates := ceiling.All(s.Host)
	return worst(cardsOf(s), func(c card) *evidence.Finding {
		i := slices.IndexFunc(rates, func(r ceiling.Rate) bool { return r.Name == "bus:"+c.Name })
		if i < 0 {
			return heldByBus(c, nil)
		}
		held := heldByBus(c, &rates[i])
		if narrow := slot(c, rates[i], held); narrow != nil {
			return narrow
		}
		return held
	})
}

// heldByBus finds received frames that a NIC lost in its own buffer, in front of the rings. The
// driver has a counter for each place, so full rings are excluded by theirs. The bus takes frames
// late for more reasons than its width: devices beside it, its sleep states, memory of another
// node.
func heldByBus(c card, usable *ceiling.Rate) *evidence.Finding {
	received := slices.DeleteFunc(c.tallies(nicstat.Bus), func(t tally) bool {
		return !t.Drop || nicstat.Outbound(t.counter)
	})
	if len(received) == 0 {
		return nil
	}
	t := received[0]
	ring, _ := c.lost(nicstat.RingFull)
	if ring.n >= t.n {
		return nil // the rings explain it
	}
	frames := c.count("rx_packets")
	severity, ok := c.weigh(t.n, frames)
	if !ok {
		return nil
	}
	cpu := busiest(c.s)
	x := c.lossFinding(evidence.BusLimited, severity, t, frames, "frames lost in the NIC's buffer",
		c.tallies(nicstat.Bus)...)
	x.Title = fmt.Sprintf("NIC %s lost %s frames %s in its own buffer, %s of those received: the bus took them too late.",
		c.Name, evidence.Count(t.n), c.s.When(), evidence.Percent(t.n/(t.n+frames)))
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not the receive rings: they lost %s frames.", evidence.Count(ring.n)))
	x.Confidence = evidence.Combine(0.5, evidence.When(severity == evidence.Warning, 0.4),
		evidence.When(ring.n < t.n/10, 0.3),
		evidence.When(cpu.Known && cpu.Busy() < evidence.FullProcessor, 0.2))
	if usable != nil {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "what the slot carries", Value: usable.BitsPerSec,
			Unit: "bits_per_second", Source: usable.Why})
	}
	x.Remedy.Text = "Find what makes the bus take frames late: other devices behind the same switch, sleep states " +
		"of the bus (ASPM) or of the processor, buffers in the memory of another node, or an IOMMU that is short of " +
		"entries. Flow control towards the switch makes bursts wait there, at the expense of all traffic through that port."
	x.Remedy.Proof = "Change one of them at a time and repeat the run: the counter stands still; rings of another " +
		"length, the control, make no difference."
	return x
}

// slot compares the capacity of one NIC's bus with that of its link, and with what the NIC moved.
// The capacity is already without protocol overhead (package bus), so it compares directly with the
// frames. Losses of the NIC's own buffer, if it had any, are the cost of a slow slot.
func slot(c card, usable ceiling.Rate, held *evidence.Finding) *evidence.Finding {
	s, b := c.s, c.Bus
	// PCIe has its rate in each direction; older buses share one.
	shared := b.Kind != "pcie"
	// Full duplex could need twice as much of a shared bus. But a gigabit NIC in such a slot is not
	// expected to fill both directions at once, and a run shows the rate of one.
	needs := c.SpeedBitsPerSec
	if needs <= 0 || usable.BitsPerSec <= 0 || usable.BitsPerSec >= busShort*needs &&
		!(shared && len(b.SharedWith) > 0 && usable.BitsPerSec < 2*needs) {
		return nil
	}
	rx, tx, neighbours := c.busRates()
	moved, what := max(rx, tx), "moved in the busier direction"
	if shared {
		moved, what = rx+tx, "moved in both directions"
	}
	if len(neighbours) > 0 {
		what += ", with " + fmt.Sprint(len(neighbours)) + " other NICs on the bus"
	}
	reached := !s.SinceBoot && moved >= busReached*usable.BitsPerSec
	if usable.BitsPerSec >= busShort*needs && !reached {
		return nil // enough for this NIC, even with the others on the bus
	}
	// One per cent is rounding of the two capacities, not a narrower link.
	below := b.MaxCapacityBitsPerSec > 1.01*b.CapacityBitsPerSec && b.CapacityBitsPerSec > 0
	x := &evidence.Finding{
		Code: evidence.BusLimited, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("The slot of %s carries %s, and its link carries %s.", c.Name,
			evidence.Rate(usable.BitsPerSec),
			evidence.Rate(needs)),
		Evidence: []evidence.Evidence{
			{Name: "what the slot carries", Value: usable.BitsPerSec, Unit: "bits_per_second", Source: usable.Why},
			{Name: "speed of the link", Value: needs, Unit: "bits_per_second", Source: "/sys/class/net/" + c.Name +
				"/speed (" + s.Side + ")"},
		},
		Confidence: evidence.Combine(0.5, evidence.When(reached, 0.5), evidence.When(below, 0.4),
			evidence.When(usable.BitsPerSec < 0.6*needs, 0.3)),
		Rejected: notMeasured(s),
	}
	if !s.SinceBoot && s.Seconds > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: what, Value: moved, Unit: "bits_per_second",
			Source: c.source("rx_bytes, tx_bytes")})
		x.Rejected = append(x.Rejected, notProcessor(s)...)
	}
	// Some NICs report that they waited for memory, which no look-alike does.
	if bad := c.tallies(nicstat.Bus); len(bad) > 0 {
		x.Evidence = append(x.Evidence, c.evidence(bad)...)
		x.Confidence = evidence.Combine(x.Confidence, 0.4)
	}
	// The bus repairs errors by sending again, which lowers the rate and shows in no statistic of
	// the interface.
	if aer := aerOf(c); aer != nil && aer.Correctable > 0 {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "errors of the card's bus link that were repaired, since boot",
				Value: float64(aer.Correctable), Unit: "events",
				Source: c.source("aer_dev_correctable")})
	}
	if below {
		x.Title += fmt.Sprintf(" NIC and slot support %s.", evidence.Rate(b.MaxCapacityBitsPerSec))
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "nominal rate of the bus now, of what card and slot could do",
				Value: b.CapacityBitsPerSec / b.MaxCapacityBitsPerSec, Unit: "ratio",
				Source: c.source("current_link_speed × width / max")})
	}
	if held != nil {
		x.LostPerSec = held.LostPerSec
	}
	if reached || held != nil && held.Severity == evidence.Warning {
		x.Severity = evidence.Warning
	} else if !s.SinceBoot {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not shown to cost anything now: %s of %s was used.",
			evidence.Rate(moved), evidence.Rate(usable.BitsPerSec)))
	}
	x.Remedy.Text = "Move the NIC to a slot that carries its link: more lanes, a newer generation, " +
		"or a conventional bus of its own."
	if b.LimitedBy != "" {
		x.Remedy.Text += " The narrowest link is above the NIC, at " + b.LimitedBy + "."
	}
	if len(b.SharedWith) > 0 {
		x.Remedy.Text += fmt.Sprintf(" %d other devices share it.", len(b.SharedWith))
	}
	if below {
		x.Remedy.Text += " A bus link below what both sides support may also come from a badly seated NIC, " +
			"a riser, or a firmware setting."
	}
	x.Remedy.Proof = "Repeat the run in another slot. Before that, run both directions at once: " +
		"a shared bus divides its rate between them, a link does not."
	return x
}

// aerOf returns the errors of the NIC's link to its slot; nil if not reported.
func aerOf(c card) *host.AER {
	if c.Card == nil {
		return nil
	}
	return c.Card.AER
}

// busRates returns what this NIC and the NICs on the same bus moved, in bits per second. Devices
// without an interface (a disk controller on the same bus) move bytes that no counter here shows,
// so the sum is a lower bound.
func (c card) busRates() (rx, tx float64, neighbours []string) {
	rx, tx = c.rate("rx"), c.rate("tx")
	for i := range c.s.Host.Interfaces {
		x := &c.s.Host.Interfaces[i]
		if x.Name == c.Name || x.Bus == nil || !slices.Contains(c.Bus.SharedWith, x.Bus.Address) {
			continue
		}
		n := card{x, c.s}
		rx, tx, neighbours = rx+n.rate("rx"), tx+n.rate("tx"), append(neighbours, x.Name)
	}
	return rx, tx, neighbours
}
