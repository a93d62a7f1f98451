package cards

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/nicstat"
)

// txQueueDrops finds packets dropped between the queueing discipline and the wire, or a NIC that
// stopped sending until its driver restarted it.
//
// A full transmit ring normally loses nothing: the driver stops the queue, and the discipline above
// waits. Packets dropped here were refused by driver or NIC, or were in the ring when the driver
// reset the NIC. The discipline counts its own drops (qdisc-drops), and drops after a link went
// down have a class of their own.
func txQueueDrops(s *evidence.Span) *evidence.Finding {
	all := cardsOf(s)
	// A NIC that stood still explains all other losses of that time.
	if x := worst(all, reset); x != nil && x.Severity != evidence.Notice {
		return x
	}
	if x := worst(all, txDrops); x != nil {
		return x
	}
	return worst(all, reset)
}

// txDrops weighs what driver and NIC discarded of the packets of one interface.
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
	x := c.lossFinding(evidence.TXQueueDrops, severity, t, sent, "packets dropped on the way to the wire", t)
	x.Title = fmt.Sprintf("NIC %s dropped %s packets that the queueing discipline had handed over %s, "+
		"%s of what it sent.",
		c.Name, evidence.Count(t.n), s.When(), evidence.Percent(t.n/(t.n+sent)))
	x.Confidence = evidence.Combine(0.5, evidence.When(severity == evidence.Warning, 0.5))
	if !s.SinceBoot {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the queueing discipline: it dropped %s packets of its own.",
			evidence.Count(s.Count("qdisc."+c.Name+".drops"))))
		// A driver discards the packets it holds when the link goes down: such drops say nothing
		// about the ring.
		if n := c.count("carrier_changes"); n > 0 {
			x.Confidence *= 0.5
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: "times that the link came or went", Value: n,
				Unit: "events", Source: c.source("carrier_changes")})
		} else {
			x.Rejected = append(x.Rejected, "Not the link: it went up or down 0 times.")
		}
	}
	// How often the ring was full decides whether a longer one may help.
	x.Evidence = append(x.Evidence, evidence.Evidence{Name: "times that the transmit ring was full", Value: c.held(),
		Unit: "events", Source: c.source("ethtool -S")})
	x.Remedy.Text = "Follow the meaning of the counter: a longer transmit ring helps if it was full; " +
		"offloads that a driver refuses (too many fragments, too large) also show as drops and should be off."
	if c.Rings != nil {
		x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("ring.tx"), Side: where(s),
			Levels: doublings(c.Rings.Tx.Current, c.Rings.Tx.Max),
			Why:    fmt.Sprintf("%d descriptors now, %d at most", c.Rings.Tx.Current, c.Rings.Tx.Max)})
	}
	x.Remedy.Proof = "Run the same load with transmit rings of two lengths alternately: " +
		"drops per gigabyte follow the length; receive rings, the control, must make no difference."
	return x
}

// txLost returns the place where most outgoing packets were dropped. Reception has counters of the
// same classes.
func (c card) txLost() (tally, bool) {
	for _, t := range c.tallies(nicstat.Software, nicstat.RingFull, nicstat.NoMemory, nicstat.Bus) {
		if !t.events() && nicstat.Outbound(t.counter) {
			return t, true
		}
	}
	return tally{}, false
}

// held returns how often the transmit ring was full and its queue stopped. Pauses of the link
// partner stop the queue as well, and do not count.
func (c card) held() float64 {
	for _, t := range c.tallies(nicstat.Held) {
		if nicstat.Outbound(t.counter) && !strings.Contains(t.counter, "xoff") &&
			!strings.Contains(t.counter, "pause") {
			return t.n
		}
	}
	return 0
}

// reset finds that the NIC sent nothing for seconds and its driver restarted it. One reset in an
// observation is a warning.
func reset(c card) *evidence.Finding {
	s := c.s
	all := c.tallies(nicstat.Reset)
	if len(all) == 0 {
		return nil
	}
	t, severity := all[0], evidence.Warning
	// Since boot it may have been one bad hour before a driver update.
	if s.SinceBoot {
		severity = evidence.Notice
	}
	x := &evidence.Finding{
		Code: evidence.TXQueueDrops, Severity: severity, Where: where(s),
		Title: fmt.Sprintf("NIC %s stopped sending, and its driver restarted it %s times %s.", c.Name,
			evidence.Count(t.n), s.When()),
		Evidence: c.evidence(all),
		Rejected: append([]string{
			fmt.Sprintf("Not a full ring: the %s times that it was full have a counter of their own, "+
				"and end once the NIC has sent.",
				evidence.Count(c.held()))}, notMeasured(s)...),
		Confidence: evidence.Combine(0.8, evidence.When(!s.SinceBoot, 0.5)),
	}
	x.Remedy.Text = "The kernel log has details (NETDEV WATCHDOG, Detected Hardware Unit Hang). " +
		"Use a newer driver or firmware. Until then, switching off segmentation in the NIC avoids many of " +
		"these faults, as does keeping its bus link awake (ASPM)."
	for _, name := range []string{"tx-tcp-segmentation", "tx-tcp6-segmentation"} {
		if f, ok := c.Features[name]; ok && f.On && !f.Fixed {
			x.Remedy.Knobs = append(x.Remedy.Knobs, string(c.ethtool("feature."+name)))
		}
	}
	x.Remedy.Proof = "Run a load of several hours with the suspected feature on and off alternately, " +
		"and count resets: they are too rare for a comparison of rates."
	return x
}
