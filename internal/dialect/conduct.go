package dialect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

const (
	dialPatience = 10 * time.Second
	// farPatience is how long the far end may send on after the time it was asked for.
	farPatience = 5 * time.Second
	// ackPatience is how long the last bytes may take to be acknowledged: three retransmission
	// timeouts in a row are 1.4 s on Linux.
	ackPatience = 5 * time.Second
	// pollEvery is the step of waiting for that.
	pollEvery = 2 * time.Millisecond
)

// conductor runs one test of a dialect without phases of its own. One goroutine owns it.
type conductor struct {
	name     string // of the dialect
	host     string
	port     int
	spec     traffic.Spec
	o        ClientOptions
	progress func(traffic.Interval)
	over     func(error) bool // tells the end of a stream from a failure

	out, in       engine.Phase
	local, remote netip.Addr

	test      test
	flows     []*flow
	failed    chan ended
	started   time.Time
	stopped   time.Duration // when all had arrived, since started
	last      time.Duration // edge of the running interval
	lastBytes int64
	result    *traffic.Result
}

// flow is one worker and what the kernel says of its connection.
type flow struct {
	*engine.Worker
	tcp     tcpinfo.Flow
	running bool
}

// ended is a worker that has returned.
type ended struct {
	flow *flow
	err  error
}

func newConductor(name, target string, port int, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*conductor, error) {
	spec, err := spec.Normalize()
	if err != nil {
		return nil, err
	}
	if spec.WarmUp > 0 {
		return nil, fmt.Errorf("%w: %s counts from the first byte on, so there can be no warm-up",
			traffic.ErrBadSpec, name)
	}
	spec.WarmUp = 0
	c := &conductor{name: name, spec: spec, o: o, progress: progress}
	c.host, c.port, err = splitTarget(target, port)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", traffic.ErrBadSpec, err)
	}
	c.result = &traffic.Result{Test: spec.Test, Direction: spec.Direction, Streams: spec.Streams,
		Intervals: []traffic.Interval{}}
	c.result.Ends.Local.Host = o.HostName
	c.result.Ends.Local.Drops, c.result.Ends.Remote.Drops = []drops.Drop{}, []drops.Drop{}
	return c, nil
}

// note keeps the addresses of the data connections for the result.
func (c *conductor) note(local, remote net.Addr) {
	if l, ok := local.(*net.TCPAddr); ok {
		c.local = l.AddrPort().Addr().Unmap()
	}
	if r, ok := remote.(*net.TCPAddr); ok {
		c.remote = r.AddrPort().Addr().Unmap()
	}
}

// run opens a test and conducts it to its result. However it returns, all workers have ended and
// everything is closed.
func (c *conductor) run(ctx context.Context, open func(means) (test, error)) (*traffic.Result, error) {
	t, err := open(means{Out: &c.out, In: &c.in, Dial: c.dial, Adopt: c.adopt, Socket: c.socket})
	if err != nil {
		return nil, err
	}
	c.test = t
	// Deferred calls run last in first out: workers have ended before their connections are closed,
	// and processors go back after both.
	defer t.Close()
	for _, w := range t.Senders() {
		c.flows = append(c.flows, &flow{Worker: w})
	}
	for _, w := range t.Receivers() {
		c.flows = append(c.flows, &flow{Worker: w})
	}
	defer engine.LendProcessors(len(c.flows))()
	c.failed = make(chan ended, len(c.flows))
	before := c.counters()
	c.start()
	err = c.conduct(ctx)
	c.halt()
	if err != nil {
		return nil, err
	}
	// The far end's report comes first and the counters second: what it cost to receive the last
	// bytes belongs to the test.
	finish := t.Finish(ctx, c.result)
	after := c.counters()
	if finish != nil {
		return nil, finish
	}
	c.assemble(before, after)
	return c.result, nil
}

// start lets all workers go.
func (c *conductor) start() {
	cpus, err := sys.AllowedCPUs()
	if err != nil {
		cpus = nil // not on this system: run unpinned
	}
	if len(c.spec.NearCPUs) > 0 {
		cpus = c.spec.NearCPUs
	}
	c.out.Set(engine.Measured)
	c.in.Set(engine.Measured)
	c.result.StartTime = time.Now()
	c.started = c.result.StartTime
	for i, f := range c.flows {
		f.running = true
		c.observe(f)
		f.tcp.Open()
		go func() { c.failed <- ended{f, f.Run(engine.CPUOf(cpus, f.Role, i))} }()
	}
}

// conduct waits for the end of sending and of receiving.
func (c *conductor) conduct(ctx context.Context) error {
	sending, receiving := len(c.test.Senders()), len(c.test.Receivers())
	sendUntil := time.NewTimer(c.spec.Duration)
	defer sendUntil.Stop()
	receiveUntil := time.NewTimer(c.spec.Duration + farPatience)
	defer receiveUntil.Stop()
	tick := time.NewTicker(c.spec.Interval)
	defer tick.Stop()
	done := c.test.Done()
	if sending == 0 {
		done = nil
	}
	for sending+receiving > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			c.cut(c.elapsed())
		case <-done:
			// A closed channel would be chosen again and again.
			done = nil
			c.out.Set(engine.Stopped)
		case <-sendUntil.C:
			// Not woken: that would shut the connections, and a sender looks at its phase five
			// times a second anyway.
			c.out.Set(engine.Stopped)
		case <-receiveUntil.C:
			if receiving > 0 {
				return fmt.Errorf("%w: %s still sends %v after its time", traffic.ErrStalled, c.name, farPatience)
			}
		case e := <-c.failed:
			e.flow.running = false
			switch {
			case e.flow.Role == engine.Receiver:
				receiving--
				if e.err != nil && !c.over(e.err) {
					return fmt.Errorf("%s: %w", c.name, gone(e.err))
				}
			default:
				// A sender returns when its phase says so, or for a reason; one that has sent its
				// amount waits for the phase.
				sending--
				if e.err != nil {
					return fmt.Errorf("%s: %w", c.name, gone(e.err))
				}
				if sending == 0 {
					if err := c.endSending(ctx); err != nil {
						return err
					}
				}
			}
		}
	}
	c.stopped = c.elapsed()
	c.cut(c.stopped)
	return nil
}

// gone marks the far end's disappearance as what it is.
func gone(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, traffic.ErrPeerGone) {
		return err
	}
	return fmt.Errorf("%w: %w", traffic.ErrPeerGone, err)
}

// endSending says the end and waits until the far kernel has everything, as far as this kernel can
// tell.
func (c *conductor) endSending(ctx context.Context) error {
	if err := c.test.EndSending(); err != nil {
		return fmt.Errorf("%s: %w", c.name, gone(err))
	}
	if len(c.test.Datagrams()) > 0 {
		return nil
	}
	for until := time.Now().Add(ackPatience); ; {
		waiting := false
		for _, w := range c.test.Senders() {
			waiting = waiting || !settled(w)
		}
		switch {
		case !waiting:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("%w: %s: the last bytes were not acknowledged within %v", traffic.ErrPeerGone, c.name,
				ackPatience)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}

// TCP states of Linux (include/net/tcp_states.h) in which this end's FIN is on its way or not
// acknowledged.
const (
	stateEstablished = 1
	stateFinWait1    = 4
	stateCloseWait   = 8
	stateLastAck     = 9
	stateClosing     = 11
)

// settled tells whether all that a sender sent, its end included, was acknowledged.
func settled(w *engine.Worker) bool {
	if w.Conn == nil {
		return true
	}
	info, err := w.Conn.Info()
	if err != nil {
		return true // not on this system, so there is no sense in asking on
	}
	switch info.State {
	case stateEstablished, stateFinWait1, stateCloseWait, stateLastAck, stateClosing:
		return false
	}
	return true
}

// halt makes all workers return.
func (c *conductor) halt() {
	c.out.Set(engine.Stopped)
	c.in.Set(engine.Stopped)
	// Only those that did not end by themselves: waking shuts a connection in both directions,
	// which would cut off what is still on its way.
	for _, f := range c.flows {
		if f.running {
			f.Wake()
		}
	}
	for _, f := range c.flows {
		<-f.Done()
	}
}

func (c *conductor) elapsed() time.Duration { return time.Since(c.started) }

// carried is what one worker's data have come to: received, acknowledged, or, where nobody can know
// better, sent.
func carried(w *engine.Worker) int64 {
	n := w.Bytes.Load()
	if w.Role == engine.Receiver || w.Conn == nil {
		return n
	}
	if info, err := w.Conn.Info(); err == nil && info.BytesAcked > 0 {
		// tcpi_bytes_acked counts the SYN of the end that connected, too, and later the FIN.
		return min(n, int64(info.BytesAcked)-1)
	}
	return n
}

// observe takes a reading of one connection.
func (c *conductor) observe(f *flow) {
	if f.Conn == nil {
		return
	}
	if info, err := f.Conn.Info(); err == nil {
		f.tcp.Add(info, true)
	}
}

// shortestInterval keeps a rest of an interval that is only rounding from being reported as one.
const shortestInterval = 5 * time.Millisecond

// cut ends the running interval.
func (c *conductor) cut(now time.Duration) {
	if now-c.last < shortestInterval {
		return
	}
	var bytes int64
	var p traffic.Interval
	senders := 0.0
	for _, f := range c.flows {
		bytes += carried(f.Worker)
		c.observe(f)
		if part, ok := f.tcp.Cut(); ok && f.Role == engine.Sender {
			senders++
			p.RTTSeconds += part.RTTSeconds
			p.CwndBytes += part.CwndBytes
			p.RetransmitsTotal += part.RetransmittedSegments
		}
	}
	if senders > 0 {
		p.RTTSeconds /= senders
	}
	p.StartSeconds, p.EndSeconds = c.last.Seconds(), now.Seconds()
	p.ThroughputBitsPerSec = float64(bytes-c.lastBytes) * 8 / (now - c.last).Seconds()
	c.last, c.lastBytes = now, bytes
	c.result.Intervals = append(c.result.Intervals, p)
	c.progress(p)
}

// counters reads the host's counters; without them the test still has a result, so a failure is a
// warning.
func (c *conductor) counters() *host.Counters {
	if c.o.Sample == nil {
		return nil
	}
	counters, err := c.o.Sample()
	if err != nil {
		c.result.Warnings = append(c.result.Warnings, fmt.Sprintf("host counters not read: %v", err))
		return nil
	}
	return counters
}
