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
	// busReached is the part of what a bus carries from which it is what holds the card. What a
	// card gets out of a bus is known to a tenth.
	busReached = 0.85
	// busShort is how much less than the link a bus must carry to be worth a word: less than that
	// is within what its estimate is good for.
	busShort = 0.9
)

// busLimited: the slot carries less than the link.
//
// What a bus carries follows from its kind, width and clock (package ceiling), so that a slot which
// is too slow is known before anything is measured; then it is a notice. It is a warning where the
// card moved nearly that much, alone or with the neighbours that share the bus. A slot that is
// narrower than the card but not than the link costs nothing. In virtual machines nobody knows a
// bus, and package ceiling says so by saying nothing.
func busLimited(s *evidence.Span) *evidence.Finding {
	if s.Host == nil {
		return nil
	}
	rates := ceiling.All(s.Host)
	return worst(cardsOf(s), func(c card) *evidence.Finding {
		i := slices.IndexFunc(rates, func(r ceiling.Rate) bool { return r.Name == "bus:"+c.Name })
		if i < 0 {
			return nil
		}
		return slot(c, rates[i])
	})
}

// slot compares what one card's bus carries with what its link would bring, and with what the card
// moved.
//
// What a bus carries already has its protocol taken off (package bus), so that frames of the card
// are compared with it as they are.
func slot(c card, usable ceiling.Rate) *evidence.Finding {
	s, b := c.s, c.Bus
	// PCIe has its rate in each direction, the older buses have one for all.
	shared := b.Kind != "pcie"
	// Full duplex could need twice as much of a shared bus; but nobody who bought a gigabit card
	// for such a slot hoped for both directions at once, and the rate in one direction is what a
	// run shows.
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
		what += ", with " + fmt.Sprint(len(neighbours)) + " cards beside it"
	}
	reached := !s.SinceBoot && moved >= busReached*usable.BitsPerSec
	if usable.BitsPerSec >= busShort*needs && !reached {
		return nil // enough for this card alone, and the neighbours leave it that
	}
	// One per cent apart is rounding of the two capacities, not a narrower link.
	below := b.MaxCapacityBitsPerSec > 1.01*b.CapacityBitsPerSec && b.CapacityBitsPerSec > 0
	x := &evidence.Finding{
		Code: evidence.BusLimited, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("The slot of %s carries %s and its link %s.", c.Name, evidence.Rate(usable.BitsPerSec),
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
	// Some cards tell themselves that they waited for memory, which no look-alike does.
	if bad := c.tallies(nicstat.Bus); len(bad) > 0 {
		x.Evidence = append(x.Evidence, c.evidence(bad)...)
		x.Confidence = evidence.Combine(x.Confidence, 0.4)
	}
	// Errors of the link to the slot are repaired by sending again, which costs rate and shows in
	// no statistic of the interface.
	if aer := aerOf(c); aer != nil && aer.Correctable > 0 {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "errors of the card's bus link that were repaired, since boot",
				Value: float64(aer.Correctable), Unit: "events",
				Source: c.source("aer_dev_correctable")})
	}
	if below {
		x.Title += fmt.Sprintf(" Card and slot could do %s.", evidence.Rate(b.MaxCapacityBitsPerSec))
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "nominal rate of the bus now, of what card and slot could do",
				Value: b.CapacityBitsPerSec / b.MaxCapacityBitsPerSec, Unit: "ratio",
				Source: c.source("current_link_speed × width / max")})
	}
	if reached {
		x.Severity = evidence.Warning
	} else if !s.SinceBoot {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not shown to cost anything now: %s of %s was used.",
			evidence.Rate(moved), evidence.Rate(usable.BitsPerSec)))
	}
	x.Remedy.Text = "Move the card to a slot that carries its link: more lanes, a newer generation, or on a conventional bus one of its own."
	if b.LimitedBy != "" {
		x.Remedy.Text += " The narrowest link is above the card, at " + b.LimitedBy + "."
	}
	if len(b.SharedWith) > 0 {
		x.Remedy.Text += fmt.Sprintf(" %d other devices share it.", len(b.SharedWith))
	}
	if below {
		x.Remedy.Text += " A link below what both can do may also be a card that is not seated well, a riser, or a setting of the firmware."
	}
	x.Remedy.Proof = "The same run in another slot; and before that, both directions at once: a shared bus divides its rate between them, a link does not."
	return x
}

// aerOf are the errors of the card's link to its slot; nil: not told.
func aerOf(c card) *host.AER {
	if c.Card == nil {
		return nil
	}
	return c.Card.AER
}

// busRates is what this card and the cards that share its bus moved, bits per second. What has no
// interface (a disk controller on the same bus) moves bytes that nobody counts here, so that the
// sum is a lower bound.
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
