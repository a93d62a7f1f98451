package cards

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/moderation"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// feltWait is the shortest wait that is worth a word: drivers of today wait 1 to 50 µs as they
	// come.
	feltWait = 50 * time.Microsecond
	// longWait is worth a word even where nothing was measured: longer than any driver waits by
	// itself when there is little to do.
	longWait = 250 * time.Microsecond
	// mostOfIt is the part of a transaction that the wait must make up to be what holds it: more
	// than everything else together.
	mostOfIt = 0.5
	// someOfIt is the part from which it is worth a word. On a path of milliseconds a wait is lost
	// in the noise.
	someOfIt = 0.2
	// withinWait is how much of a wait a transaction loses at least if anybody waits. Not all of
	// it: an answer that comes while the driver still polls for the frame before it needs no
	// interrupt, nor one that comes when the timer has run out. Seen are 1.00 on iron, and 0.36,
	// 0.31 and 0.17 of 0.5, 2 and 10 ms on QEMU's e1000.
	withinWait = 0.1
	// onTheDot is how near a rate is to 1 / wait to be called a plateau. The field notes had 8003.6
	// of 8004.6.
	onTheDot = 0.03
)

// moderationLatency: a card holds back its interrupts, and every question and its answer wait for
// that.
//
// What tells it from a long path, a processor that sleeps or one that is busy is arithmetic: the
// wait is known from the setting, and transactions that follow one upon the other take that much
// longer than the quickest echo, which met cards at rest, and hardly more. A transaction that takes
// much longer than the waits of both ends is held by something else; one that is done in much less
// proves that nobody waited.
func moderationLatency(c *evidence.Case) *evidence.Finding {
	var run, echo *evidence.Run
	for i := range c.Runs {
		// Transactions show it best, as one follows upon the other; an echo now and then meets a
		// card at rest.
		switch r := &c.Runs[i]; {
		case r.Test == traffic.RR && r.TransactionsPerSec > 0:
			run = r
		case r.Test == traffic.Ping && r.RTT != nil && r.RTT.Min > 0:
			echo = r
		}
	}
	var base float64
	switch {
	case run == nil:
		run = echo
	case echo != nil:
		base = echo.RTT.Min
	}
	var found *evidence.Finding
	ends := make(map[string]moderatedEnd)
	for _, s := range evidence.SpansOf(c) {
		switch {
		case run != nil && s.Run == run && s.End.Card != nil:
			e := moderatedEnd{card: card{s.End.Card, s}}
			if e.wait, e.waits = e.card.interval(); e.waits {
				ends[s.Side] = e
			}
		case s.Run == nil && run == nil && found == nil:
			found = worst(cardsOf(s), longModeration)
		}
	}
	if run == nil || len(ends) == 0 {
		return found
	}
	return waitsForTimer(run, base, ends["near"], ends["far"])
}

// moderatedEnd is one end of a run with the wait of its card.
type moderatedEnd struct {
	card
	wait
	waits bool
}

// spent is how a transaction spent its time, as far as the waits explain it.
type spent struct {
	took   float64 // seconds
	part   float64 // of it, waiting
	source string
}

// explained says how much of a transaction's time the waits of both ends make up. base is the
// quickest echo, 0 where there was none. False: nobody waited.
//
// The median and the mean (1 / rate) are both looked at, and the one that is explained better
// counts: a machine that stalls now and then moves the mean, and waits that not every transaction
// meets leave the median alone.
func explained(run *evidence.Run, base float64, longest, both time.Duration) (best spent, ok bool) {
	for _, x := range transactionTimes(run) {
		waited := min(longest.Seconds(), x.took)
		if x.took >= (1-onTheDot)*both.Seconds() {
			waited = both.Seconds() // the ends are not in step
		}
		lost := x.took
		if base > 0 && base < x.took {
			lost = x.took - base
			waited = min(lost, both.Seconds())
		}
		x.part = min(waited/x.took, 1)
		if lost >= withinWait*longest.Seconds() && x.part > best.part {
			best, ok = x, true
		}
	}
	return best, ok
}

// waitsForTimer compares what a transaction took with what the cards of both ends make it wait.
func waitsForTimer(run *evidence.Run, base float64, near, far moderatedEnd) *evidence.Finding {
	// The longer wait is the one to speak of; the other is told beside it.
	e := near
	if far.longest > near.longest {
		e = far
	}
	// An adaptive driver goes for its shortest wait when there is little to do; that it does not is
	// for a longer test to show.
	adaptive := e.adaptive
	longest, both := e.longest, near.longest+far.longest
	if adaptive {
		longest, both = e.shortest, near.shortest+far.shortest
	}
	how, ok := explained(run, base, longest, both)
	took, part := how.took, how.part
	if !ok || e.longest < feltWait || part < someOfIt {
		return nil
	}
	_, bound := moderation.TransactionRate(0, near.longest, far.longest)
	plateau := near1(took/longest.Seconds(), onTheDot) || near1(took/both.Seconds(), onTheDot) ||
		near1(run.TransactionsPerSec*longest.Seconds(), onTheDot)
	x := &evidence.Finding{
		Code: evidence.InterruptModerationLatency, Severity: evidence.Notice, Where: where(e.s),
		Title: fmt.Sprintf("Card %s (%s) holds its interrupts back for %s, and a question and its answer take %s: %.1f a second.",
			e.Name, e.s.Side, e.wait, evidence.Seconds(took), cmp.Or(run.TransactionsPerSec, 1/took)),
		Evidence: []evidence.Evidence{
			{Name: "time of one transaction", Value: took, Unit: "seconds", Source: how.source},
			{Name: "wait of the interrupt at the " + e.s.Side + " end", Value: longest.Seconds(), Unit: "seconds",
				Source: "ethtool -c: " + e.why},
		},
		Confidence: evidence.Combine(0.3, evidence.When(plateau, 0.6), evidence.When(!adaptive, 0.3),
			evidence.When(part >= 0.8, 0.3),
			evidence.When(base > 0 && base < took/2, 0.3), evidence.When(run.Test == traffic.RR, 0.2)),
	}
	if !adaptive && part >= mostOfIt {
		x.Severity = evidence.Warning
	}
	// A card whose timer starts with each interrupt keeps to it; imitations and some others let
	// what comes in time through, and pass it.
	if !adaptive && 1/took <= (1+onTheDot)*bound {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "most transactions per second that this allows one connection", Value: bound,
				Unit: "transactions_per_second", Source: "1 / longest wait"})
	}
	// One end changed alone leaves the other's wait: the field notes got from 8003 to 23 975
	// transactions only with both.
	if o := otherEnd(e, near, far); o.waits {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "wait of the interrupt at the " + o.s.Side + " end",
			Value: o.longest.Seconds(), Unit: "seconds",
			Source: "ethtool -c: " + o.why})
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not one end alone: the other waits up to %s, and the waits add up unless they fall into step.",
				evidence.Seconds(o.longest.Seconds())))
	}
	if base > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "quickest echo", Value: base, Unit: "seconds",
			Source: "ping before the load, smallest"})
	}
	x.Rejected = append(x.Rejected,
		fmt.Sprintf("Not the path alone: the wait makes up %s of the %s that a transaction takes.",
			evidence.Percent(part),
			evidence.Seconds(took)))
	// A processor that is full answers late as well, though never at one and the same time.
	if cpu := e.s.BusiestBy(evidence.ClassRatios.Busy); cpu.Known {
		if cpu.Busy() < evidence.FullProcessor {
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not a busy processor: the busiest (CPU %d) worked %s of the time.", cpu.CPU,
					evidence.Percent(cpu.Busy())))
		} else {
			x.Confidence *= 0.8
		}
	}
	// Waking up takes its time too, but less than what is left to explain.
	if state, s := deepestSleep(e.s), longest.Seconds(); state > 0 && state < s/2 {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a sleeping processor: the deepest state takes %s to leave.",
			evidence.Seconds(state)))
	}
	moderationRemedy(x, near, far)
	return x
}

// longModeration is the notice of a host on which nothing was measured.
func longModeration(c card) *evidence.Finding {
	w, ok := c.interval()
	if !ok || w.adaptive || w.longest < longWait || !c.Carrier {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.InterruptModerationLatency, Severity: evidence.Notice, Where: where(c.s), Confidence: 0.5,
		Title: fmt.Sprintf("Card %s holds its interrupts back for %s, which every question and its answer may have to wait.", c.Name, evidence.Seconds(w.longest.Seconds())),
		Evidence: []evidence.Evidence{{Name: "wait of the interrupt", Value: w.longest.Seconds(), Unit: "seconds",
			Source: "ethtool -c: " + w.why + " (" + c.s.Side + ")"}},
		Rejected: []string{"Not measured: how much of a round trip this is; `linerate diagnose TARGET` tells."},
	}
	moderationRemedy(x, moderatedEnd{card: c, wait: w, waits: true})
	return x
}

// moduleWaits are what no knob of a running card shows.
const moduleWaits = " Modules of Intel's gigabit cards may have waits of their own (RxIntDelay, RxAbsIntDelay, TxAbsIntDelay), which ethtool does not show."

// moderationRemedy offers shorter waits at every end that waits.
func moderationRemedy(x *evidence.Finding, ends ...moderatedEnd) {
	x.Remedy.Text = "Let the cards interrupt sooner at every end that waits; one end alone leaves the other's wait in each transaction. Where bulk traffic matters " +
		"as well, prefer a mode that adapts."
	for _, e := range ends {
		if !e.waits {
			continue
		}
		if e.knob == "gro_flush_timeout" {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + e.Name + "/gro_flush_timeout"), Side: where(e.s),
				Levels: []knob.Value{"0"},
				Why:    "the kernel looks again only after this time"})
			continue
		}
		if v, ok := e.Coalesce["adaptive-rx"]; ok && v == 0 {
			x.Remedy.Add(evidence.Candidate{Knob: e.ethtool("coalesce.adaptive-rx"), Side: where(e.s),
				Levels: []knob.Value{"on"}, Why: "waits only while there is much to do"})
		}
		x.Remedy.Add(evidence.Candidate{Knob: e.ethtool("coalesce.rx-usecs"), Side: where(e.s),
			Levels: e.shorterWaits(), Why: e.why})
		// igb never had these parameters; of two ends it is said once.
		if (e.Driver == "e1000" || e.Driver == "e1000e") && !strings.HasSuffix(x.Remedy.Text, moduleWaits) {
			x.Remedy.Text += moduleWaits
		}
	}
	x.Remedy.Proof = "Requests and responses with the old and the new value by turns: the rate moves with 1 / wait; the time of bulk frames on the wire as a " +
		"control must not change."
}

// otherEnd is the one of two that is not e.
func otherEnd(e, near, far moderatedEnd) moderatedEnd {
	if e.card == near.card {
		return far
	}
	return near
}

// transactionTimes are what a question and its answer took: the median, and the mean.
func transactionTimes(r *evidence.Run) []spent {
	if r.Test != traffic.RR {
		return []spent{{took: r.RTT.P50, source: "ping before the load, median"}}
	}
	all := []spent{{took: float64(max(r.Streams, 1)) / r.TransactionsPerSec,
		source: "requests and responses, 1 / rate"}}
	if r.RTT != nil && r.RTT.P50 > 0 {
		all = append(all, spent{took: r.RTT.P50, source: "requests and responses, median"})
	}
	return all
}

// deepestSleep is the time that the deepest state of sleep which processors may use takes to leave;
// 0: not known.
func deepestSleep(s *evidence.Span) float64 {
	if s.Host == nil || s.Host.Idle == nil {
		return 0
	}
	var latency float64
	for _, state := range s.Host.Idle.States {
		if state.Disabled == "" {
			latency = max(latency, state.LatencySeconds)
		}
	}
	return latency
}

// near1 tells that a ratio is 1 within a tolerance.
func near1(ratio, tolerance float64) bool { return ratio >= 1-tolerance && ratio <= 1+tolerance }
