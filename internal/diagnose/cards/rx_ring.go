package cards

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/moderation"
	"github.com/linerate/linerate/internal/host/nicstat"
)

// rxRingOverrun: the card had no descriptor, or no memory of its own, for frames that came, and
// lost them.
//
// The counter is a fact; what has to be told apart is why nobody emptied the ring in time. A
// processor without time to spare does the same to a ring of any length, so with one a ring that is
// as long as it can be is only noticed; the rules on processors speak of the cause. A bus that is
// too slow has counters of its own. What is left is a ring too short for the bursts that come, or
// interrupts that wait too long.
func rxRingOverrun(s *evidence.Span) *evidence.Finding {
	return worst(cardsOf(s), ringOverrun)
}

// ringOverrun weighs the frames that one card lost for want of descriptors.
func ringOverrun(c card) *evidence.Finding {
	s := c.s
	t, ok := c.lost(nicstat.RingFull)
	if !ok {
		return nil
	}
	frames := c.count("rx_packets")
	severity, ok := c.weigh(t.n, frames)
	if !ok {
		return nil
	}
	// Any processor counts, not only that of the interrupt: softirqs, threads of NAPI and the
	// reader move between them.
	cpu := busiest(s)
	full := cpu.Known && cpu.Busy() >= evidence.FullProcessor
	longest := c.Rings != nil && c.Rings.Rx.Max > 0 && c.Rings.Rx.Current >= c.Rings.Rx.Max
	if full && longest {
		severity = evidence.Notice
	}
	x := &evidence.Finding{
		Code: evidence.RXRingOverrun, Severity: severity, Where: where(s),
		Title: fmt.Sprintf("The receive ring of %s overflowed: %s frames died in the card %s, %s of what came.",
			c.Name, evidence.Count(t.n), s.When(), evidence.Percent(t.n/(t.n+frames))),
		Evidence: append(c.evidence(c.tallies(nicstat.RingFull)),
			c.lossEvidence(t.n, frames, "frames that died in the card", t.counter)...),
		Rejected: append(notProcessor(s), notMeasured(s)...),
		Confidence: evidence.Combine(0.6, evidence.When(severity == evidence.Warning, 0.4),
			evidence.When(cpu.Known && !full, 0.4),
			evidence.When(c.Rings != nil && !longest, 0.3)),
	}
	if c.Rings != nil && c.Rings.Rx.Current > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "receive ring", Value: float64(c.Rings.Rx.Current),
			Unit:   "descriptors",
			Source: "ethtool rings of " + c.Name + " (" + s.Side + ")"})
	}
	// What the card handed over and a processor's backlog dropped is a place of its own.
	if backlog := s.Count("softnet.dropped"); backlog < fewest && !s.SinceBoot {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not the backlog of a processor behind the card: it dropped %s packets.",
				evidence.Count(backlog)))
	}
	// A bus that is too slow leaves descriptors unwritten, and the card's memory fills in the same
	// way.
	if b, ok := c.lost(nicstat.Bus); ok {
		x.Confidence *= 0.7
		x.Evidence = append(x.Evidence, c.evidence([]tally{b})...)
	} else {
		x.Rejected = append(x.Rejected, "Not the bus: the card counted 0 packets that waited for it.")
	}
	if full {
		// A lower confidence in the ring as the cause; that frames died there stays true.
		x.Confidence *= 0.6
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: fmt.Sprintf("busiest processor, CPU %d", cpu.CPU),
			Value: cpu.Busy(), Unit: "ratio",
			Source: "/proc/stat (" + s.Side + ")"})
	}
	ringRemedy(c, x, full)
	return x
}

// ringRemedy offers a longer ring, and shorter waits where frames of one wait do not fit.
func ringRemedy(c card, x *evidence.Finding, full bool) {
	x.Remedy.Text = "Make the receive ring longer: the shortest that stops the losses, as each descriptor costs memory and cache."
	if full {
		x.Remedy.Text = fmt.Sprintf(
			"CPU time is short on this host, so find what fills its processor first; a longer ring of %s helps with bursts alone.", c.Name)
	}
	if c.Rings != nil {
		x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("ring.rx"), Side: where(c.s),
			Levels: doublings(c.Rings.Rx.Current, c.Rings.Rx.Max),
			Why:    fmt.Sprintf("%d descriptors now, %d at most", c.Rings.Rx.Current, c.Rings.Rx.Max)})
	}
	if interval, ok := c.interval(); ok && c.Rings != nil && c.SpeedBitsPerSec > 0 {
		// What a full link brings and not what came in the mean: losses are of bursts.
		burst := moderation.LineRate(asBitRate(c.SpeedBitsPerSec), c.MTUBytes)
		if moderation.Overruns(c.Rings.Rx.Current, burst, interval.longest) {
			x.Remedy.Text += fmt.Sprintf(
				" Between two interrupts up to %v pass, and %s fills its ring in %v: let it interrupt sooner.",
				interval.longest, c.Name, moderation.RingTime(c.Rings.Rx.Current, burst).Round(time.Microsecond))
			x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("coalesce.rx-usecs"), Side: where(c.s),
				Levels: c.shorterWaits(),
				Why:    "frames of one wait must fit into the ring"})
		}
	}
	// Named and not offered as a candidate: it takes the link down, and others share the port on
	// which the bursts would wait.
	if p := c.Card; p != nil && p.Pause != nil && !p.Pause.Tx {
		x.Remedy.Text += " Flow control towards the switch is off; with it bursts wait there, at the price of all who share that port."
		x.Remedy.Knobs = append(x.Remedy.Knobs, string(c.ethtool("pause.tx")))
	}
	x.Remedy.Proof = "The same load with rings of two lengths by turns: the losses per gigabyte follow the length; transmit rings as a control must not matter."
}
