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
	// pausedShare is the part of the time that pauses can have made up before they are worth a
	// word. How long each was is not counted, so it is an upper bound.
	pausedShare = 0.01
	// fewPauses a second are the flow control of any link that is full now and then.
	fewPauses = 10
	// manyPauses a second during a run that did not fill its link are no accident of it.
	manyPauses = 100
	// heldRate is the part of a link's payload under which a run is held by something.
	heldRate = 0.8
)

// pauseFrames: one end of the cable tells the other to stop sending.
//
// A pause loses nothing, which is what it is for: it turns losses of a ring into waiting at the
// other end, and stops everything that goes through that port. So the frames alone are a notice;
// that they cost something shows where a run of ours did not fill the link that they kept empty. At
// a full link they are the ordinary way in which two ends agree.
func pauseFrames(s *evidence.Span) *evidence.Finding { return worst(cardsOf(s), pauses) }

// pauses weighs the flow control of one link by the direction that had more of it.
func pauses(c card) *evidence.Finding {
	s := c.s
	told, tells := c.paused("rx"), c.paused("tx")
	t, heard := told, true
	if tells.n > told.n {
		t, heard = tells, false
	}
	rate := s.PerSecond(t.n)
	if t.n < fewest || rate < fewPauses && !s.SinceBoot || s.SinceBoot && rate < 1 {
		return nil
	}
	// A pause may be cut short by the next frame (XON), so this is the most that it can have been.
	bound := 1.0
	if c.SpeedBitsPerSec > 0 {
		bound = min(rate*longestPause/c.SpeedBitsPerSec, 1)
	}
	if bound < pausedShare {
		return nil
	}
	severity := evidence.Notice
	// The pauses of the direction in which the payload went: those of acknowledgements hold nothing
	// that anybody waits for.
	onItsWay := heard && sends(s) || !heard && receives(s)
	if s.Loaded() && onItsWay && rate >= manyPauses && c.SpeedBitsPerSec > 0 &&
		s.Run.ThroughputBitsPerSec < heldRate*evidence.Goodput(c.Interface) {
		severity = evidence.Warning
	}
	who := "the other end of its cable tells " + c.Name + " to stop sending"
	cause := "What the other end of the cable cannot get rid of decides: a switch port towards something slower, or a host that does not empty its ring."
	if !heard {
		who = c.Name + " tells the other end of its cable to stop sending"
		cause = "This host does not empty its receive ring in time: look for a full processor, a ring that is short, interrupts that wait long, or a slow bus."
	}
	x := &evidence.Finding{
		Code: evidence.PauseFrames, Severity: severity, Where: where(s),
		Title: fmt.Sprintf("Pause frames: %s %s times a second.", who, evidence.Count(rate)),
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
			fmt.Sprintf("Not losses: the flow sent %s segments again; pauses keep what they delay.",
				evidence.Count(again)))
	}
	if !heard {
		x.Rejected = append(x.Rejected, notProcessor(s)...)
		if lost, ok := c.lost(nicstat.RingFull); ok {
			x.Evidence = append(x.Evidence, c.evidence([]tally{lost})...)
		}
	}
	x.Remedy.Text = cause +
		" Switching flow control off turns the waiting into losses and helps only where the pauses stop traffic that is not meant; it takes the " +
		"link down for a moment."
	x.Remedy.Knobs = []string{string(c.ethtool("pause.rx")), string(c.ethtool("pause.tx"))}
	x.Remedy.Proof = "Count pauses and losses at both ends of the cable while the load is half as large: the pauses end before the rate does."
	return x
}

// paused is the counter of pause frames of one direction that moved most: "rx" those that this card
// heard. Drivers call them xoff or pause, each in a place of its own in the name; those with
// priorities are counted by the priority.
func (c card) paused(direction string) tally {
	for _, t := range c.tallies(nicstat.Held) {
		if (strings.Contains(t.counter, "xoff") || strings.Contains(t.counter, "pause")) &&
			strings.Contains(t.counter, direction) {
			return t
		}
	}
	return tally{}
}
