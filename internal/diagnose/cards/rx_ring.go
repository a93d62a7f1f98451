package cards

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/moderation"
	"github.com/linerate/linerate/internal/host/nicstat"
)

// rxRingOverrun finds a NIC that lost received frames because it had no descriptor, or no memory of
// its own, for them.
//
// The counter is a fact; the question is why the host did not empty the ring in time. A saturated
// CPU overruns a ring of any length, so with one a ring at its maximum is only a notice, and the
// rules on CPUs name the cause. A bus that is too slow has counters of its own. What remains is a
// ring too short for the bursts, or interrupts with too long a delay.
func rxRingOverrun(s *evidence.Span) *evidence.Finding {
	return worst(cardsOf(s), ringOverrun)
}

// ringOverrun weighs the frames that one NIC lost for lack of descriptors.
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
	// Any CPU counts, not only that of the interrupt: softirqs, NAPI threads and the reader move
	// between them.
	cpu := busiest(s)
	full := cpu.Known && cpu.Busy() >= evidence.FullProcessor
	longest := c.Rings != nil && c.Rings.Rx.Max > 0 && c.Rings.Rx.Current >= c.Rings.Rx.Max
	if full && longest {
		severity = evidence.Notice
	}
	x := c.lossFinding(evidence.RXRingOverrun, severity, t, frames, "frames dropped by the NIC",
		c.tallies(nicstat.RingFull)...)
	x.Title = fmt.Sprintf("The receive ring of %s overflowed: the NIC dropped %s frames %s, %s of those received.",
		c.Name, evidence.Count(t.n), s.When(), evidence.Percent(t.n/(t.n+frames)))
	x.Confidence = evidence.Combine(0.6, evidence.When(severity == evidence.Warning, 0.4),
		evidence.When(cpu.Known && !full, 0.4),
		evidence.When(c.Rings != nil && !longest, 0.3))
	if c.Rings != nil && c.Rings.Rx.Current > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "receive ring", Value: float64(c.Rings.Rx.Current),
			Unit:   "descriptors",
			Source: "ethtool rings of " + c.Name + " (" + s.Side + ")"})
	}
	// What the NIC handed over and a CPU's backlog dropped is a place of its own.
	if backlog := s.Count("softnet.dropped"); backlog < fewest && !s.SinceBoot {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not the backlog of a CPU behind the NIC: it dropped %s packets.",
				evidence.Count(backlog)))
	}
	// A slow bus leaves descriptors unwritten, and the NIC's memory fills up in the same way.
	if b, ok := c.lost(nicstat.Bus); ok {
		x.Confidence *= 0.7
		x.Evidence = append(x.Evidence, c.evidence([]tally{b})...)
	} else {
		x.Rejected = append(x.Rejected, "Not the bus: the NIC counted 0 packets that waited for it.")
	}
	if full {
		// This lowers the confidence in the ring as the cause; that it dropped frames remains a
		// fact.
		x.Confidence *= 0.6
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: fmt.Sprintf("busiest processor, CPU %d", cpu.CPU),
			Value: cpu.Busy(), Unit: "ratio",
			Source: "/proc/stat (" + s.Side + ")"})
	}
	ringRemedy(c, x, full)
	return x
}

// ringRemedy proposes a longer ring, and a shorter interrupt delay if the frames of one delay do
// not fit.
func ringRemedy(c card, x *evidence.Finding, full bool) {
	x.Remedy.Text = "Lengthen the receive ring, by as little as stops the losses: " +
		"each descriptor costs memory and cache."
	if full {
		x.Remedy.Text = fmt.Sprintf(
			"CPU time is short on this host, so first find what saturates its CPU; "+
				"a longer ring of %s helps only with bursts.", c.Name)
	}
	if c.Rings != nil {
		x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("ring.rx"), Side: where(c.s),
			Levels: doublings(c.Rings.Rx.Current, c.Rings.Rx.Max),
			Why:    fmt.Sprintf("%d descriptors now, %d at most", c.Rings.Rx.Current, c.Rings.Rx.Max)})
	}
	if interval, ok := c.interval(); ok && c.Rings != nil && c.SpeedBitsPerSec > 0 {
		// The rate of a full link, not the mean rate: bursts cause the losses.
		burst := moderation.LineRate(asBitRate(c.SpeedBitsPerSec), c.MTUBytes)
		if moderation.Overruns(c.Rings.Rx.Current, burst, interval.longest) {
			x.Remedy.Text += fmt.Sprintf(
				" Up to %v pass between two interrupts, and %s fills its ring in %v: let it interrupt sooner.",
				interval.longest, c.Name, moderation.RingTime(c.Rings.Rx.Current, burst).Round(time.Microsecond))
			x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("coalesce.rx-usecs"), Side: where(c.s),
				Levels: c.shorterWaits(),
				Why:    "the frames of one delay must fit into the ring"})
		}
	}
	// Named but not proposed as a candidate: it takes the link down, and other hosts share the port
	// where the bursts would wait.
	if p := c.Card; p != nil && p.Pause != nil && !p.Pause.Tx {
		x.Remedy.Text += " Flow control towards the switch is off; with it, bursts wait in the switch, " +
			"at the expense of all traffic through that port."
		x.Remedy.Knobs = append(x.Remedy.Knobs, string(c.ethtool("pause.tx")))
	}
	x.Remedy.Proof = "Run the same load with rings of two lengths alternately: " +
		"losses per gigabyte follow the length; transmit rings, the control, must make no difference."
}
