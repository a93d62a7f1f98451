package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// binLength is the step of the receive series that the steady state is found in, and of the
	// samples of struct tcp_info. A sample is one getsockopt per connection; with 128 of them every
	// 50 ms that is 2560 calls a second, well under one per cent of a CPU.
	binLength = 50 * time.Millisecond
	// crowding is what every worker adds to the silence that is no end: with thousands of threads
	// on a few CPUs the two conductors wait for each of them, here and there.
	crowding = 20 * time.Millisecond
	// shortestPart keeps a rest of an interval that is only rounding from being reported as one.
	shortestPart = 5 * time.Millisecond
)

// part is one interval as one side saw it; parts of both sides with the same Measured and Index
// belong together.
type part struct {
	Measured     bool    `json:"measured"` // false: warm-up
	Index        int     `json:"index"`    // from 0 in the warm-up and again in the measured window
	Start        float64 `json:"start_seconds"`
	End          float64 `json:"end_seconds"` // since this side started
	Bytes        int64   `json:"bytes"`       // received here
	Transactions int64   `json:"transactions,omitempty"`
	RTTSum       float64 `json:"rtt_sum_seconds,omitempty"` // over Transactions
	Packets      int64   `json:"packets,omitempty"`         // datagrams received here
	Missing      int64   `json:"missing,omitempty"`         // datagrams that came not, so far; less than 0 when more of older ones came late
	Probes       int64   `json:"probes,omitempty"`          // answered pings beside the test
	ProbeSum     float64 `json:"probe_sum_seconds,omitempty"`

	// What the kernel says of the connections that send from here: times and shares are means over
	// them, the others sums.
	RTT           float64 `json:"rtt_seconds,omitempty"` // smoothed
	RTTVar        float64 `json:"rtt_variation_seconds,omitempty"`
	Cwnd          float64 `json:"cwnd_bytes,omitempty"`
	Ssthresh      float64 `json:"ssthresh_bytes,omitempty"`
	DeliveryRate  float64 `json:"delivery_rate_bits_per_second,omitempty"`
	RwndLimited   float64 `json:"rwnd_limited_seconds,omitempty"`
	SndbufLimited float64 `json:"sndbuf_limited_seconds,omitempty"`
	Retransmits   uint64  `json:"retransmits_total,omitempty"`
}

// plausible tells whether an interval of the other side can be; the figures of one that cannot
// would make infinities of rates.
func (p part) plausible() bool {
	const most = 1e18 // of anything, in any unit
	for _, f := range []float64{
		p.Start, p.RTTSum, p.ProbeSum, p.RTT, p.RTTVar, p.Cwnd, p.Ssthresh, p.DeliveryRate, p.RwndLimited,
		p.SndbufLimited,
	} {
		if f < 0 || f > most {
			return false
		}
	}
	return p.End-p.Start >= shortestPart.Seconds()/1000 && p.End < most && p.Bytes >= 0 && p.Transactions >= 0 &&
		p.Packets >= 0 && p.Probes >= 0
}

// reading is what the workers had counted at one moment.
type reading struct {
	at           time.Duration
	bytes        int64 // received
	sent         int64
	packets      int64 // received
	missing      int64 // datagrams that came not, so far
	verified     int64
	transactions int64
	rttNanos     int64
	probes       int64 // the same of the pings beside the test
	probeNanos   int64
}

// window is an edge or the whole of the measured part.
type window struct {
	open, shut reading
	full       time.Duration // when all of an amount was there; 0: it is not, or none was asked for
	before     *host.Counters
	after      *host.Counters
}

// conductor runs one side of a test. One goroutine owns it; the workers share only their tallies
// and the phase.
type conductor struct {
	spec    Spec
	near    bool
	session *session
	sample  func() (*host.Counters, error)
	workers []*engine.Worker
	pinger  *echo.Pinger // body of one of them; nil: none
	phase   *engine.Phase
	failed  chan error
	udp     *datagram.Exchange // of a udp test; nil: it is none
	pathMTU int                // bytes, that the kernel believes in, of a udp test; 0: not known
	told    bool               // of a udp test: the other side knows what was sent here
	limits  Limits             // that the far side holds the test to while it runs, see exceeded
	spend   func(int64) error  // charges the far side's moved bytes to somebody, see charge; nil: nobody pays
	charged int64              // bytes that spend was told of
	started []bool             // by worker

	base    time.Time
	first   reading // before anything moved
	last    reading // edge of the running interval
	parting reading // when the workers were told to stop
	binEdge reading
	// receive rate or transaction rate per bin, since the start or, once measured, since the mark
	series    []float64
	flows     []tcpinfo.Flow // by worker
	parts     []part
	onPart    func(part) // own interim results
	index     int
	window    window
	warmUp    time.Duration // found, near side
	ownSteady bool
	farSteady bool
	marked    bool // near: test.mark went out
	markedAt  time.Duration
	// near: tells the other side that the test is over, before the connections end; nil: nothing to
	// tell
	goodbye  func()
	farDone  bool
	peerFull bool            // of an amount: the other side has all that this one sends
	curtail  <-chan struct{} // near: closed when the measured window shall end at once
	over     bool            // this side's window is closed and everything of it counted
	farParts func(part)      // near: the other side's interim results
	heard    time.Duration
	nextBeat time.Duration
	nextBin  time.Duration
	nextPart time.Duration
	nextLook time.Duration // at whether all of an amount is there
	warnings []string
}

func newConductor(spec Spec, near bool, s *session, sample func() (*host.Counters, error), side cast,
	p *engine.Phase) *conductor {
	return &conductor{
		spec: spec, near: near, session: s, sample: sample, workers: side.workers, pinger: side.pinger, udp: side.udp,
		pathMTU: side.pathMTU, phase: p,
		failed: make(chan error, len(side.workers)),
		flows:  make([]tcpinfo.Flow, len(side.workers)), started: make([]bool, len(side.workers)),
		onPart: func(part) {}, farParts: func(part) {},
	}
}

// run starts the workers and conducts until both windows are over: the near side returns nil when
// it is time to stop, the far side when it was told to. However it returns, all workers have ended
// and their connections are closed.
func (c *conductor) run(ctx context.Context) error {
	// Before the workers start: each would otherwise wait for a logical processor in its first
	// system call already. halt runs before the processors go back, because deferred calls run last
	// in first out.
	defer engine.LendProcessors(c.threads())()
	defer c.settleUp()
	defer c.halt()
	if c.goodbye != nil {
		defer c.goodbye() // first of all: a connection that ends without a word before looks like a failure
	}
	c.base = time.Now()
	// What the kernel counted before, such as the first bytes of a data connection that say whose
	// it is, is in no interval.
	c.first = c.read()
	c.last, c.binEdge = c.first, c.first
	c.nextBeat, c.nextBin, c.nextPart = c.session.timing.Beat, binLength, c.spec.Interval
	c.start(func(i int) bool { return !c.held(i) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.session.done():
			return c.session.cause()
		case err := <-c.failed:
			return c.explain(ctx, err)
		case <-c.curtail:
			if err := c.cutShort(); err != nil {
				return err
			}
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
		if c.near && c.over && c.farDone && c.settled() {
			return nil
		}
		timer.Reset(c.wakeAt() - c.now())
	}
}

// halt takes a last reading, stops the workers, wakes the sleeping ones and waits for all.
func (c *conductor) halt() {
	c.parting = c.read()
	// The phase first: a worker that is woken finds the test over and takes the end of its
	// connection for no failure.
	c.phase.Set(engine.Stopped)
	for _, w := range c.workers {
		w.Wake()
	}
	// Closing only when the thread has ended: a descriptor that is closed under a blocked call may
	// be given to somebody else before the call returns.
	for i, w := range c.workers {
		if c.started[i] {
			<-w.Done()
		}
		w.Close()
	}
}

// held tells whether worker i waits for the window to open: what it sends belongs to the window to
// the last byte or packet, and the other side has read its counters by then.
func (c *conductor) held(i int) bool {
	return c.workers[i].Role == engine.Sender && (c.spec.Bytes > 0 || c.udp != nil && c.spec.WarmUp == 0)
}

// start lets workers run, each on its CPU.
func (c *conductor) start(which func(i int) bool) {
	allowed, err := sys.AllowedCPUs()
	if err != nil {
		allowed = nil // not told, or not on this system: run unpinned
	}
	for i, w := range c.workers {
		if !which(i) {
			continue
		}
		c.started[i] = true
		cpu := placeOf(c.spec, w, i, c.near, allowed)
		go func() {
			if err := w.Run(cpu); err != nil {
				c.failed <- asGone(err)
			}
		}()
	}
}

func (c *conductor) now() time.Duration { return time.Since(c.base) }

// settled tells whether the workers that end by themselves have: a pinger waits for its last
// answers.
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

// explain waits a moment for the other side's own account of a connection that broke: "connection
// reset" is only its shadow.
func (c *conductor) explain(ctx context.Context, broken error) error {
	patient := time.NewTimer(c.session.timing.Grace / 4)
	defer patient.Stop()
	for {
		select {
		case m := <-c.session.in:
			if m.Type == msgError || m.Type == msgStop {
				return unexpected(m)
			}
		case <-c.session.done():
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
		if !p.plausible() {
			return false, fmt.Errorf("%w: %s message with impossible figures", ErrProtocol, msgInterval)
		}
		c.farParts(p)
	case m.Type == msgSteady && c.near:
		c.farSteady = true
	case m.Type == msgDone && c.near:
		c.farDone = true
	// The phase is part of each rule: a second mark would open the window anew and throw away what
	// was measured.
	case m.Type == msgMark && !c.near && c.phase.Is() == engine.Warm:
		c.window.before = c.counters()
		c.open()
		c.session.post(msgOpened, nil)
	case m.Type == msgOpened && c.near && c.marked && c.phase.Is() == engine.Warm:
		c.warmUp = c.now()
		c.open()
	case m.Type == msgFull && c.spec.Bytes > 0 && c.spec.Test == Stream && c.phase.Is() >= engine.Measured:
		c.peerFull = true
	case m.Type == msgCurtail && !c.near && c.phase.Is() == engine.Measured:
		c.spec.Duration = c.now() - c.window.open.at
	case m.Type == msgCurtail && !c.near && c.phase.Is() == engine.Tail: // its time was over anyway
	case m.Type == msgSent && c.udp != nil && c.phase.Is() >= engine.Measured:
		var b sentBody
		if err := decode(m, &b); err != nil {
			return false, err
		}
		if err := c.udp.Hear(b.Streams); err != nil {
			return false, fmt.Errorf("%w: %w", ErrProtocol, err)
		}
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
		if c.near && c.spec.WarmUp >= 0 && !c.marked {
			at = min(at, c.spec.WarmUp)
		}
	case engine.Measured:
		at = min(at, c.nextPart, c.window.open.at+c.spec.Duration)
		if c.spec.Bytes > 0 {
			at = min(at, c.nextLook)
		}
	case engine.Tail:
		if !c.over {
			at = min(at, c.now()+drainStep)
		}
	}
	return at
}

// tick does what is due at now.
func (c *conductor) tick(now time.Duration) error {
	if now >= c.nextBeat {
		c.nextBeat = now + c.session.timing.Beat
		// A beat that finds 64 messages waiting is not missed: the channel is what is slow, and
		// they are signs of life too.
		c.session.tryPost(msgBeat, nil)
		if quiet := now - c.heard; quiet > c.session.timing.Silence+Silence(c.spec)+
			time.Duration(len(c.workers))*crowding {
			return fmt.Errorf("%w: silent for %v", ErrPeerGone, quiet.Round(time.Millisecond))
		}
	}
	if now >= c.nextBin {
		c.nextBin = now + binLength
		if err := c.bin(); err != nil {
			return err
		}
	}
	switch c.phase.Is() {
	case engine.Warm:
		if c.near && !c.marked && c.warmEnough(now) {
			// The far side reads its counters and opens its window before it answers, and this side
			// has read its own before it asks: whoever receives, its counters are older than the
			// first packet of the window.
			c.marked, c.markedAt = true, now
			c.window.before = c.counters()
			c.session.post(msgMark, nil)
			return nil
		}
	case engine.Measured:
		if c.windowOver(now) {
			return c.shut()
		}
	case engine.Tail:
		c.drain(now)
		return nil
	default:
		return nil
	}
	if now >= c.nextPart {
		// From the last edge that was due, not from now: being late once does not shift all later
		// intervals.
		c.nextPart += c.spec.Interval
		c.cut(c.read(), c.phase.Is() == engine.Measured)
	}
	return nil
}

// warmEnough decides on the near side when the measured window opens.
func (c *conductor) warmEnough(now time.Duration) bool {
	if c.spec.WarmUp >= 0 {
		return now >= c.spec.WarmUp
	}
	if now >= c.spec.SteadyBound() {
		c.warn("no steady state within %v: measured all the same", c.spec.SteadyBound())
		return true
	}
	// Only a receiver can tell: what a sender hands to its kernel settles long before what arrives.
	needOwn := !c.spec.Bulk() || c.spec.Direction != Up
	needFar := c.spec.Bulk() && c.spec.Direction != Down
	return (!needOwn || c.ownSteady) && (!needFar || c.farSteady)
}

func (c *conductor) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// bin takes one step of the series and one sample of every connection.
func (c *conductor) bin() error {
	r := c.read()
	if err := c.exceeded(r); err != nil {
		return err
	}
	if c.phase.Is() > engine.Measured {
		return nil
	}
	// Divided by the time that really passed: on a busy machine the conductor wakes late, and a bin
	// of 80 ms is no peak.
	elapsed := (r.at - c.binEdge.at).Seconds()
	if elapsed <= 0 {
		return nil
	}
	work := float64(r.bytes - c.binEdge.bytes)
	if !c.spec.Bulk() {
		work = float64(r.transactions - c.binEdge.transactions)
	}
	c.series = append(c.series, work/elapsed)
	c.binEdge = r
	if c.phase.Is() == engine.Warm && c.spec.WarmUp < 0 && !c.ownSteady && stats.IsSteady(c.series) {
		c.ownSteady = true
		if !c.near {
			c.session.post(msgSteady, nil)
		}
	}
	return nil
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
		Packets:      r.packets - c.last.packets,
		Missing:      r.missing - c.last.missing,
		Probes:       r.probes - c.last.probes,
		ProbeSum:     float64(r.probeNanos-c.last.probeNanos) / 1e9,
	}
	var flows float64
	for i, w := range c.workers {
		f, ok := c.flows[i].Cut()
		if !ok || w.Role != engine.Sender {
			continue
		}
		flows++
		p.RTT += f.RTTSeconds
		p.RTTVar += f.RTTVarSeconds
		p.Cwnd += f.CwndBytes
		p.Ssthresh += f.SsthreshBytes
		p.DeliveryRate += f.DeliveryRateBitsPerSec
		p.RwndLimited += f.RwndLimitedSeconds
		p.SndbufLimited += f.SndbufLimitedSeconds
		p.Retransmits += f.RetransmittedSegments
	}
	if flows > 0 {
		p.RTT, p.RTTVar = p.RTT/flows, p.RTTVar/flows
		p.RwndLimited, p.SndbufLimited = p.RwndLimited/flows, p.SndbufLimited/flows
	}
	c.index++
	c.last = r
	c.parts = append(c.parts, p)
	c.onPart(p)
}

// open begins the measured window. The host's counters were read before and the own tallies come
// last, so that the counters cover at least the window.
func (c *conductor) open() {
	c.cut(c.read(), false)
	c.index, c.series = 0, c.series[:0]
	// From the change of the phase on, requesters and pingers record into their histograms and
	// senders flag their datagrams; between it and the reading lie microseconds.
	c.phase.Set(engine.Measured)
	c.window.open = c.read()
	for i := range c.flows {
		c.flows[i].Open()
	}
	c.last, c.binEdge = c.window.open, c.window.open
	c.nextPart = c.window.open.at + c.spec.Interval
	c.nextBin = c.window.open.at + binLength
	c.start(c.held)
}

// shut ends the measured window, in the opposite order.
func (c *conductor) shut() error {
	c.window.shut = c.read()
	if err := c.exceeded(c.window.shut); err != nil {
		return err
	}
	c.phase.Set(engine.Tail)
	for i, w := range c.workers {
		if w.Conn != nil {
			c.flows[i].Shut(w.Conn.Buffers())
		}
	}
	c.cut(c.window.shut, true)
	c.drain(c.window.shut.at)
	return nil
}

// finish reads the counters that belong to the closed window and tells the other side.
func (c *conductor) finish() {
	c.window.after = c.counters()
	c.over = true
	if !c.near {
		c.session.post(msgDone, nil)
	}
}
