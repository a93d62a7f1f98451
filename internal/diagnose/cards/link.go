package cards

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/nicstat"
	"github.com/linerate/linerate/internal/traffic"
)

// linkFelt is the share of a link's rate from which on its slowness matters: a link that is 40 %
// full over seconds is full at moments, and a medium that both directions share carries little more
// than that (the old rule for Ethernet with collisions).
const linkFelt = 0.4

// linkLow finds a link that is slower than this NIC supports, and than its partner supports as far
// as known.
//
// A slow link is a fact; that it is too slow needs a comparison. The modes of both ends of the
// cable decide: a mode that both support and do not use means a cable with a broken pair, or a
// setting. If the partner does not report its modes, a mode that this end does not advertise is a
// setting too. A NIC that advertises all its modes and gets a slower one may simply be connected to
// a slower port, which is not a fault of this host. Fibre and cages list what the NIC supports with
// another module: for those only modes that the partner advertised count.
func linkLow(s *evidence.Span) *evidence.Finding { return worst(cardsOf(s), slowLink) }

// slowLink compares the speed of one link with the modes of its two ends.
func slowLink(c card) *evidence.Finding {
	if c.Card == nil || c.Card.Modes == nil || c.SpeedBitsPerSec <= 0 || !c.Carrier {
		return nil
	}
	m := c.Card.Modes
	can, offers, partner := fastest(m.Supported), fastest(m.Advertised), fastest(m.Partner)
	speed := c.SpeedBitsPerSec
	// With a replaceable transceiver the NIC lists modes that the present one lacks.
	fixedMedium := c.Card.Port == "" || strings.Contains(c.Card.Port, "twisted")
	var why string
	var strength float64
	best := can
	switch {
	case partner > 0 && min(can, partner) > speed:
		best = min(can, partner)
		why, strength = "both ends of the cable support a faster mode", 0.85
		if offers > 0 && offers < best {
			why, strength = "this end does not advertise a faster mode that both support", 0.95
		}
	case partner > 0 || !fixedMedium:
		return nil // the other end supports no more, or the modes of the module are unknown
	case can > speed && !m.Autoneg:
		why, strength = "the speed of this end is forced", 0.8
	case can > speed && offers > 0 && offers < can:
		why, strength = "this end does not advertise all its modes", 0.85
	// One step below may be an older switch. A tenth is gigabit at 100 Mb/s, the result of a broken
	// pair.
	case can >= 10*speed && offers > speed:
		why, strength = "this end advertises more, and the other end does not report its modes", 0.4
	default:
		return nil
	}
	if best <= speed {
		return nil
	}
	s := c.s
	x := &evidence.Finding{
		Code: evidence.LinkNegotiatedLow, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("NIC %s runs at %s and supports %s: %s.", c.Name, evidence.Rate(speed),
			evidence.Rate(best), why),
		Evidence: []evidence.Evidence{
			{Name: "speed of the link", Value: speed, Unit: "bits_per_second", Source: "/sys/class/net/" + c.Name +
				"/speed (" + s.Side + ")"},
			{Name: "fastest mode of this card", Value: can, Unit: "bits_per_second",
				Source: c.source("ethtool link modes, supported")},
			{Name: "autonegotiation", Value: m.Autoneg, Source: c.source("ethtool link modes")},
		},
		Confidence: strength,
	}
	if offers > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "fastest mode that this end offers", Value: offers,
			Unit:   "bits_per_second",
			Source: c.source("ethtool link modes, advertised")})
	}
	if partner > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "fastest mode of the partner", Value: partner,
			Unit:   "bits_per_second",
			Source: c.source("ethtool link modes, partner")})
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a slower port at the other end: it supports up to %s.",
			evidence.Rate(partner)))
	} else {
		x.Rejected = append(x.Rejected,
			"Not measured: whether the port at the other end supports more; it does not report its modes.")
	}
	if !s.SinceBoot && s.Seconds > 0 {
		used := c.carried()
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "carried in one direction", Value: used,
			Unit: "bits_per_second", Source: c.source("rx_bytes, tx_bytes")})
		if used >= linkFelt*speed {
			x.Severity = evidence.Warning
		} else {
			x.Rejected = append(x.Rejected, fmt.Sprintf("Not shown to cost anything now: %s carried %s of %s.", c.Name,
				evidence.Rate(used), evidence.Rate(speed)))
		}
		if passes := c.passesItsSpeed(); passes != "" {
			x.Confidence *= 0.5
			x.Rejected = append(x.Rejected, passes)
		}
	}
	x.Remedy.Text = "Try another cable first (gigabit needs all four pairs), then another port. " +
		"Let both ends negotiate and advertise all their modes; a speed forced at one end alone also makes " +
		"the other fall back to half duplex. The change takes the link down."
	x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("link.mode"), Side: where(s), Levels: []knob.Value{"auto"},
		Why: "both ends then choose the fastest mode that they share"})
	x.Remedy.Proof = "After the repair, the rate of the same run rises as much as that of the link; " +
		"a flow over another interface, the control, must not change."
	return x
}

// carried returns what the NIC moved in its busier direction, in bits per second.
func (c card) carried() float64 {
	used := max(c.rate("rx"), c.rate("tx"))
	if c.s.Loaded() && c.s.Run.Direction != traffic.Bidir {
		used = max(used, c.s.Run.ThroughputBitsPerSec)
	}
	return used
}

// passesItsSpeed returns a sentence if the NIC carried more than its reported speed, which an
// emulated NIC does because nothing enforces it; otherwise it returns nothing. The finding reports
// it but still stands, because all verdicts on full links rely on reported speeds.
func (c card) passesItsSpeed() string {
	if c.carried() <= 1.1*c.SpeedBitsPerSec {
		return ""
	}
	return fmt.Sprintf("Doubtful: %s carried %s, more than its reported speed, "+
		"which may be a mere number of an emulated NIC.", c.Name,
		evidence.Rate(c.carried()))
}

// fastest returns the speed of the fastest mode in the notation of ethtool(8), in bits per second:
// "1000baseT/Full", "2500baseX/Full", "10000baseKR_FEC". It returns 0 if there is none.
func fastest(modes []string) float64 {
	var best float64
	for _, m := range modes {
		digits, _, ok := strings.Cut(m, "base")
		if n, err := strconv.ParseFloat(digits, 64); ok && err == nil && n < 1e7 {
			best = max(best, n*1e6)
		}
	}
	return best
}

// collisionShare is the share of collisions among the frames sent that matters on a half-duplex
// link of two stations; the hubs of the past worked with more.
const collisionShare = 0.01

// halfDuplex finds a link that can either send or receive, so that frames collide.
//
// Half duplex is a fact of the NIC. A mismatch is worse than half duplex at both ends: the end that
// runs full duplex sends at any time, the other counts late collisions, and each of those is a lost
// packet. Late collisions therefore show that the partner runs full duplex. Damaged frames at a
// full-duplex end may be the other half of a mismatch, which the partner's counters show. Virtual
// machines report half duplex where nothing collides, and some drivers count no collisions: then
// the load of the link decides.
func halfDuplex(s *evidence.Span) *evidence.Finding { return worst(cardsOf(s), oneAtATime) }

// oneAtATime examines the duplex mode and the collisions of one link.
func oneAtATime(c card) *evidence.Finding {
	s := c.s
	late, isLate := c.lateCollisions()
	half := c.Duplex == "half" && c.Carrier && c.SpeedBitsPerSec > 0
	if !half && !(isLate && late.n >= fewest) {
		return nil
	}
	sent := c.count("tx_packets")
	collisions := c.count("collisions")
	x := &evidence.Finding{
		Code: evidence.HalfDuplex, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("NIC %s runs half duplex at %s: it cannot send while it receives.", c.Name,
			evidence.Rate(c.SpeedBitsPerSec)),
		Evidence: []evidence.Evidence{{Name: "duplex", Value: c.Duplex, Source: "/sys/class/net/" + c.Name +
			"/duplex (" + s.Side + ")"}},
		Rejected: notMeasured(s),
		Confidence: evidence.Combine(0.6, evidence.When(half, 0.7), evidence.When(isLate, 0.7),
			evidence.When(collisions > 0, 0.5)),
	}
	if !half {
		// Either the driver reports the wrong mode, or the counter predates the last negotiation.
		x.Title = fmt.Sprintf("NIC %s counted %s late collisions %s, which a full-duplex link cannot have.", c.Name,
			evidence.Count(late.n), s.When())
		x.Confidence = 0.6
	}
	x.Evidence = append(x.Evidence, evidence.Evidence{Name: "collisions", Value: collisions, Unit: "events",
		Source: c.source("collisions")})
	if isLate {
		x.Evidence = append(x.Evidence, c.evidence([]tally{late})...)
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not half duplex at both ends: %s late collisions show that the other end sends at any "+
				"time.", evidence.Count(late.n)))
	} else if half {
		x.Rejected = append(x.Rejected, "Not a mismatch by these counters: they show 0 late collisions.")
	}
	collide := sent > 0 && collisions >= collisionShare*sent && s.PerSecond(collisions) >= 1
	// Not every driver counts collisions. On a shared medium with this load each direction waits
	// for the other.
	shared := half && c.rate("rx")+c.rate("tx") >= linkFelt*c.SpeedBitsPerSec
	switch {
	case s.SinceBoot:
	case isLate && late.n >= fewest || collide || shared:
		x.Severity = evidence.Warning
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "carried, both directions together",
			Value: c.rate("rx") + c.rate("tx"), Unit: "bits_per_second",
			Source: c.source("rx_bytes + tx_bytes")})
		if passes := c.passesItsSpeed(); passes != "" {
			x.Confidence *= 0.6
			x.Rejected = append(x.Rejected, passes)
		}
	default:
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not shown to cost anything now: %s collisions with %s frames sent.",
				evidence.Count(collisions), evidence.Count(sent)))
	}
	x.Remedy.Text = "Let both ends of the cable negotiate: an end with forced full duplex does not negotiate, " +
		"and the other end then falls back to half duplex. The change takes the link down."
	x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("link.mode"), Side: where(s), Levels: []knob.Value{"auto"},
		Why: "full duplex needs negotiation, or forcing at both ends"})
	x.Remedy.Proof = "After the repair, collisions no longer increase during a run in both directions; before, " +
		"the two directions share the rate of one."
	return x
}

// lateCollisions returns the counter of collisions that came too late for the NIC to repair.
func (c card) lateCollisions() (tally, bool) {
	for _, t := range c.tallies(nicstat.HalfDuplex) {
		if strings.Contains(t.counter, "late") || t.counter == "tx_window_errors" {
			return t, true
		}
	}
	return tally{}, false
}
