package cards

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/nicstat"
)

// txQueueDrops: packets died between the queueing discipline and the wire, or the card stopped
// sending until its driver started it anew.
//
// A transmit ring that is full loses nothing as a rule: the driver stops the queue and the
// discipline above waits. What dies here was refused by driver or card, or was in the ring when the
// driver gave up on the card. What the discipline drops it counts itself (qdisc-drops), and what
// the link's going away costs is counted by its class: neither is taken for this.
func txQueueDrops(s *evidence.Span) *evidence.Finding {
	all := cardsOf(s)
	// A card that stood still explains whatever else was lost meanwhile.
	if x := worst(all, reset); x != nil && x.Severity != evidence.Notice {
		return x
	}
	if x := worst(all, txDrops); x != nil {
		return x
	}
	return worst(all, reset)
}

// txDrops weighs what driver and card threw away of one interface's packets.
func txDrops(c card) *evidence.Finding {
	s := c.s
	t, ok := c.txLost()
	if !ok {
		return nil
	}
	sent := c.count("tx_packets")
	severity, ok := c.weigh(t.n, sent)
	if !ok {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.TXQueueDrops, Severity: severity, Where: where(s),
		Title: fmt.Sprintf("Card %s dropped %s packets that the queueing discipline had handed over %s, %s of what it sent.",
			c.Name, evidence.Count(t.n), s.When(), evidence.Percent(t.n/(t.n+sent))),
		Evidence: append(c.evidence([]tally{t}), c.lossEvidence(t.n, sent, "packets that died on the way to the wire",
			t.counter)...),
		Rejected:   append(notProcessor(s), notMeasured(s)...),
		Confidence: evidence.Combine(0.5, evidence.When(severity == evidence.Warning, 0.5)),
	}
	if !s.SinceBoot {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the queueing discipline: it dropped %s packets of its own.",
			evidence.Count(s.Count("qdisc."+c.Name+".drops"))))
		// A driver throws away what it holds when the link goes: such drops say nothing of the
		// ring.
		if n := c.count("carrier_changes"); n > 0 {
			x.Confidence *= 0.5
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: "times that the link came or went", Value: n,
				Unit: "events", Source: c.source("carrier_changes")})
		} else {
			x.Rejected = append(x.Rejected, "Not the link: it came or went 0 times.")
		}
	}
	// How often the ring was full: with it a longer ring may help, without it hardly.
	x.Evidence = append(x.Evidence, evidence.Evidence{Name: "times that the transmit ring was full", Value: c.held(),
		Unit: "events", Source: c.source("ethtool -S")})
	x.Remedy.Text = "See what the counter means: a longer transmit ring helps where it was full; offloads that a driver refuses (too many pieces, too large) show " +
		"as drops too and are to be switched off."
	if c.Rings != nil {
		x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("ring.tx"), Side: where(s),
			Levels: doublings(c.Rings.Tx.Current, c.Rings.Tx.Max),
			Why:    fmt.Sprintf("%d descriptors now, %d at most", c.Rings.Tx.Current, c.Rings.Tx.Max)})
	}
	x.Remedy.Proof = "The same load with transmit rings of two lengths by turns: drops per gigabyte follow the length; receive rings as a control must not matter."
	return x
}

// txLost is the place where most packets died that were to be sent. Receiving has counters of the
// same classes.
func (c card) txLost() (tally, bool) {
	for _, t := range c.tallies(nicstat.Software, nicstat.RingFull, nicstat.NoMemory, nicstat.Bus) {
		// Intel's newer drivers put the port in front; the queues of a direction were put together
		// by gather.
		name := strings.TrimPrefix(t.counter, "port.")
		if !t.events() && (strings.Contains(name, "tx") || strings.Contains(name, "of all tx")) {
			return t, true
		}
	}
	return tally{}, false
}

// held is how often the transmit ring was full and its queue was stopped. Pauses of the other end
// are held back for as well, and are not this.
func (c card) held() float64 {
	for _, t := range c.tallies(nicstat.Held) {
		if strings.Contains(t.counter, "tx") && !strings.Contains(t.counter, "xoff") &&
			!strings.Contains(t.counter, "pause") {
			return t.n
		}
	}
	return 0
}

// reset: the card sent nothing for seconds, and its driver started it anew. Once in a span that
// somebody watched is once too often.
func reset(c card) *evidence.Finding {
	s := c.s
	all := c.tallies(nicstat.Reset)
	if len(all) == 0 {
		return nil
	}
	t, severity := all[0], evidence.Warning
	// Since boot it may have been one bad hour before the driver was brought up to date.
	if s.SinceBoot {
		severity = evidence.Notice
	}
	x := &evidence.Finding{
		Code: evidence.TXQueueDrops, Severity: severity, Where: where(s),
		Title: fmt.Sprintf("Card %s stopped sending and was started anew by its driver %s times %s.", c.Name,
			evidence.Count(t.n), s.When()),
		Evidence: c.evidence(all),
		Rejected: append([]string{
			fmt.Sprintf("Not a full ring: the %s times that it was full are counted elsewhere, and end when the card has sent.",
				evidence.Count(c.held()))}, notMeasured(s)...),
		Confidence: evidence.Combine(0.8, evidence.When(!s.SinceBoot, 0.5)),
	}
	x.Remedy.Text = "The kernel log tells more (NETDEV WATCHDOG, Detected Hardware Unit Hang). Newer driver or firmware; until then segmentation in the card " +
		"switched off avoids many of these faults, " +
		"as does keeping the card's bus link awake (ASPM)."
	for _, name := range []string{"tx-tcp-segmentation", "tx-tcp6-segmentation"} {
		if f, ok := c.Features[name]; ok && f.On && !f.Fixed {
			x.Remedy.Knobs = append(x.Remedy.Knobs, string(c.ethtool("feature."+name)))
		}
	}
	x.Remedy.Proof = "A load of hours with the suspect on and off by turns, counting resets: they are too rare for a comparison of rates."
	return x
}
