package traffic

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/stats"
	"github.com/linerate/linerate/internal/sys"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// binLength is the step of the receive series that the steady state is found in, and of the samples of struct tcp_info. A sample is one
	// getsockopt per connection; with 128 of them every 50 ms that is 2560 calls a second, well under one per cent of a CPU.
	binLength = 50 * time.Millisecond
	// steadyBins is the shortest series that can be called steady: half a second. That is several round trips on every path but a satellite's,
	// where slow start then shows as drift.
	steadyBins = 10
	// steadyDrift is the relative change over a series that is not taken for a trend, however sure it is.
	steadyDrift = 0.10
	// shortestPart keeps a rest of an interval that is only rounding from being reported as one.
	shortestPart = 5 * time.Millisecond
)

// part is one interval as one side saw it; parts of both sides with the same Measured and Index belong together.
type part struct {
	Measured     bool    `json:"measured"` // false: warm-up
	Index        int     `json:"index"`    // from 0 in the warm-up and again in the measured window
	Start        float64 `json:"start_seconds"`
	End          float64 `json:"end_seconds"` // since this side started
	Bytes        int64   `json:"bytes"`       // received here
	Transactions int64   `json:"transactions,omitempty"`
	RTTSum       float64 `json:"rtt_sum_seconds,omitempty"` // over Transactions
	RTT          float64 `json:"rtt_seconds,omitempty"`     // smoothed, mean over the connections that send from here
	Cwnd         float64 `json:"cwnd_bytes,omitempty"`      // sum over them
	Retransmits  uint64  `json:"retransmits_total,omitempty"`
}

// reading is what the workers had counted at one moment.
type reading struct {
	at           time.Duration
	bytes        int64 // received
	transactions int64
	rttNanos     int64
}

// window is an edge or the whole of the measured part.
type window struct {
	open, shut reading
	before     *host.Counters
	after      *host.Counters
	infos      []sys.TCPInfo    // by worker, at the opening edge
	ends       []sys.TCPInfo    // by worker, at the closing edge
	options    []engine.Buffers // by worker, at the closing edge: what socket options tell
}

// conductor runs one side of a test. One goroutine owns it; the workers share only their tallies and the phase.
type conductor struct {
	spec    Spec
	near    bool
	session *session
	sample  func() (*host.Counters, error)
	workers []*engine.Worker
	pinger  *echo.Pinger // body of one of them; nil: none
	phase   *engine.Phase
	failed  chan error

	base      time.Time
	last      reading // edge of the running interval
	binEdge   reading
	series    []float64 // receive rate or transaction rate per bin, since the start or, once measured, since the mark
	samples   []flowSamples
	parts     []part
	onPart    func(part) // own interim results
	index     int
	window    window
	warmUp    time.Duration // found, near side
	ownSteady bool
	farSteady bool
	farDone   bool
	farParts  func(part) // near: the other side's interim results
	heard     time.Duration
	nextBeat  time.Duration
	nextBin   time.Duration
	nextPart  time.Duration
	warnings  []string
}

func newConductor(spec Spec, near bool, s *session, sample func() (*host.Counters, error), workers []*engine.Worker, p *engine.Phase) *conductor {
	return &conductor{
		spec: spec, near: near, session: s, sample: sample, workers: workers, phase: p,
		failed:  make(chan error, len(workers)),
		samples: make([]flowSamples, len(workers)),
		onPart:  func(part) {}, farParts: func(part) {},
	}
}

// run starts the workers and conducts until both windows are over: the near side returns nil when it is time to stop, the far side when
// it was told to. However it returns, all workers have ended and their connections are closed.
func (c *conductor) run(ctx context.Context) error {
	// Before the workers start: each would otherwise wait for a logical processor in its first system call already. halt runs before
	// the processors go back, because deferred calls run last in first out.
	defer engine.LendProcessors(len(c.workers))()
	defer c.halt()
	cpus, err := sys.AllowedCPUs()
	if err != nil {
		cpus = nil // not told, or not on this system: run unpinned
	}
	c.base = time.Now()
	c.nextBeat, c.nextBin, c.nextPart = c.session.timing.beat, binLength, c.spec.Interval
	for i, w := range c.workers {
		go func() {
			if err := w.Run(engine.CPUOf(cpus, w.Role, i)); err != nil {
				c.failed <- gone(err)
			}
		}()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.session.ctx.Done():
			return c.session.cause()
		case err := <-c.failed:
			return c.explain(ctx, err)
		case m := <-c.session.in:
			c.heard = c.now()
			if over, err := c.handle(m); over || err != nil {
				return err
			}
		case <-timer.C:
			if err := c.tick(c.now()); err != nil {
				return err
			}
		}
		if c.near && c.phase.Is() == engine.Tail && c.farDone && c.settled() {
			return nil
		}
		timer.Reset(c.wakeAt() - c.now())
	}
}

// halt stops the workers, wakes the sleeping ones and waits for all.
func (c *conductor) halt() {
	// The phase first: a worker that is woken finds the test over and takes the end of its connection for no failure.
	c.phase.Set(engine.Stopped)
	for _, w := range c.workers {
		w.Wake()
	}
	// Closing only when the thread has ended: a descriptor that is closed under a blocked call may be given to somebody else before the call returns.
	for _, w := range c.workers {
		<-w.Done()
		w.Close()
	}
}

func (c *conductor) now() time.Duration { return time.Since(c.base) }

// settled tells whether the workers that end by themselves have: a pinger waits for its last answers.
func (c *conductor) settled() bool {
	for _, w := range c.workers {
		if w.Role != engine.Pinger {
			continue
		}
		select {
		case <-w.Done():
		default:
			return false
		}
	}
	return true
}

// explain waits a moment for the other side's own account of a connection that broke: "connection reset" is only its shadow.
func (c *conductor) explain(ctx context.Context, broken error) error {
	patient := time.NewTimer(c.session.timing.grace / 4)
	defer patient.Stop()
	for {
		select {
		case m := <-c.session.in:
			if m.Type == msgError || m.Type == msgStop {
				return unexpected(m)
			}
		case <-c.session.ctx.Done():
			return broken
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-patient.C:
			return broken
		}
	}
}

// handle acts on one message of the other side; over means that this side's part is played.
func (c *conductor) handle(m wire.Message) (over bool, err error) {
	switch {
	case m.Type == msgBeat:
	case m.Type == msgInterval && c.near:
		var p part
		if err := decode(m, &p); err != nil {
			return false, err
		}
		c.farParts(p)
	case m.Type == msgSteady && c.near:
		c.farSteady = true
	case m.Type == msgDone && c.near:
		c.farDone = true
	// The phase is part of each rule: a second mark would open the window anew and throw away what was measured.
	case m.Type == msgMark && !c.near && c.phase.Is() == engine.Warm:
		c.open()
	case m.Type == msgStop && !c.near && c.phase.Is() == engine.Tail:
		return true, nil
	default:
		return false, unexpected(m)
	}
	return false, nil
}

// wakeAt is the next moment at which something is due.
func (c *conductor) wakeAt() time.Duration {
	at := min(c.nextBin, c.nextBeat)
	switch c.phase.Is() {
	case engine.Warm:
		at = min(at, c.nextPart)
		if c.near && c.spec.WarmUp >= 0 {
			at = min(at, c.spec.WarmUp)
		}
	case engine.Measured:
		at = min(at, c.nextPart, c.window.open.at+c.spec.Duration)
	}
	return at
}

// tick does what is due at now.
func (c *conductor) tick(now time.Duration) error {
	if now >= c.nextBeat {
		c.nextBeat = now + c.session.timing.beat
		// A beat that finds 64 messages waiting is not missed: the channel is what is slow, and they are signs of life too.
		c.session.tryPost(msgBeat, nil)
		if quiet := now - c.heard; quiet > c.session.timing.silence {
			return fmt.Errorf("%w: silent for %v", ErrPeerGone, quiet.Round(time.Millisecond))
		}
	}
	if now >= c.nextBin {
		c.nextBin = now + binLength
		c.bin()
	}
	switch c.phase.Is() {
	case engine.Warm:
		if c.near && c.warmEnough(now) {
			c.warmUp = now
			// The message before the own window: reading the counters takes milliseconds, and the far window should not open later by them. The
			// two windows are still apart by half a round trip, which the tail covers at the other end.
			c.session.post(msgMark, nil)
			c.open()
			return nil
		}
	case engine.Measured:
		if now >= c.window.open.at+c.spec.Duration {
			c.shut()
			return nil
		}
	default:
		return nil
	}
	if now >= c.nextPart {
		// From the last edge that was due, not from now: being late once does not shift all later intervals.
		c.nextPart += c.spec.Interval
		c.observe()
		c.cut(c.read(), c.phase.Is() == engine.Measured)
	}
	return nil
}

// warmEnough decides on the near side when the measured window opens.
func (c *conductor) warmEnough(now time.Duration) bool {
	if c.spec.WarmUp >= 0 {
		return now >= c.spec.WarmUp
	}
	if now >= c.spec.steadyBound() {
		c.warn("no steady state within %v: measured all the same", c.spec.steadyBound())
		return true
	}
	// Only a receiver can tell: what a sender hands to its kernel settles long before what arrives.
	needOwn := c.spec.Test == RR || c.spec.Direction != Up
	needFar := c.spec.Test == Stream && c.spec.Direction != Down
	return (!needOwn || c.ownSteady) && (!needFar || c.farSteady)
}

func (c *conductor) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// read sums the tallies at this moment.
func (c *conductor) read() reading {
	// The tallies are read one after the other while they grow. With a reading per 50 ms at the least, the few microseconds between the
	// first and the last of them are less than the noise of the clock's own edges.
	r := reading{at: c.now()}
	for _, w := range c.workers {
		if w.Role == engine.Receiver {
			r.bytes += w.Bytes.Load()
		}
		r.transactions += w.Transactions.Load()
		r.rttNanos += w.RTTNanos.Load()
	}
	return r
}

// bin takes one step of the series and one sample of every connection.
func (c *conductor) bin() {
	c.observe()
	r := c.read()
	if c.phase.Is() > engine.Measured {
		return
	}
	// Divided by the time that really passed: on a busy machine the conductor wakes late, and a bin of 80 ms is no peak.
	elapsed := (r.at - c.binEdge.at).Seconds()
	if elapsed <= 0 {
		return
	}
	work := float64(r.bytes - c.binEdge.bytes)
	if c.spec.Test == RR {
		work = float64(r.transactions - c.binEdge.transactions)
	}
	c.series = append(c.series, work/elapsed)
	c.binEdge = r
	if c.phase.Is() == engine.Warm && c.spec.WarmUp < 0 && !c.ownSteady && steady(c.series) {
		c.ownSteady = true
		if !c.near {
			c.session.post(msgSteady, nil)
		}
	}
}

// observe takes one sample of every connection.
func (c *conductor) observe() {
	for i, w := range c.workers {
		if w.Conn == nil {
			continue
		}
		if info, err := w.Conn.Info(); err == nil {
			c.samples[i].add(info, c.phase.Is() == engine.Measured)
		}
	}
}

// steady tells whether a growing series has reached its steady state: data flow, the best cut (MSER) lies well inside the first half, not
// at its end, where the rule puts it while the series still settles, and what is left of the cut has no trend. The last condition is for
// slow start: a series that doubles every round trip looks to MSER like a long calm with an odd end.
func steady(series []float64) bool {
	n := len(series)
	// A last bin without data is a stall (a retransmission timeout is 200 ms and more, RFC 6298), in which everything looks calm.
	if n < steadyBins || series[n-1] == 0 {
		return false
	}
	cut := stats.SteadyFrom(series)
	if cut > n/3 {
		return false
	}
	drift := stats.LinearDrift(series[cut:])
	return math.Abs(drift.Relative) <= steadyDrift || math.Abs(drift.Score) < 1.96
}

// cut ends the running interval at r; inWindow says whether it belongs to the measured window.
func (c *conductor) cut(r reading, inWindow bool) {
	if r.at-c.last.at < shortestPart {
		return
	}
	p := part{
		Measured: inWindow, Index: c.index,
		Start: c.last.at.Seconds(), End: r.at.Seconds(),
		Bytes:        r.bytes - c.last.bytes,
		Transactions: r.transactions - c.last.transactions,
		RTTSum:       float64(r.rttNanos-c.last.rttNanos) / 1e9,
	}
	var flows float64
	for i, w := range c.workers {
		if info := c.samples[i].last; w.Role == engine.Sender && info.Length > 0 {
			flows++
			p.Retransmits += uint64(info.TotalRetrans - c.samples[i].cut) // wraps at 32 bits
			c.samples[i].cut = info.TotalRetrans
			p.RTT += float64(info.RTTMicros) / 1e6
			p.Cwnd += float64(info.SndCwndPackets) * float64(info.SndMSSBytes)
		}
	}
	if flows > 0 {
		p.RTT /= flows
	}
	c.index++
	c.last = r
	c.parts = append(c.parts, p)
	c.onPart(p)
}

// open begins the measured window: host counters first and the own tallies last, so that the counters cover at least the window.
func (c *conductor) open() {
	c.observe()
	c.cut(c.read(), false)
	c.window.before = c.counters()
	c.window.infos = c.infos()
	c.index, c.series = 0, c.series[:0]
	for i := range c.samples {
		c.samples[i].reset()
	}
	// From the change of the phase on, requesters and pingers record into their histograms; between it and the reading lie nanoseconds.
	c.phase.Set(engine.Measured)
	c.window.open = c.read()
	c.last, c.binEdge = c.window.open, c.window.open
	c.nextPart = c.window.open.at + c.spec.Interval
	c.nextBin = c.window.open.at + binLength
}

// shut ends the measured window, in the opposite order, and tells the other side.
func (c *conductor) shut() {
	c.window.shut = c.read()
	c.phase.Set(engine.Tail)
	c.window.ends = c.infos()
	c.window.options = make([]engine.Buffers, len(c.workers))
	for i, w := range c.workers {
		if w.Conn != nil {
			c.window.options[i] = w.Conn.Buffers()
		}
	}
	c.window.after = c.counters()
	c.cut(c.window.shut, true)
	if !c.near {
		c.session.post(msgDone, nil)
	}
}

func (c *conductor) infos() []sys.TCPInfo {
	infos := make([]sys.TCPInfo, len(c.workers))
	for i, w := range c.workers {
		if w.Conn == nil {
			continue
		}
		// A connection that broke at this moment leaves Length 0, and its evidence is left out rather than shown as zeros.
		if info, err := w.Conn.Info(); err == nil {
			infos[i] = info
			c.samples[i].last = info
		}
	}
	return infos
}

// counters reads the host's counters; without them the test still has a result, so a failure is a warning.
func (c *conductor) counters() *host.Counters {
	if c.sample == nil {
		return nil
	}
	counters, err := c.sample()
	if err != nil {
		c.warn("host counters not read: %v", err)
		return nil
	}
	return counters
}
