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
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
)

const (
	dialPatience = 10 * time.Second
	// farPatience is how long the far end may continue to send after the requested time.
	farPatience = 5 * time.Second
	// ackPatience is how long the last bytes may take to be acknowledged: three retransmission
	// timeouts in a row are 1.4 s on Linux.
	ackPatience = 5 * time.Second
	// pollEvery is the interval between looks at the acknowledgements.
	pollEvery = 2 * time.Millisecond
)

// conductor runs one test of a dialect that has no phases of its own. One goroutine owns it.
type conductor struct {
	name     string // of the dialect
	host     string
	port     int
	spec     traffic.Spec
	o        ClientOptions
	progress func(traffic.Interval)
	over     func(error) bool // distinguishes the end of a stream from a failure

	out, in       engine.Phase
	local, remote netip.Addr

	test      test
	flows     []*flow
	failed    chan ended
	started   time.Time
	up, down  moved         // as of the last look
	stopped   time.Duration // when everything had arrived, since started
	last      time.Duration // end of the previous interval
	lastBytes int64
	result    *traffic.Result
}

// flow is one worker and the TCP_INFO of its connection.
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

// run opens a test and conducts it to its result. When it returns, with or without an error, all
// workers have ended and everything is closed.
func (c *conductor) run(ctx context.Context, open func(means) (test, error)) (*traffic.Result, error) {
	// Whatever takes time comes before the first byte: from then on the clock of the far end runs.
	if c.spec.Test == traffic.Stream {
		engine.ProbeStream()
	} else {
		datagram.Probe()
	}
	before := c.counters()
	t, err := open(means{Out: &c.out, In: &c.in, Dial: c.dial, Adopt: c.adopt, Socket: c.socket})
	if err != nil {
		return nil, err
	}
	c.test = t
	// Deferred calls run in reverse order: workers end before their connections are closed, and
	// processors are returned after both.
	defer t.Close()
	for _, w := range t.Senders() {
		c.flows = append(c.flows, &flow{Worker: w})
	}
	for _, w := range t.Receivers() {
		c.flows = append(c.flows, &flow{Worker: w})
	}
	defer engine.LendProcessors(len(c.flows))()
	c.failed = make(chan ended, len(c.flows))
	c.start()
	err = c.conduct(ctx)
	c.halt()
	if err != nil {
		return nil, err
	}
	// The CPU time ends here, with the last bytes: a far end may take seconds for its report, and the
	// host's other programs would be charged to the test. Losses may be counted later.
	busy := c.counters()
	finish := t.Finish(ctx, c.result)
	after := c.counters()
	if finish != nil {
		return nil, finish
	}
	c.assemble(before, busy, after)
	return c.result, nil
}

// start releases all workers.
func (c *conductor) start() {
	cpus, err := sys.AllowedCPUs()
	if err != nil {
		cpus = nil // not supported on this system: run unpinned
	}
	switch {
	case len(c.spec.NearCPUs) > 0:
		cpus = c.spec.NearCPUs
	case c.spec.RateBitsPerSec > 0 || c.spec.RatePacketsPerSec > 0:
		cpus = nil // a rate needs a CPU now and then, and any that is free will do
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

// conduct waits until sending and receiving have ended.
func (c *conductor) conduct(ctx context.Context) error {
	sending, receiving := len(c.test.Senders()), len(c.test.Receivers())
	sendUntil := time.NewTimer(c.spec.Duration)
	defer sendUntil.Stop()
	receiveUntil := time.NewTimer(c.spec.Duration + farPatience)
	defer receiveUntil.Stop()
	tick := time.NewTicker(c.spec.Interval)
	defer tick.Stop()
	last := time.NewTicker(pollEvery) // looks at the last bytes, once the time is over
	last.Stop()
	defer last.Stop()
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
			// Otherwise select would choose the closed channel again and again.
			done = nil
			c.out.Set(engine.Stopped)
		case <-sendUntil.C:
			// The workers are not woken: that would shut the connections, and a sender checks its
			// phase five times a second.
			c.look()
			c.up.at, c.down.at = c.elapsed(), c.elapsed()
			c.out.Set(engine.Stopped)
			last.Reset(pollEvery)
		case <-last.C:
			c.look()
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
				// A sender returns when its phase is Stopped, or with an error. One that has sent
				// its amount waits for the phase.
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
	if len(c.test.Senders()) > 0 && c.up.at > 0 {
		c.look()
		c.stopped = max(c.up.at, c.down.at)
	}
	c.cut(c.stopped)
	return nil
}

// moved is what has arrived in one direction, as far as this host knows, and when that was seen to
// rise last, since the start; 0: there was no look yet.
type moved struct {
	bytes int64
	at    time.Duration
}

// look notes when the bytes of each direction rose last. A sender with a rate sleeps until its next
// block is due, and finds only then that the time is over: that sleep is no part of the rate.
func (c *conductor) look() {
	var up, down int64
	for _, f := range c.flows {
		if f.Role == engine.Sender {
			up += carried(f.Worker)
		} else {
			down += carried(f.Worker)
		}
	}
	if up != c.up.bytes {
		c.up = moved{up, c.elapsed()}
	}
	if down != c.down.bytes {
		c.down = moved{down, c.elapsed()}
	}
}

// gone marks an error as the disappearance of the far end.
func gone(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, traffic.ErrPeerGone) {
		return err
	}
	return fmt.Errorf("%w: %w", traffic.ErrPeerGone, err)
}

// endSending announces the end of the data and waits until the far kernel has acknowledged
// everything, as far as this kernel knows.
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
		if c.up.at > 0 {
			c.look()
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

// TCP states of Linux (include/net/tcp_states.h) in which this end's FIN is not acknowledged yet.
const (
	stateEstablished = 1
	stateFinWait1    = 4
	stateCloseWait   = 8
	stateLastAck     = 9
	stateClosing     = 11
)

// settled reports whether everything that a sender sent, including its FIN, was acknowledged.
func settled(w *engine.Worker) bool {
	if w.Conn == nil {
		return true
	}
	info, err := w.Conn.Info()
	if err != nil {
		return true // not supported on this system, so further calls would fail too
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
	// Only workers that are still running: waking one shuts its connection in both directions,
	// which would cut off data in flight.
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

// carried returns the bytes that one worker has moved: received, acknowledged, or, where the kernel
// does not report acknowledgements, sent.
func carried(w *engine.Worker) int64 {
	n := w.Bytes.Load()
	if w.Role == engine.Receiver || w.Conn == nil {
		return n
	}
	if info, err := w.Conn.Info(); err == nil && info.BytesAcked > 0 {
		// tcpi_bytes_acked also counts the SYN of the connecting end, and later the FIN.
		return min(n, int64(info.BytesAcked)-1)
	}
	return n
}

// observe reads the TCP_INFO of one connection.
func (c *conductor) observe(f *flow) {
	if f.Conn == nil {
		return
	}
	if info, err := f.Conn.Info(); err == nil {
		f.tcp.Add(info, true)
	}
}

// shortestInterval keeps a remainder that is only rounding from being reported as an interval.
const shortestInterval = 5 * time.Millisecond

// cut ends the current interval.
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

// counters reads the host's counters. A failure is a warning, because the test has a result without
// them.
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
