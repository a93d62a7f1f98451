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
	// feltWait is the shortest delay worth a finding: the defaults of current drivers are 1 to 50
	// µs.
	feltWait = 50 * time.Microsecond
	// longWait is worth a notice even without a measurement: it is longer than the default of any
	// driver under light load.
	longWait = 250 * time.Microsecond
	// mostOfIt is the share of a transaction that the delay must make up to dominate it.
	mostOfIt = 0.5
	// someOfIt is the share from which on it is worth a notice. On a path of milliseconds the noise
	// hides a delay.
	someOfIt = 0.2
	// withinWait is the share of a delay that a transaction loses at least if an end waits. It is
	// not all of it: an answer needs no interrupt if it arrives while the driver still polls for
	// the previous frame, or after the timer has run out. Measured values are 1.00 on physical
	// NICs, and 0.36, 0.31 and 0.17 of 0.5, 2 and 10 ms on QEMU's e1000.
	withinWait = 0.1
	// onTheDot is how close a rate must be to 1 / delay to count as a plateau. A field measurement
	// had 8003.6 for 8004.6.
	onTheDot = 0.03
)

// moderationLatency finds a NIC that delays its interrupts, so that every request and its response
// wait for it.
//
// Arithmetic distinguishes it from a long path and from a CPU that sleeps or is busy: the setting
// gives the delay, and successive transactions take that much longer than the fastest echo, which
// met idle NICs, and hardly more. If a transaction takes much longer than the delays of both ends,
// something else limits it; if it takes much less, nothing waited.
func moderationLatency(c *evidence.Case) *evidence.Finding {
	var run, echo *evidence.Run
	for i := range c.Runs {
		// Transactions show it best, because they follow each other; an occasional echo meets an
		// idle NIC.
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
	if run == nil {
		return found
	}
	if len(ends) > 0 {
		if x := waitsForTimer(run, base, ends["near"], ends["far"]); x != nil {
			return x
		}
	}
	return hiddenTimer(c, run, echo)
}

// moderatedEnd is one end of a run with the delay of its NIC.
type moderatedEnd struct {
	card
	wait
	waits bool
}

// spent is how long a transaction took, and how much of it the delays explain.
type spent struct {
	took   float64 // seconds
	part   float64 // share of it spent waiting
	source string
}

// explained returns how much of a transaction's time the delays of both ends make up; false if
// nothing waited. base is the fastest echo, 0 if there was none.
//
// It examines both the median and the mean (1 / rate), and the better explained one counts:
// occasional stalls of a machine move the mean, and delays that not every transaction meets leave
// the median unchanged.
func explained(run *evidence.Run, base float64, longest, both time.Duration) (best spent, ok bool) {
	for _, x := range transactionTimes(run) {
		waited := min(longest.Seconds(), x.took)
		if x.took >= (1-onTheDot)*both.Seconds() {
			waited = both.Seconds() // the ends do not synchronise
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

// waitsForTimer compares what a transaction took with the delays of the NICs at both ends.
func waitsForTimer(run *evidence.Run, base float64, near, far moderatedEnd) *evidence.Finding {
	// The title names the longer delay; the evidence has both.
	e := near
	if far.longest > near.longest {
		e = far
	}
	// An adaptive driver uses its shortest delay under light load; only a longer test could show
	// that it does not.
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
		Title: fmt.Sprintf("NIC %s (%s) delays its interrupts by %s, and a request and its response take %s: "+
			"%.1f a second.",
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
	// A NIC whose timer starts with each interrupt keeps to this bound; emulated NICs and some
	// others let timely interrupts through and exceed it.
	if !adaptive && 1/took <= (1+onTheDot)*bound {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "most transactions per second that this allows one connection", Value: bound,
				Unit: "transactions_per_second", Source: "1 / longest wait"})
	}
	// A change at one end leaves the other end's delay: a field measurement went from 8003 to 23
	// 975 transactions only with both.
	if o := otherEnd(e, near, far); o.waits {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "wait of the interrupt at the " + o.s.Side + " end",
			Value: o.longest.Seconds(), Unit: "seconds",
			Source: "ethtool -c: " + o.why})
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not one end alone: the other one waits up to %s, and the delays add up unless they "+
				"synchronise.",
				evidence.Seconds(o.longest.Seconds())))
	}
	if base > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "quickest echo", Value: base, Unit: "seconds",
			Source: "ping before the load, smallest"})
	}
	x.Rejected = append(x.Rejected,
		fmt.Sprintf("Not the path alone: the delay makes up %s of the %s of a transaction.",
			evidence.Percent(part),
			evidence.Seconds(took)))
	// A saturated CPU answers late as well, but never at a constant time.
	if cpu := e.s.BusiestBy(evidence.ClassRatios.Busy); cpu.Known {
		if cpu.Busy() < evidence.FullProcessor {
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not a busy CPU: the busiest one (CPU %d) was busy for %s of the time.", cpu.CPU,
					evidence.Percent(cpu.Busy())))
		} else {
			x.Confidence *= 0.8
		}
	}
	// Waking up takes time too, but less than what remains to be explained.
	if state, s := deepestSleep(e.s), longest.Seconds(); state > 0 && state < s/2 {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a sleeping CPU: the deepest idle state takes %s to leave.",
			evidence.Seconds(state)))
	}
	moderationRemedy(x, near, far)
	return x
}

// longModeration returns the notice for a host without a measurement.
func longModeration(c card) *evidence.Finding {
	w, ok := c.interval()
	if !ok || w.adaptive || w.longest < longWait || !c.Carrier {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.InterruptModerationLatency, Severity: evidence.Notice, Where: where(c.s), Confidence: 0.5,
		Title: fmt.Sprintf("NIC %s delays its interrupts by %s, and every request and its response may have to "+
			"wait that long.", c.Name, evidence.Seconds(w.longest.Seconds())),
		Evidence: []evidence.Evidence{{Name: "wait of the interrupt", Value: w.longest.Seconds(), Unit: "seconds",
			Source: "ethtool -c: " + w.why + " (" + c.s.Side + ")"}},
		Rejected: []string{"Not measured: its share of a round trip; run `linerate diagnose TARGET`."},
	}
	moderationRemedy(x, moderatedEnd{card: c, wait: w, waits: true})
	return x
}

// moduleWaits names delays that no knob of a running NIC shows.
const moduleWaits = " The driver modules of Intel's gigabit NICs may have delays of their own (RxIntDelay, " +
	"RxAbsIntDelay, TxAbsIntDelay), which ethtool does not show."

// moderationRemedy proposes shorter delays at every end that waits.
func moderationRemedy(x *evidence.Finding, ends ...moderatedEnd) {
	x.Remedy.Text = "Let the NICs interrupt sooner at every end that waits; a change at one end leaves the delay " +
		"of the other in each transaction. If bulk traffic matters as well, prefer an adaptive mode."
	for _, e := range ends {
		if !e.waits {
			continue
		}
		if e.knob == "gro_flush_timeout" {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + e.Name + "/gro_flush_timeout"), Side: where(e.s),
				Levels: []knob.Value{"0"},
				Why:    "the kernel polls again only after this time"})
			continue
		}
		if v, ok := e.Coalesce["adaptive-rx"]; ok && v == 0 {
			x.Remedy.Add(evidence.Candidate{Knob: e.ethtool("coalesce.adaptive-rx"), Side: where(e.s),
				Levels: []knob.Value{"on"}, Why: "waits only under heavy load"})
		}
		x.Remedy.Add(evidence.Candidate{Knob: e.ethtool("coalesce.rx-usecs"), Side: where(e.s),
			Levels: e.shorterWaits(), Why: e.why})
		// igb never had these parameters; the sentence appears once for two ends.
		if (e.Driver == "e1000" || e.Driver == "e1000e") && !strings.HasSuffix(x.Remedy.Text, moduleWaits) {
			x.Remedy.Text += moduleWaits
		}
	}
	x.Remedy.Proof = "Test requests and responses with the old and the new value alternately: " +
		"the rate follows 1 / delay; the time of bulk frames on the wire, the control, must not change."
}

// otherEnd returns the end of the two that is not e.
func otherEnd(e, near, far moderatedEnd) moderatedEnd {
	if e.card == near.card {
		return far
	}
	return near
}

// transactionTimes returns the median and the mean time of a request and its response.
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

// deepestSleep returns the exit latency of the deepest idle state that CPUs may use, in seconds; 0
// if unknown.
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

// near1 reports whether a ratio is 1 within a tolerance.
func near1(ratio, tolerance float64) bool { return ratio >= 1-tolerance && ratio <= 1+tolerance }
