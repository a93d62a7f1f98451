package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

const (
	// A look at whether all of an amount is there comes after half the time that the rest will
	// take, so that some ten of them find the end within shortestLook, which is 1 % of what 25 MB
	// take at 10 Gb/s.
	shortestLook = 200 * time.Microsecond
	longestLook  = 10 * time.Millisecond
	// shortAmount is a time of an amount in which the two ends' opening their windows one after the
	// other is no small part.
	shortAmount = 10 * shortestLook
	// drainStep is how often the end of a udp test is looked for.
	drainStep = 10 * time.Millisecond
)

// receives and sends tell what this side does in a test of bulk data.
func (c *conductor) receives() bool {
	return c.near && c.spec.Direction != Up || !c.near && c.spec.Direction != Down
}

func (c *conductor) sends() bool {
	return c.near && c.spec.Direction != Down || !c.near && c.spec.Direction != Up
}

// windowOver tells at now whether the measured window has done its work: its time is over, or all
// of an amount is where it belongs.
func (c *conductor) windowOver(now time.Duration) bool {
	switch {
	case now >= c.window.open.at+c.spec.Duration:
		return true
	case c.spec.Bytes == 0:
		return false
	case c.udp != nil:
		// What was lost never comes, so it is the senders that say when all is said.
		c.nextLook = now + longestLook/4
		return c.tellSent() && (!c.udp.Receives() || c.udp.Heard())
	}
	c.look(now)
	return (!c.receives() || c.window.full > 0) && (!c.sends() || c.peerFull)
}

// cutShort ends the measured window of both sides now, as if no longer one had been asked for.
// Before it there is nothing to keep.
func (c *conductor) cutShort() error {
	c.curtail = nil
	switch c.phase.Is() {
	case engine.Warm:
		return context.Canceled
	case engine.Measured:
		lasted := c.now() - c.window.open.at
		c.warn("interrupted: measured for %v of %v", lasted.Round(10*time.Millisecond), c.spec.Duration)
		c.spec.Duration = lasted
		c.session.post(msgCurtail, nil)
	}
	return nil
}

// look finds out whether all of an amount has arrived here.
func (c *conductor) look(now time.Duration) {
	if now < c.nextLook || c.window.full > 0 || !c.receives() {
		c.nextLook = max(c.nextLook, now+longestLook)
		return
	}
	r := c.read()
	got := r.bytes - c.first.bytes // what the far side sent before this one opened its window is part of it
	if got >= c.spec.Bytes {
		c.window.full = r.at
		c.session.post(msgFull, nil)
		return
	}
	wait := longestLook
	if elapsed := r.at - c.window.open.at; got > 0 {
		wait = min(wait, time.Duration(float64(elapsed)*float64(c.spec.Bytes-got)/float64(got)/2))
	}
	c.nextLook = r.at + max(shortestLook, wait)
}

// drain follows what is still under way after the window has closed. Streams have nothing of the
// kind: what has not arrived in time does not count.
func (c *conductor) drain(now time.Duration) {
	if c.over {
		return
	}
	if c.udp == nil {
		c.finish()
		return
	}
	if c.tellSent() && c.udp.Drained(now) {
		c.finish()
	}
}

// tellSent tells the other side what was sent, once, when all of it is; false: it is not yet.
func (c *conductor) tellSent() bool {
	if !c.told && c.udp.Idle() {
		c.told = true
		if c.udp.Sends() {
			c.session.post(msgSent, sentBody{c.udp.Tell()})
		}
	}
	return c.told
}

// exceeded tells when the other side moves more than this host allows, whatever its Spec has
// promised; only the far side is set limits.
func (c *conductor) exceeded(r reading) error {
	// The purse comes first: whose budget is used up gets to read that, and not the bound that
	// follows from what was left of it.
	if err := c.charge(r); err != nil {
		return fmt.Errorf("%w: %w", errRefusing, err)
	}
	moved := max(r.bytes-c.first.bytes, r.sent)
	if most := c.limits.MaxBytes; most > 0 && moved > most {
		return fmt.Errorf("%w: more than the %d bytes this host allows", errRefusing, most)
	}
	// A second's worth may come at once, since buffers on the way fill and empty, and headers of
	// others are no payload of the test.
	if most := c.limits.MaxBitsPerSecond; most > 0 && c.spec.Bulk() && float64(moved)*8 > most*1.1*(r.at.Seconds()+1) {
		return fmt.Errorf("%w: more than the %v this host allows", errRefusing, unit.BitRate(most))
	}
	if most := c.limits.MaxPacketsPerSecond; most > 0 && float64(r.packets) > most*1.1*(r.at.Seconds()+1) {
		return fmt.Errorf("%w: more than the %.6g packets per second this host allows", errRefusing, most)
	}
	return nil
}

// charge hands on what was moved since it was last called. Transactions count with the payload of
// both messages.
func (c *conductor) charge(r reading) error {
	if c.spend == nil {
		return nil
	}
	moved := r.bytes - c.first.bytes + r.sent - c.first.sent
	moved += (r.transactions - c.first.transactions) * int64(c.spec.RequestBytes+c.spec.ResponseBytes)
	n := max(0, moved-c.charged)
	c.charged += n
	return c.spend(n)
}

// settleUp charges what was moved since the last look, however the test ended: a near side that
// stops early, again and again, would else move much for nothing. It is too late to end the test
// for it, so an error is of no consequence here; the next test meets it.
//
// It comes after [conductor.halt], as what a call was still moving is in no count before the call
// returns. The connections are closed by then, so what came in is that of the last reading.
func (c *conductor) settleUp() {
	if c.spend == nil {
		return
	}
	r := c.parting
	r.sent, r.transactions = 0, 0
	for _, w := range c.workers {
		switch {
		case w.Role == engine.Sender:
			r.sent += w.Bytes.Load()
		case w.Role == engine.Pinger && c.spec.Test != Ping: // beside the test, and no part of it
		default:
			r.transactions += w.Transactions.Load()
		}
	}
	_ = c.charge(r)
}

// placeOf is the CPU for worker w with this index; -1: none in particular.
func placeOf(s Spec, w *engine.Worker, index int, near bool, allowed []int) int {
	list := s.FarCPUs
	if near {
		list = s.NearCPUs
	}
	switch {
	case w.Role == engine.Pinger && s.Test != Ping:
		return -1 // on the CPU of a sender it would time how the kernel shares that CPU
	case len(list) > 0:
		return list[index%len(list)]
	}
	return w.Place(allowed, index)
}

// threads lets many streams share threads, and tells how many threads the workers need.
func (c *conductor) threads() int {
	// The senders of an amount start one by one, when the window opens; those of a shared thread
	// start together.
	if c.spec.Test != Stream || c.spec.Bytes > 0 {
		return len(c.workers)
	}
	cpus := len(c.spec.FarCPUs)
	if c.near {
		cpus = len(c.spec.NearCPUs)
	}
	if cpus == 0 {
		allowed, _ := sys.AllowedCPUs() // not told: one thread, which Multiplex makes of none
		cpus = len(allowed)
	}
	return engine.Multiplex(c.workers, cpus)
}
