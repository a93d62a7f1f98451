package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// nearConductor conducts the near end: it decides when the window opens and when the test is over.
type nearConductor struct {
	conductor
	goodbye   func()          // sends test.stop, before the connections end
	interrupt <-chan struct{} // closed when the window must end at once; nil: nothing ends it
	farParts  func(part)      // takes the far end's interim results

	waitsOwn, waitsFar bool // which rates a steady state is looked for in: those of the receivers
	marked             bool // test.mark is sent
	warmedUp           time.Duration
	farSteady          bool
	farDone            bool
}

func newNearConductor(spec Spec, s *session, p *engine.Phase, side cast) *nearConductor {
	c := &nearConductor{conductor: newConductor(spec, s, p, side), goodbye: func() {}, farParts: func(part) {}}
	c.cpus = spec.NearCPUs
	// Only a receiver knows: what a sender hands to its kernel settles long before what arrives.
	c.waitsOwn, c.waitsFar = spec.receives(true), spec.receives(false)
	return c
}

// run conducts the test to its end. However it returns, all workers have ended and their
// connections are closed.
func (c *nearConductor) run(ctx context.Context) error {
	stop := c.begin()
	defer stop()
	defer c.goodbye() // before the workers stop: a connection that ends unannounced looks like a failure
	return c.conduct(ctx, c)
}

func (c *nearConductor) handle(m wire.Message) (over bool, err error) {
	// The phase is part of a rule: a second test.opened would open the window anew and discard what
	// was measured.
	switch {
	case m.Type == msgInterval:
		var p part
		if err := decode(m, &p); err != nil {
			return false, err
		}
		if !p.plausible() {
			return false, fmt.Errorf("%w: %s message with impossible figures", ErrProtocol, msgInterval)
		}
		c.farParts(p)
	case m.Type == msgSteady:
		c.farSteady = true
	case m.Type == msgOpened && c.marked && c.phase.Is() == engine.Warm:
		c.warmedUp = c.now()
		c.open()
	case m.Type == msgDone:
		c.farDone = true
	default:
		return false, c.conductor.handle(m)
	}
	return false, nil
}

// warm asks for the window when the warm-up is over. The far end reads its counters and opens its
// window before it answers, and this end reads its own before it asks. So the counters of either
// receiver are older than the first packet of the window.
func (c *nearConductor) warm(now time.Duration) {
	if c.marked || !c.warmEnough(now) {
		return
	}
	c.marked, c.window.asked = true, now
	c.window.before = c.counters()
	c.session.post(msgMark, nil)
}

// warmEnough reports whether the measured window should open at now.
func (c *nearConductor) warmEnough(now time.Duration) bool {
	if c.times.warmUp >= 0 {
		return now >= c.times.warmUp
	}
	if now >= c.times.search {
		c.warn("no steady state within %v: measured anyway", c.times.search)
		return true
	}
	return (!c.waitsOwn || c.steady) && (!c.waitsFar || c.farSteady)
}

func (c *nearConductor) due() time.Duration {
	if c.marked || c.times.warmUp < 0 {
		return never
	}
	return c.times.warmUp
}

func (c *nearConductor) moved(reading) error { return nil } // limits are the far end's
func (c *nearConductor) counted()            {}
func (c *nearConductor) finished() bool      { return c.over && c.farDone && c.settled() }

func (c *nearConductor) curtail() <-chan struct{} { return c.interrupt }

// curtailed ends the measured window of both ends now, as if no longer one had been asked for.
// Before the window there is nothing to keep.
func (c *nearConductor) curtailed() error {
	c.interrupt = nil
	switch c.phase.Is() {
	case engine.Warm:
		return context.Canceled
	case engine.Measured:
		lasted := c.now() - c.window.open.at
		c.warn("interrupted: measured for %v of %v", lasted.Round(10*time.Millisecond), c.times.window)
		c.times.window = lasted
		c.session.post(msgCurtail, nil)
	}
	return nil
}
