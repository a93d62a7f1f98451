package cards

import (
	"fmt"
	"math"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/moderation"
	"github.com/linerate/linerate/internal/traffic"
)

// The signature of an interrupt timer that no setting shows.
const (
	// slowerBackToBack is how many times longer than an echo with a pause before it a transaction
	// must take: on QEMU's 82540EM with InterruptThrottleRate=500 it was 1.16 ms to 0.56 ms.
	slowerBackToBack = 1.5
	// idleBetween is the most that the busiest CPU of either end may work. A CPU that is slow with
	// the protocol is busy, and makes transactions slower than echoes too.
	idleBetween = 0.6
	// heldBack is the most interrupts for each transaction that shows a timer: with idle CPUs every
	// frame that arrives interrupts, unless something holds the interrupt back.
	heldBack = 0.9
	// sameRate is how close the interrupts of two loads must be to stand at one rate, and gathered
	// how many frames one interrupt must bring then.
	sameRate, gathered = 0.15, 4.0
	// clockwork is how far the 90th percentile of transactions may be above their median, and
	// muchSlower the factor over spaced echoes, for the times alone to show a timer: QEMU's floor of
	// 128 µs makes them 256 µs, 260 µs at the 90th percentile, and 15 times an echo.
	clockwork, muchSlower = 1.1, 4.0
	// wholeTicks is how far a number of intervals between interrupts may be from a whole one,
	// wholeShare the same for the interrupts of each transaction, a mean, and mostTicks the largest
	// number of intervals that shows a timer. QEMU's 82540EM with a throttle of 500 at one end, in a
	// guest whose clock counts instructions: 502 interrupts and 367 transactions a second, which take
	// 2.015 ms (1.01 intervals), 4.016 ms (2.02) at the 90th percentile.
	wholeTicks, wholeShare, mostTicks = 0.06, 0.09, 4.5
	// smallFrame is the size of a frame with a small request in bytes, and explainedByRate how much of
	// the time its way over a slow link may explain.
	smallFrame, explainedByRate = 120, 0.2
)

// hiddenTimer finds a NIC that delays its interrupts although no setting says so: ethtool cannot
// read the delay of the cards before the 82545, nor of many others.
//
// A timer starts with an interrupt. An echo after a pause finds it run out and an idle NIC; the
// next of back-to-back transactions waits for it. Nothing else in a host makes a packet slower
// because the last one was a moment ago: a sleeping CPU does the opposite, a busy one is not idle,
// and a shaper delays packets but not interrupts. So the interrupts decide: fewer than
// transactions, or as many per second as under a load with many more frames, or transactions that
// last whole numbers of its ticks. A timer that runs once for each frame is not seen in these
// counts, but makes all transactions take the same time, many times that of an echo; the rate of
// the stream then excludes a shaper.
func hiddenTimer(c *evidence.Case, run, echo *evidence.Run) *evidence.Finding {
	if run.Test != traffic.RR || run.Streams > 1 || echo == nil || echo.RTT.P50 <= 0 {
		return nil
	}
	took, spaced := 1/run.TransactionsPerSec, echo.RTT.P50
	if took < slowerBackToBack*spaced || took-echo.RTT.Min < feltWait.Seconds() || took > longestBelieved.Seconds() {
		return nil
	}
	var found *timerSigns
	busy := -1.0
	for _, s := range evidence.SpansOf(c) {
		if s.Run != run {
			continue
		}
		cpu := s.BusiestBy(evidence.ClassRatios.Busy)
		if !cpu.Known {
			return nil
		}
		busy = max(busy, cpu.Busy())
		if s.End.Card == nil || s.End.Card.Virtual {
			continue
		}
		e := card{s.End.Card, s}
		if _, readable := e.Coalesce["rx-usecs"]; readable || e.deferred() {
			continue
		}
		t, ok := signsOf(c, e)
		slow := ok && took >= muchSlower*spaced
		t.steady, t.inTicks = slow && steadyTimes(c, run, took-spaced), slow && t.lastTicks(run)
		if (t.heldBack() || t.stands() || t.inTicks || t.steady) && (found == nil || t.each < found.each) {
			found = &t
		}
	}
	if found == nil || busy > idleBetween {
		return nil
	}
	return found.finding(took, spaced, echo.RTT.Min, busy)
}

// timerSigns are the interrupts of one NIC during transactions, and during another load.
type timerSigns struct {
	card
	perSecond float64 // interrupts
	each      float64 // interrupts for each transaction
	other     float64 // interrupts per second under the other load; 0: not known
	frames    float64 // that each of those brought
	steady    bool    // the transactions take the same time, which no rate explains
	inTicks   bool    // the transactions last whole numbers of intervals between interrupts
}

// heldBack reports fewer interrupts than transactions, stands as many as under another load.
func (t *timerSigns) heldBack() bool { return t.perSecond > 0 && t.each <= heldBack }
func (t *timerSigns) stands() bool {
	return t.other > 0 && t.frames >= gathered && near1(t.perSecond/t.other, sameRate)
}

// lastTicks reports whether most transactions last one interval between two interrupts or a small
// number of them, while a transaction on average has no whole number of interrupts. A throttle at
// one end alone shows so: a request waits for the next interrupt, and sometimes one more comes for
// a response that was sent. Without a timer the interrupts follow the frames, and their share of a
// transaction is whole.
func (t *timerSigns) lastTicks(run *evidence.Run) bool {
	if run.RTT == nil || t.perSecond <= 0 || whole(t.each, wholeShare) {
		return false
	}
	p50, p90 := run.RTT.P50*t.perSecond, run.RTT.P90*t.perSecond
	return p90 <= mostTicks && whole(p50, wholeTicks) && whole(p90, wholeTicks)
}

// whole reports whether a number is within a distance of a whole one above 0.
func whole(x, within float64) bool {
	return x > 0.5 && math.Abs(x-math.Round(x)) <= within
}

// steadyTimes reports whether the transactions of a run take the same time, and whether the rate of
// a stream excludes that a slow link makes them wait for that many seconds.
func steadyTimes(c *evidence.Case, run *evidence.Run, waited float64) bool {
	if run.RTT == nil || run.RTT.P50 <= 0 || run.RTT.P90 > clockwork*run.RTT.P50 {
		return false
	}
	for _, f := range evidence.FlowsOf(c) {
		if f.RateBitsPerSec > 0 {
			return 2*smallFrame*8/f.RateBitsPerSec <= explainedByRate*waited
		}
	}
	return false
}

// signsOf returns the interrupts of a NIC during transactions; false if they were not counted.
func signsOf(c *evidence.Case, e card) (timerSigns, bool) {
	all, _, known := e.interrupts()
	if !known || e.s.Seconds <= 0 {
		return timerSigns{}, false
	}
	t := timerSigns{card: e, perSecond: e.s.PerSecond(all)}
	t.each = t.perSecond / e.s.Run.TransactionsPerSec
	for _, s := range evidence.SpansOf(c) {
		if s.Side != e.s.Side || !s.Loaded() {
			continue
		}
		loaded := card{e.Interface, s}
		if n, _, ok := loaded.interrupts(); ok && n > 0 {
			t.other, t.frames = s.PerSecond(n), (loaded.frames("rx")+loaded.frames("tx"))/n
		}
	}
	return t, true
}

// finding describes the signs. Took and the others are in seconds, busy is a share.
func (t *timerSigns) finding(took, spaced, quickest, busy float64) *evidence.Finding {
	side := where(t.s)
	x := &evidence.Finding{
		Code: evidence.InterruptModerationLatency, Severity: evidence.Warning, Where: side,
		Title: fmt.Sprintf("NIC %s (%s) holds its interrupts back, although its driver reports no delay: "+
			"back to back a request and its response take %s, with a pause between an echo takes %s.",
			t.Name, t.s.Side, evidence.Seconds(took), evidence.Seconds(spaced)),
		Evidence: []evidence.Evidence{
			{Name: "time of one transaction, back to back", Value: took, Unit: "seconds",
				Source: "requests and responses, 1 / rate"},
			{Name: "time of an echo after a pause, median", Value: spaced, Unit: "seconds",
				Source: "ping before the load, median"},
			{Name: "quickest echo", Value: quickest, Unit: "seconds", Source: "ping before the load, smallest"},
			{Name: "interrupts of the card meanwhile", Value: t.perSecond, Unit: "per_second",
				Source: t.s.Source("/proc/stat intr")},
			{Name: "interrupts for each transaction", Value: t.each, Unit: "ratio", Source: "interrupts / transactions"},
		},
		Rejected: []string{
			fmt.Sprintf("Not a busy CPU: the busiest one of both ends worked for %s of the time.", evidence.Percent(busy)),
			fmt.Sprintf("Not the path: the same echo took %s with a pause before it.", evidence.Seconds(quickest)),
		},
		Confidence: evidence.Combine(0.4, evidence.When(took >= 2*spaced, 0.3), evidence.When(t.heldBack(), 0.4),
			evidence.When(t.stands() || t.inTicks, 0.4), evidence.When(t.steady, 0.3)),
	}
	if t.other > 0 {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "interrupts under the stream", Value: t.other, Unit: "per_second",
				Source: t.s.Source("/proc/stat intr")},
			evidence.Evidence{Name: "frames for each of those", Value: t.frames, Unit: "packets",
				Source: t.source("rx_packets + tx_packets")})
	}
	x.Remedy.Text = fmt.Sprintf("The driver %s shows no delay to ethtool: look for a parameter of its module "+
		"(modinfo), or for one in its configuration.", t.Driver)
	if form, err := moderation.AtLoad(moderation.Driver(t.Driver),
		moderation.Throttle{Mode: moderation.DynamicConservative}); err == nil {
		x.Remedy.Text = fmt.Sprintf("Only the parameter of the module sets this delay, for each port in turn: put "+
			"`%s` into %s and load the module again, which takes the link down.", form.Line, form.File)
		x.Remedy.Knobs = append(x.Remedy.Knobs, form.Knob)
	}
	x.Remedy.Proof = "Test requests and responses with the old and the new value alternately: the rate follows, and " +
		"echoes with pauses between them, the control, stay as they are."
	return x
}

// deferred reports whether the kernel itself delays polls of this NIC, which [card.interval] knows.
func (c card) deferred() bool { return c.NAPI != nil && c.NAPI.DeferHardIRQs > 0 }
