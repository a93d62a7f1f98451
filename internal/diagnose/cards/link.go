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

// linkFelt is the part of a link's rate from which its slowness is felt: a link that is two fifths
// full over seconds is full for moments, and a medium that both directions share keeps little more
// than that (the old rule for Ethernet with collisions).
const linkFelt = 0.4

// linkLow: the link runs slower than this card can, and than its partner can as far as that is
// known.
//
// A slow link is a fact; that it is too slow needs a comparison. The modes of both ends of the
// cable settle it: what both have and do not use is a cable with a broken pair, or a setting. Where
// the partner does not tell, a mode that this end does not offer is a setting too. A card that
// offers all it has and gets less may simply meet a slower port, which is no fault of this host.
// Fibre and cages list what the card could do with another module: of those only what is told to be
// negotiated counts.
func linkLow(s *evidence.Span) *evidence.Finding { return worst(cardsOf(s), slowLink) }

// slowLink compares the speed of one link with the modes of its two ends.
func slowLink(c card) *evidence.Finding {
	if c.Card == nil || c.Card.Modes == nil || c.SpeedBitsPerSec <= 0 || !c.Carrier {
		return nil
	}
	m := c.Card.Modes
	can, offers, partner := fastest(m.Supported), fastest(m.Advertised), fastest(m.Partner)
	speed := c.SpeedBitsPerSec
	// A transceiver that can be changed: the card lists modes that this one has not.
	fixedMedium := c.Card.Port == "" || strings.Contains(c.Card.Port, "twisted")
	var why string
	var strength float64
	best := can
	switch {
	case partner > 0 && min(can, partner) > speed:
		best = min(can, partner)
		why, strength = "both ends of the cable have a faster mode", 0.85
		if offers > 0 && offers < best {
			why, strength = "this end does not offer a faster mode that both have", 0.95
		}
	case partner > 0 || !fixedMedium:
		return nil // the other end has no more, or nobody knows what the module can do
	case can > speed && !m.Autoneg:
		why, strength = "the speed of this end is forced", 0.8
	case can > speed && offers > 0 && offers < can:
		why, strength = "this end does not offer all that it has", 0.85
	// One step below may be an older switch. Ten times is gigabit at 100 Mb/s, which is what a
	// cable with a broken pair gives.
	case can >= 10*speed && offers > speed:
		why, strength = "this end offers more, and the other end does not tell what it has", 0.4
	default:
		return nil
	}
	if best <= speed {
		return nil
	}
	s := c.s
	x := &evidence.Finding{
		Code: evidence.LinkNegotiatedLow, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("Card %s runs at %s and could run at %s: %s.", c.Name, evidence.Rate(speed),
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
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a slower port at the other end: it has modes up to %s.",
			evidence.Rate(partner)))
	} else {
		x.Rejected = append(x.Rejected,
			"Not measured: whether the port at the other end has more; it does not tell its modes.")
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
	x.Remedy.Text = "Try another cable first (gigabit needs all four pairs), then another port. Let both ends negotiate and offer all they have; a speed forced at " +
		"one end alone also makes the other fall back to half duplex. Changing it takes the link down."
	x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("link.mode"), Side: where(s), Levels: []knob.Value{"auto"},
		Why: "both ends then choose the fastest mode that they have in common"})
	x.Remedy.Proof = "After the repair the same run goes as much faster as the link; a flow by another interface as a control must not change."
	return x
}

// carried is what the card moved in its busier direction, bits per second.
func (c card) carried() float64 {
	used := max(c.rate("rx"), c.rate("tx"))
	if c.s.Loaded() && c.s.Run.Direction != traffic.Bidir {
		used = max(used, c.s.Run.ThroughputBitsPerSec)
	}
	return used
}

// passesItsSpeed says that the card carried more than its link is said to do, which an imitated
// card does: nothing keeps it to what it says. It is told and not taken for an excuse, as all
// verdicts on full links go by what cards say. Empty: it did not.
func (c card) passesItsSpeed() string {
	if c.carried() <= 1.1*c.SpeedBitsPerSec {
		return ""
	}
	return fmt.Sprintf("Doubtful: %s carried %s, more than its link is said to do, so that the speed may be a mere number of an imitated card.", c.Name,
		evidence.Rate(c.carried()))
}

// fastest is the speed of the fastest of modes in the words of ethtool(8), bits per second:
// "1000baseT/Full", "2500baseX/Full", "10000baseKR_FEC". 0: none.
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

// collisionShare of the frames sent are collisions that a half-duplex link of two feels; a hub of
// the past was fine with more.
const collisionShare = 0.01

// halfDuplex: the link can send or receive and not both, so that what comes collides with what
// goes.
//
// Half duplex is a fact of the card. A mismatch is worse than half duplex at both ends: the end
// that runs full duplex sends whenever it likes, the other counts late collisions, and each of
// those is a lost packet. So late collisions say that the partner runs full duplex; damaged frames
// at a full-duplex end with few of the kind elsewhere may be the other half of it, which the
// partner's counters tell. Virtual machines show half duplex where nothing collides, and some
// drivers count no collisions at all: then how much the link carries tells.
func halfDuplex(s *evidence.Span) *evidence.Finding { return worst(cardsOf(s), oneAtATime) }

// oneAtATime looks at the duplex and the collisions of one link.
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
		Title: fmt.Sprintf("Card %s runs half duplex at %s: it cannot send while it receives.", c.Name,
			evidence.Rate(c.SpeedBitsPerSec)),
		Evidence: []evidence.Evidence{{Name: "duplex", Value: c.Duplex, Source: "/sys/class/net/" + c.Name +
			"/duplex (" + s.Side + ")"}},
		Rejected: notMeasured(s),
		Confidence: evidence.Combine(0.6, evidence.When(half, 0.7), evidence.When(isLate, 0.7),
			evidence.When(collisions > 0, 0.5)),
	}
	if !half {
		// Either the driver's word is wrong, or the counter is of a time before the link was
		// negotiated anew.
		x.Title = fmt.Sprintf("Card %s counted %s late collisions %s, which a link of full duplex cannot have.", c.Name,
			evidence.Count(late.n), s.When())
		x.Confidence = 0.6
	}
	x.Evidence = append(x.Evidence, evidence.Evidence{Name: "collisions", Value: collisions, Unit: "events",
		Source: c.source("collisions")})
	if isLate {
		x.Evidence = append(x.Evidence, c.evidence([]tally{late})...)
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not half duplex at both ends: %s late collisions say that the other end sends whenever it likes.", evidence.Count(late.n)))
	} else if half {
		x.Rejected = append(x.Rejected, "Not a mismatch by these counters: there are 0 late collisions.")
	}
	collide := sent > 0 && collisions >= collisionShare*sent && s.PerSecond(collisions) >= 1
	// Not every driver counts collisions. A medium for one at a time that is as full as this keeps
	// each direction waiting for the other.
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
	x.Remedy.Text = "Let both ends of the cable negotiate: an end that is forced to full duplex does not negotiate, and the other one then has to take half. " +
		"Changing it takes the link down."
	x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("link.mode"), Side: where(s), Levels: []knob.Value{"auto"},
		Why: "full duplex is only agreed on by negotiation, or forced at both ends"})
	x.Remedy.Proof = "After the repair collisions stay where they are while a run goes both ways at once; before, the two directions share the rate of one."
	return x
}

// lateCollisions is the counter of collisions that came too late to be repaired by the card itself.
func (c card) lateCollisions() (tally, bool) {
	for _, t := range c.tallies(nicstat.HalfDuplex) {
		if strings.Contains(t.counter, "late") || t.counter == "tx_window_errors" {
			return t, true
		}
	}
	return tally{}, false
}
