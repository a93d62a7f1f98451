package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// binLength is the step of the receive series that the steady state is found in, and of the
	// samples of struct tcp_info. A sample is one getsockopt per connection; with 128 of them every
	// 50 ms that is 2560 calls a second, well under one per cent of a CPU.
	binLength = 50 * time.Millisecond
	// crowding is the silence that every worker adds to what counts as the end of the peer: with
	// thousands of threads on a few CPUs the two conductors wait for each of them now and then.
	crowding = 20 * time.Millisecond
)

// conductor is what both ends of a test have in common: it runs the workers, samples them, keeps
// the channel alive, and closes the window and counts what belongs to it. One goroutine owns it;
// the workers share only their tallies and the phase. nearConductor and farConductor add what only
// one end does.
type conductor struct {
	sampler
	session *session
	times   times
	cpus    []int // for the workers, in turn; empty: chosen by the engine
	started []bool
	failed  chan error
	steady  bool // the rate of this end is steady
	over    bool // this end's window is shut and everything in it is counted

	quiet    time.Duration // since the last message, in beats of this end: a pause of it is one
	nextBeat time.Duration
	nextBin  time.Duration
	nextPart time.Duration
}

// times are the durations of a test.
type times struct {
	warmUp   time.Duration // <0: until the rate is steady
	search   time.Duration // longest search for a steady rate
	window   time.Duration // at most
	interval time.Duration
	silence  time.Duration // added to that of the session's timing, see Silence
}

func (s Spec) times() times {
	return times{warmUp: s.WarmUp, search: s.SteadyBound(), window: s.Duration, interval: s.Interval,
		silence: Silence(s)}
}

// role is what only the near or only the far conductor does.
type role interface {
	// handle acts on one message; over reports that this end has nothing left to do.
	handle(m wire.Message) (over bool, err error)
	// warm does at now what is due during the warm-up.
	warm(now time.Duration)
	// moved checks a reading and returns why the test must end, if it must.
	moved(r reading) error
	// counted is called once, when this end's window is over and counted.
	counted()
	// finished reports whether the workers may be stopped.
	finished() bool
	// due returns when something of its own is due during the warm-up.
	due() time.Duration
	// curtail is closed when the window must end early, which curtailed then does; nil: nothing
	// ends it.
	curtail() <-chan struct{}
	curtailed() error
}

func newConductor(spec Spec, s *session, p *engine.Phase, side cast) conductor {
	if side.ending == nil {
		side.ending = timed{}
	}
	n := len(side.workers)
	return conductor{
		sampler: sampler{
			cast: side, phase: p, transactions: !spec.Bulk(), flows: make([]tcpinfo.Flow, n), onPart: func(part) {},
		},
		session: s, times: spec.times(), started: make([]bool, n), failed: make(chan error, n),
	}
}

// begin starts the workers that wait for nothing. The returned function takes a last reading, stops
// all workers and closes their connections; call it once.
func (c *conductor) begin() (stop func() (parting reading)) {
	// Before the workers start: otherwise each would wait for a logical processor in its first
	// system call already.
	giveBack := engine.LendProcessors(c.threads())
	c.sampler.begin()
	c.nextBeat, c.nextBin, c.nextPart = c.session.timing.Beat, binLength, c.times.interval
	c.start(func(i int) bool { return !c.waits(i) })
	return func() reading {
		defer giveBack()
		return c.halt()
	}
}

// conduct runs until both windows are over: at the near end it returns nil when it is time to stop,
// at the far end when the near end has said so.
func (c *conductor) conduct(ctx context.Context, r role) error {
	defer c.session.beats()()
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
		case <-r.curtail():
			if err := r.curtailed(); err != nil {
				return err
			}
		case m := <-c.session.in:
			c.quiet = 0
			if over, err := r.handle(m); over || err != nil {
				return err
			}
		case <-timer.C:
			if err := c.tick(c.now(), r); err != nil {
				return err
			}
		}
		if r.finished() {
			return nil
		}
		timer.Reset(c.wakeAt(r) - c.now())
	}
}

// halt takes a last reading, stops the workers, wakes the sleeping ones and waits for all.
func (c *conductor) halt() (parting reading) {
	parting = c.read()
	// The phase first: a worker that is woken finds the test over and does not take the end of its
	// connection for a failure.
	c.phase.Set(engine.Stopped)
	for _, w := range c.workers {
		w.Wake()
	}
	// A connection is closed only after its thread has ended: the kernel may give a descriptor that
	// is closed under a blocked call to another file before the call returns.
	for i, w := range c.workers {
		if c.started[i] {
			<-w.Done()
		}
		w.Close()
	}
	return parting
}

// waits reports whether worker i waits for the window to open: what it sends belongs to the window
// to the last byte or packet, and the other end has read its counters by then.
func (c *conductor) waits(i int) bool { return c.held && c.workers[i].Role == engine.Sender }

// start lets workers run, each on its CPU.
func (c *conductor) start(which func(i int) bool) {
	allowed, err := sys.AllowedCPUs()
	if err != nil {
		allowed = nil // unknown, or not on this system: run unpinned
	}
	for i, w := range c.workers {
		if !which(i) {
			continue
		}
		c.started[i] = true
		cpu := c.place(i, allowed)
		go func() {
			if err := w.Run(cpu); err != nil {
				c.failed <- asGone(err)
			}
		}()
	}
}

// place returns the CPU for worker i; -1: none in particular.
func (c *conductor) place(i int, allowed []int) int {
	w := c.workers[i]
	switch {
	case w == c.beside:
		return -1 // on the CPU of a sender it would time how the kernel shares that CPU
	case len(c.cpus) > 0:
		return c.cpus[i%len(c.cpus)]
	}
	return w.Place(allowed, i)
}

// threads lets many streams share threads, and returns how many threads the workers need.
func (c *conductor) threads() int {
	if !c.share {
		return len(c.workers)
	}
	cpus := len(c.cpus)
	if cpus == 0 {
		allowed, _ := sys.AllowedCPUs() // unknown: one thread, which Multiplex makes of none
		cpus = len(allowed)
	}
	return engine.Multiplex(c.workers, cpus)
}

// settled reports whether the workers that end on their own have ended: a pinger waits for its last
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

// explain waits a moment for the reason that the other end gives for a broken connection, which
// explains more than "connection reset".
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

// handle acts on a message that either end may send.
func (c *conductor) handle(m wire.Message) error {
	if m.Type == msgBeat {
		return nil
	}
	if taken, err := c.ending.handle(c, m); taken || err != nil {
		return err
	}
	return unexpected(m)
}

// wakeAt returns the next moment at which something is due.
func (c *conductor) wakeAt(r role) time.Duration {
	at := min(c.nextBin, c.nextBeat)
	switch c.phase.Is() {
	case engine.Warm:
		at = min(at, c.nextPart, r.due())
	case engine.Measured:
		at = min(at, c.nextPart, c.window.open.at+c.times.window, c.ending.due())
	case engine.Tail:
		if !c.over {
			at = min(at, c.now()+drainStep)
		}
	}
	return at
}

// tick does what is due at now.
func (c *conductor) tick(now time.Duration, r role) error {
	if err := c.listen(now); err != nil {
		return err
	}
	if now >= c.nextBin {
		c.nextBin = now + binLength
		if err := c.bin(r); err != nil {
			return err
		}
	}
	switch c.phase.Is() {
	case engine.Warm:
		r.warm(now)
	case engine.Measured:
		if now >= c.window.open.at+c.times.window || c.ending.over(c, now) {
			return c.shut(r)
		}
	case engine.Tail:
		c.drain(now, r)
		return nil
	default:
		return nil
	}
	if now >= c.nextPart {
		// From the last edge that was due, not from now: one late interval does not shift all later
		// ones. Edges that passed meanwhile count, or the intervals of both ends would not meet again.
		edges := 1 + (now-c.nextPart)/c.times.interval
		c.nextPart += edges * c.times.interval
		c.cut(c.read(), c.phase.Is() == engine.Measured, int(edges))
	}
	return nil
}

// listen ends the test when the other end is silent for too long.
func (c *conductor) listen(now time.Duration) error {
	if now < c.nextBeat {
		return nil
	}
	c.nextBeat = now + c.session.timing.Beat
	c.quiet += c.session.timing.Beat
	if c.quiet > c.session.timing.Silence+c.times.silence+time.Duration(len(c.workers))*crowding {
		return fmt.Errorf("%w: silent for %v", ErrPeerGone, c.quiet)
	}
	return nil
}

// bin takes one step of the series and one sample of every connection.
func (c *conductor) bin(r role) error {
	reading := c.read()
	if err := r.moved(reading); err != nil || c.phase.Is() > engine.Measured {
		return err
	}
	c.sampler.bin(reading)
	if c.phase.Is() == engine.Warm && c.times.warmUp < 0 && !c.steady {
		c.steady = stats.IsSteady(c.series)
	}
	return nil
}

// open begins the measured window; its counters are read.
func (c *conductor) open() {
	c.sampler.open()
	c.nextPart = c.window.open.at + c.times.interval
	c.nextBin = c.window.open.at + binLength
	c.start(c.waits)
}

// shut ends the measured window.
func (c *conductor) shut(r role) error {
	reading := c.read()
	c.window.shut = reading
	if err := r.moved(reading); err != nil {
		return err
	}
	c.sampler.shut(reading)
	c.drain(reading.at, r)
	return nil
}

// drain waits for what is still under way after the window, and then reads the counters that belong
// to it.
func (c *conductor) drain(now time.Duration, r role) {
	if c.over || !c.ending.drained(c, now) {
		return
	}
	c.window.after = c.counters()
	c.over = true
	r.counted()
}
