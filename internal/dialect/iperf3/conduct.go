package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// bytesAckedEnd is the length of struct tcp_info with tcpi_bytes_acked (Linux 4.1).
const bytesAckedEnd = 128

// reading is what this end knows to have been moved at one moment.
type reading struct {
	at      time.Duration // since the start
	up      int64         // TCP: acknowledged, where the kernel reports that; otherwise handed to the kernel
	down    int64         // received
	packets int64         // received
}

func (c *client) read() reading {
	r := reading{at: c.load.now()}
	for _, f := range c.load.flows {
		n := f.worker.Bytes.Load()
		switch {
		case !f.sends:
			r.down += n
			r.packets += f.worker.Packets.Load()
		case f.worker.Conn != nil && f.tcp.Last.Has(bytesAckedEnd):
			r.up += int64(f.tcp.Last.BytesAcked)
		default:
			r.up += n
		}
	}
	return r
}

// play lets the data flow until the time is over or the amount has been moved.
func (c *client) play(ctx context.Context) error {
	l := &c.load
	c.startedAt = time.Now()
	// Before anything moves: data that moved between the start and a later reading would be in no
	// interval and in no result.
	l.observe()
	c.last = c.read()
	c.last.at = 0
	c.marked = c.last
	l.start(l.p.places(c.spec.NearCPUs))
	c.next = c.c.listen(24 * time.Hour) // the run has its own end; this is only a bound
	nextCut := c.spec.Interval          // since the start, as all times here
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case st := <-c.next:
			c.next = nil
			return c.unexpected(st)
		case broken := <-l.failed:
			return c.explain(ctx, broken)
		case <-timer.C:
		}
		now := l.now()
		if !l.measuring && now >= l.p.Omit {
			// The warm-up's last interval ends here, however short it is; the intervals of the
			// measured part start here.
			l.observe()
			c.cut(c.read())
			l.measure()
			c.marked = c.read()
			c.last = c.marked
			nextCut = now + c.spec.Interval
		}
		// The measured part has its full duration, even if it begins late.
		end := l.marked + c.spec.Duration
		if l.measuring && (now >= end || c.spec.Bytes > 0 && c.amountDone()) {
			if c.spec.Bytes > 0 && now >= end {
				c.warnings = append(c.warnings, fmt.Sprintf("not all of %d bytes went through within %v", c.spec.Bytes,
					c.spec.Duration))
			}
			break
		}
		if now >= nextCut {
			// From the last scheduled end, not from now: one late interval does not shift all
			// following ones.
			nextCut += c.spec.Interval
			l.observe()
			c.cut(c.read())
		}
		due := min(nextCut, l.p.Omit)
		if l.measuring {
			due = min(nextCut, end)
		}
		if c.spec.Bytes > 0 {
			// No event marks the arrival of an amount, so it is polled.
			due = min(due, now+pollEvery)
		}
		if l.p.UDP && l.p.sending() {
			c.recent.note(now, l.flows)
			due = min(due, now+noteEvery)
		}
		timer.Reset(due - l.now())
	}
	// Before anything is stopped: later data belong to the end of the test and not to its rate.
	l.observe()
	c.end = c.read()
	return nil
}

// amountDone reports whether the kernel has accepted everything to send, and everything to receive
// has arrived.
func (c *client) amountDone() bool {
	var down int64
	receives := false
	for _, f := range c.load.flows {
		switch {
		case !f.sends:
			receives = true
			down += f.worker.Bytes.Load() - f.mark.bytes
		case f.sender != nil:
			select {
			case <-f.sender.Idle():
			default:
				return false
			}
		default: // one quota covers all connections
			select {
			case <-c.quota.Done():
			default:
				return false
			}
		}
	}
	return !receives || down >= c.spec.Bytes
}

// cut ends the current interval at a reading.
func (c *client) cut(r reading) {
	seconds := (r.at - c.last.at).Seconds()
	// A remainder that is only rounding is no interval, but a whole test may be that short.
	if seconds <= 0 || seconds < 0.005 && len(c.intervals) > 0 {
		return
	}
	i := traffic.Interval{
		StartSeconds: c.last.at.Seconds(), EndSeconds: r.at.Seconds(), Omitted: !c.load.measuring,
		ThroughputBitsPerSec: float64(r.up-c.last.up+r.down-c.last.down) * 8 / seconds,
		PacketsPerSec:        float64(r.packets-c.last.packets) / seconds,
	}
	// The kernel reports the sender's view: bytes and packets are summed, times and shares are
	// averaged.
	flows := 0.0
	for _, f := range c.load.flows {
		if !f.sends || f.worker.Conn == nil {
			continue
		}
		p, ok := f.tcp.Cut()
		if !ok {
			continue
		}
		flows++
		i.RTTSeconds += p.RTTSeconds
		i.RTTVarSeconds += p.RTTVarSeconds
		i.CwndBytes += p.CwndBytes
		i.SsthreshBytes += p.SsthreshBytes
		i.DeliveryRateBitsPerSec += p.DeliveryRateBitsPerSec
		i.RwndLimitedRatio += p.RwndLimitedSeconds / seconds
		i.SndbufLimitedRatio += p.SndbufLimitedSeconds / seconds
		i.RetransmitsTotal += p.RetransmittedSegments
	}
	if flows > 0 {
		i.RTTSeconds /= flows
		i.RTTVarSeconds /= flows
		i.RwndLimitedRatio /= flows
		i.SndbufLimitedRatio /= flows
	}
	c.last = r
	c.intervals = append(c.intervals, i)
	c.progress(i)
}

// unexpected converts a state that came in the middle of the test to an error.
func (c *client) unexpected(st step) error {
	switch {
	// This happens when the program is killed: it has no state for that.
	case st.err != nil && errors.Is(st.err, io.EOF):
		return fmt.Errorf("%w: the server closed the control connection", traffic.ErrPeerGone)
	case st.err != nil:
		return gone(st.err)
	}
	return c.refused(st.state)
}

// explain waits a moment for the server's reason for a broken stream: "connection reset" is only
// its consequence.
func (c *client) explain(ctx context.Context, broken streamError) error {
	wait := time.NewTimer(quietAfter)
	defer wait.Stop()
	select {
	case st := <-c.next:
		c.next = nil
		return c.unexpected(st)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
		return fmt.Errorf("%w: %w", traffic.ErrPeerGone, broken)
	}
}

// finish ends the test at the far side and exchanges results.
func (c *client) finish(ctx context.Context) error {
	l := &c.load
	c.settled = c.end.at
	if c.spec.Bytes > 0 || l.p.UDP {
		if err := c.deliver(ctx); err != nil {
			return err
		}
	} else {
		// What this kernel knows is enough, and the server's clock runs until it learns of the end.
		l.out.Set(engine.Stopped)
		l.shut()
	}
	// The last interval ends with the measured part, so that the intervals add up to the result.
	c.cut(c.end)
	if err := c.c.writeState(testEnd, writeWithin); err != nil {
		return gone(err)
	}
	c.after = c.sample() // not earlier: until it reads TEST_END, the server's clock runs
	// The read that waited during the run receives the answer.
	switch st := <-c.next; {
	case st.err == nil && st.state == exchangeResults:
		c.next = nil
	default:
		c.next = nil
		return c.unexpected(st)
	}
	l.stopSending()
	quiet := quietAfter
	if l.p.UDP {
		quiet = quietDatagrams
	}
	arrived := l.drain(ctx, quiet, func(*flow) (int64, int64, bool) { return 0, 0, false })
	counted := l.tallies()
	at := max(c.end.at, l.lastArrival(counted, arrived))
	body, err := l.report(counted, c.settled, at, func(*flow) int64 { return 0 }).encode()
	if err != nil {
		return err
	}
	if err := c.c.writeMessage(body, writeWithin); err != nil {
		return gone(err)
	}
	if body, err = c.c.readMessage(maxServerResultsBytes, answerWithin); err != nil {
		return gone(fmt.Errorf("read results: %w", err))
	}
	if c.far, err = decodeResults(body, l.p.all()); err != nil {
		return fmt.Errorf("%w: %w", traffic.ErrProtocol, err)
	}
	// By now the server has reported what it sent, and missing data have had the time of a whole
	// exchange to arrive.
	c.final = l.tallies()
	if err := c.expect(displayResults); err != nil {
		return err
	}
	if err := c.c.writeState(iperfDone, writeWithin); err != nil {
		return gone(err)
	}
	return nil
}

// deliver ends the sending, and waits until everything has been received: all of an amount, and
// what datagrams the path carries at once.
func (c *client) deliver(ctx context.Context) error {
	l := &c.load
	if !l.p.UDP {
		// Its senders have nothing left to send.
		c.settled = max(l.settle(ctx), c.end.at)
		l.observe()
		c.end = c.read()
	}
	l.stopSending()
	l.shut()
	if l.p.sending() && !sleep(ctx, readWithin) {
		return context.Cause(ctx)
	}
	return nil
}

// sending reports whether the client sends on any stream.
func (p params) sending() bool { return p.Bidir || !p.Reverse }
