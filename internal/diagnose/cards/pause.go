package cards

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/nicstat"
)

const (
	// longestPause is how many bit times the longest pause frame stops a sender: 65 535 quanta of
	// 512 (IEEE 802.3 annex 31B), 34 ms at 1 Gb/s.
	longestPause = 65535 * 512
	// pausedShare is the share of the time that pauses may have taken before they are worth a
	// finding. Their lengths are not counted, so it is an upper bound.
	pausedShare = 0.01
	// fewPauses per second are normal flow control of any link that is full at times.
	fewPauses = 10
	// manyPauses per second during a run that did not fill its link are not an accident.
	manyPauses = 100
	// heldRate is the share of a link's payload rate below which something limits a run.
	heldRate = 0.8
)

// pauseFrames finds that one end of the cable asks the other to stop sending.
//
// A pause loses nothing, which is its purpose: it turns losses of a ring into waiting at the other
// end, and stops all traffic through that port. The frames alone are therefore a notice. They cost
// something if a test did not fill a link that they kept idle. At a full link they are the ordinary
// flow control of two ends.
func pauseFrames(s *evidence.Span) *evidence.Finding { return worst(cardsOf(s), pauses) }

// pauses weighs the flow control of one link by the direction with more pause frames.
func pauses(c card) *evidence.Finding {
	s := c.s
	received, sent := c.paused("rx"), c.paused("tx")
	t, heard := received, true
	if sent.n > received.n {
		t, heard = sent, false
	}
	rate := s.PerSecond(t.n)
	if t.n < fewest || rate < fewPauses && !s.SinceBoot || s.SinceBoot && rate < 1 {
		return nil
	}
	// A later frame (XON) may shorten a pause, so this is an upper bound.
	bound := 1.0
	if c.SpeedBitsPerSec > 0 {
		bound = min(rate*longestPause/c.SpeedBitsPerSec, 1)
	}
	if bound < pausedShare {
		return nil
	}
	severity := evidence.Notice
	// Only pauses in the direction of the payload count: nothing waits for delayed
	// acknowledgements.
	onItsWay := heard && sends(s) || !heard && receives(s)
	if s.Loaded() && onItsWay && rate >= manyPauses && c.SpeedBitsPerSec > 0 &&
		s.Run.ThroughputBitsPerSec < heldRate*evidence.Goodput(c.Interface) {
		severity = evidence.Warning
	}
	what := "the link partner asks " + c.Name + " to stop sending"
	cause := "Find what the link partner cannot forward: a switch port towards a slower link, " +
		"or a host that does not empty its ring."
	if !heard {
		what = c.Name + " asks the link partner to stop sending"
		cause = "This host does not empty its receive ring in time: look for a saturated CPU, a short ring, " +
			"long interrupt delays, or a slow bus."
	}
	x := &evidence.Finding{
		Code: evidence.PauseFrames, Severity: severity, Where: where(s),
		Title: fmt.Sprintf("Pause frames: %s %s times a second.", what, evidence.Count(rate)),
		Evidence: append(c.evidence([]tally{t}),
			evidence.Evidence{Name: "part of the time that these pauses can have been at most", Value: bound,
				Unit:   "ratio",
				Source: "65535 quanta of 512 bits each (IEEE 802.3 annex 31B)"}),
		Rejected: notMeasured(s),
		Confidence: evidence.Combine(0.6, evidence.When(severity == evidence.Warning, 0.5),
			evidence.When(bound >= 0.5, 0.3)),
	}
	if s.Loaded() {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "throughput", Value: s.Run.ThroughputBitsPerSec,
			Unit:   "bits_per_second",
			Source: "payload counted at the receiver"})
		if c.SpeedBitsPerSec > 0 {
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not a full link: %s could carry %s of payload and carried %s.", c.Name,
					evidence.Rate(evidence.Goodput(c.Interface)), evidence.Rate(s.Run.ThroughputBitsPerSec)))
		}
	}
	if again, ratio, known := repaired(s); known && ratio < evidence.MinLoss {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not losses: the flow retransmitted %s segments; pauses delay packets but keep them.",
				evidence.Count(again)))
	}
	if !heard {
		x.Rejected = append(x.Rejected, notProcessor(s)...)
		if lost, ok := c.lost(nicstat.RingFull); ok {
			x.Evidence = append(x.Evidence, c.evidence([]tally{lost})...)
		}
	}
	x.Remedy.Text = cause +
		" Switching off flow control turns the waiting into losses, and helps only if the pauses also stop " +
		"unrelated traffic; it takes the link down for a moment."
	x.Remedy.Knobs = []string{string(c.ethtool("pause.rx")), string(c.ethtool("pause.tx"))}
	x.Remedy.Proof = "Count pauses and losses at both ends of the cable at half the load: " +
		"the pauses end before the rate falls."
	return x
}

// paused returns the counter of pause frames of one direction that increased most; "rx" are those
// that this NIC received. Drivers call them xoff or pause, anywhere in the name; those with
// priorities count by priority.
func (c card) paused(direction string) tally {
	for _, t := range c.tallies(nicstat.Held) {
		if (strings.Contains(t.counter, "xoff") || strings.Contains(t.counter, "pause")) &&
			strings.Contains(t.counter, direction) {
			return t
		}
	}
	return tally{}
}
