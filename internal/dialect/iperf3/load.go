package iperf3

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Timeouts at the end of a test.
const (
	// quietAfter is how long a receiver hears nothing before it counts the rest as lost. The
	// shortest retransmission timeout of Linux is 200 ms.
	quietAfter = 400 * time.Millisecond
	// drainLimit bounds the wait for data in flight, however steadily they arrive.
	drainLimit = 3 * time.Second
	// pollEvery is the interval of those waits.
	pollEvery = 2 * time.Millisecond
	// haltLimit is how long a sender may take to check its phase: engine workers check every 200
	// ms.
	haltLimit = 500 * time.Millisecond
)

// flow is one stream at this end.
type flow struct {
	index    int  // in the order of opening, from 0 on; the same at both ends
	sends    bool // this end sends
	worker   *engine.Worker
	sender   *datagram.Sender   // of UDP
	receiver *datagram.Receiver // of UDP

	tcp  tcpinfo.Flow // readings of the connection's TCP_INFO
	mark tally        // what had been counted when the measured part began
}

// tally is what one stream has counted since the start.
type tally struct {
	bytes   int64 // payload; duplicate datagrams count once
	packets int64 // sent, or the highest sequence number received
	lost    int64 // of packets, as the receiver counts them
	got     datagram.Received
}

// tally reads the stream's counts. A receiver of datagrams takes up to 20 ms to answer when nothing
// arrives.
func (f *flow) tally() tally {
	t := tally{bytes: f.worker.Bytes.Load(), packets: f.worker.Packets.Load()}
	if f.receiver != nil {
		t.got = f.receiver.Received()
		t.bytes, t.packets = t.got.Bytes, int64(t.got.HighestSequence)
		t.lost = max(t.packets-t.got.UniquePackets, 0)
	}
	return t
}

// load is this end of a test: its streams and the workers that move their data. One goroutine owns
// it.
type load struct {
	p        params
	flows    []*flow
	out, in  engine.Phase     // of the flows on which this end sends, and receives: senders stop first
	failed   chan streamError // has room for all
	giveBack func()           // returns the processors lent to the workers; nil while they do not run

	started   time.Time     // when the workers were started
	measuring bool          // the omitted seconds are over
	marked    time.Duration // when the measured part began, since started
	cpu       cpuTimes      // of the process at that moment
}

// streamError reports a worker that ended before the test.
type streamError struct {
	flow *flow
	err  error
}

func (e streamError) Error() string {
	return fmt.Sprintf("stream %d: %v", streamID(e.flow.index), e.err)
}

func (e streamError) Unwrap() error { return e.err }

// tcpOptions are what one end chooses for its connections beyond the parameters.
type tcpOptions struct {
	send    engine.SendMethod    // empty: the fastest available
	receive engine.ReceiveMethod // the same
	quota   *engine.Quota        // shared by the senders of this end; nil: until the test ends
}

// udpOptions are the same for sockets.
type udpOptions struct {
	batch   datagram.Batch // empty: the fastest available
	bytes   int64          // to send on this stream; 0: until the test ends
	packets float64        // per second, instead of the rate of the parameters; 0: that rate
	every   time.Duration  // send with a rate in bursts of this time; 0: datagram.BurstTime
}

// addTCP adds a connection as the next stream and takes ownership of it.
func (l *load) addTCP(conn *net.TCPConn, sends bool, o tcpOptions) error {
	// The congestion control too, although it affects only a sender: the program sets it at both
	// ends, and each reports its own (receiver_tcp_congestion).
	c := engine.ConnOptions{NoDelay: l.p.NoDelay, WindowBytes: l.p.WindowBytes, TOS: l.p.TOS,
		Congestion: l.p.Congestion}
	if sends {
		c.PacingBytesPerSec = l.p.pace() / 8
	}
	adopted, err := engine.Adopt(conn, c)
	if err != nil {
		return err
	}
	f := &flow{index: len(l.flows), sends: sends}
	// The far end's payload is not our pattern, so it is not verified.
	so := engine.StreamOptions{Send: o.send, Receive: o.receive, BufferBytes: l.p.writeBytes(), Limit: o.quota,
		Foreign: true}
	if sends {
		f.worker, err = engine.NewStreamSender(&l.out, adopted, so)
	} else {
		f.worker, err = engine.NewStreamReceiver(&l.in, adopted, so)
	}
	if err != nil {
		adopted.Close()
		return err
	}
	l.flows = append(l.flows, f)
	return nil
}

// addUDP adds a socket as the next stream and takes ownership of it.
func (l *load) addUDP(s *datagram.Socket, sends bool, o udpOptions) (err error) {
	f := &flow{index: len(l.flows), sends: sends}
	if sends {
		so := datagram.SendOptions{
			Bytes: l.p.BlockBytes, BitRate: l.p.BitsPerSec, Batch: o.batch, Header: l.p.header(), First: 1,
			PayloadBytes: o.bytes, Every: cmp.Or(o.every, datagram.BurstTime),
		}
		if o.packets > 0 {
			so.BitRate, so.PacketRate = 0, o.packets
		}
		f.worker, f.sender, err = datagram.NewSender(&l.out, s, so)
	} else {
		f.worker, f.receiver,
			err = datagram.NewReceiver(&l.in, s,
			datagram.ReceiveOptions{Batch: o.batch, Header: l.p.header().receiving()})
	}
	if err != nil {
		s.Close()
		return err
	}
	l.flows = append(l.flows, f)
	return nil
}

// writeBytes returns the size of one call that the parameters request. 0 means the program's
// default, for which this package uses its own.
func (p params) writeBytes() int {
	if p.BlockBytes == defaultBlock {
		return 0
	}
	return p.BlockBytes
}

// pace returns the rate of one TCP stream that the kernel shall keep, bits per second; 0: none.
func (p params) pace() float64 {
	if p.PacingBits > 0 && (p.BitsPerSec == 0 || p.PacingBits < p.BitsPerSec) {
		return p.PacingBits
	}
	return p.BitsPerSec
}

// start starts the workers on the given CPUs (none: unpinned). Receivers start first, so that no
// data arrive before their receiver runs.
func (l *load) start(cpus []int) {
	l.failed = make(chan streamError, len(l.flows))
	l.giveBack = engine.LendProcessors(len(l.flows))
	l.started = time.Now()
	l.observe()
	if l.p.Omit == 0 {
		l.measure()
	}
	for _, sends := range []bool{false, true} { // receivers first
		for _, f := range l.flows {
			if f.sends != sends {
				continue
			}
			go func() {
				if err := f.worker.Run(engine.CPUOf(cpus, f.worker.Role, f.index)); err != nil {
					l.failed <- streamError{f, err}
				}
			}()
		}
	}
}

func (l *load) now() time.Duration { return time.Since(l.started) }

// measure begins the measured part.
func (l *load) measure() {
	l.observe()
	l.out.Set(engine.Measured)
	l.in.Set(engine.Measured)
	l.measuring, l.marked, l.cpu = true, l.now(), processTimes()
	for i, t := range l.tallies() {
		l.flows[i].mark = t
		l.flows[i].tcp.Open()
	}
}

// tallies reads the counts of all streams at once.
func (l *load) tallies() []tally {
	all := make([]tally, len(l.flows))
	var wg sync.WaitGroup
	for i, f := range l.flows {
		if f.receiver == nil {
			all[i] = f.tally()
			continue
		}
		wg.Go(func() { all[i] = f.tally() })
	}
	wg.Wait()
	return all
}

// observe reads TCP_INFO of every connection.
func (l *load) observe() {
	inWindow := l.in.Is() == engine.Measured
	for _, f := range l.flows {
		if f.worker.Conn == nil {
			continue
		}
		// A broken connection has no further reading; its last one remains.
		if info, err := f.worker.Conn.Info(); err == nil {
			f.tcp.Add(info, inWindow)
		}
	}
}

// shut ends the measured part with a last reading of every connection.
func (l *load) shut() {
	l.observe()
	for _, f := range l.flows {
		if f.worker.Conn != nil {
			f.tcp.Shut(f.worker.Conn.Buffers())
		}
	}
}

// stopSending lets this end's senders finish their last call. What they gave to the kernel is still
// in flight.
func (l *load) stopSending() {
	l.out.Set(engine.Stopped)
	patience := time.NewTimer(haltLimit)
	defer patience.Stop()
	for _, f := range l.flows {
		if !f.sends {
			continue
		}
		select {
		case <-f.worker.Done():
		case <-patience.C:
			return // halt wakes it
		}
	}
}

// endStreams announces the end to the far TCP receivers, after all queued data.
func (l *load) endStreams() {
	for _, f := range l.flows {
		if f.sends && f.worker.Conn != nil {
			_ = f.worker.Conn.CloseWrite() // a lost connection needs no end
		}
	}
}

// settle waits until the far kernels have acknowledged everything that this end sent, and returns
// the time of that.
func (l *load) settle(ctx context.Context) time.Duration {
	deadline := time.Now().Add(drainLimit)
	for {
		pending := false
		for _, f := range l.flows {
			if !f.sends || f.worker.Conn == nil {
				continue
			}
			// Nothing queued and nothing in flight. A connection that cannot be read is not waited
			// for.
			if info, err := f.worker.Conn.Info(); err == nil && (info.NotSentBytes > 0 || info.UnackedPackets > 0) {
				pending = true
			}
		}
		at := l.now()
		if !pending || time.Now().After(deadline) || !sleep(ctx, pollEvery) {
			return at
		}
	}
}

// drain waits until every received stream has everything that its sender reports, has ended, or has
// been silent for quiet. want returns the bytes and the datagrams of a stream since its start; ok
// is false if the sender has not reported them. drain returns the time of the last arrival.
func (l *load) drain(ctx context.Context, quiet time.Duration,
	want func(*flow) (bytes, packets int64, ok bool)) time.Duration {
	deadline := time.Now().Add(drainLimit)
	last, changed := int64(-1), l.now()
	for {
		missing, sum := false, int64(0)
		for _, f := range l.flows {
			if f.sends {
				continue
			}
			bytes, packets := f.worker.Bytes.Load(), f.worker.Packets.Load()
			sum += bytes
			select {
			case <-f.worker.Done():
				continue
			default:
			}
			wantBytes, wantPackets, ok := want(f)
			missing = missing || !ok || bytes < wantBytes || packets < wantPackets
		}
		now := l.now()
		if sum != last {
			last, changed = sum, now
		}
		if !missing || now-changed > quiet || time.Now().After(deadline) || !sleep(ctx, pollEvery) {
			return changed
		}
	}
}

// lastArrival returns when the last data of the counts arrived. Datagrams have the times of their
// arrival; of a stream, seen is when this end saw its count rise last.
func (l *load) lastArrival(counted []tally, seen time.Duration) time.Duration {
	if !l.p.UDP {
		return seen
	}
	last, now, clock := time.Duration(0), l.now(), sys.Monotonic()
	for _, t := range counted {
		if t.got.UniquePackets > 0 {
			last = max(last, now-(clock-t.got.LastAt))
		}
	}
	return last
}

// timedStream reports whether a test that ended after this time moved bytes for a whole time that
// was agreed on. The rate of that time is its result. What is in flight at the end belongs to no
// rate: streams finish one after the other, the last one long after the link stopped being full.
func (p params) timedStream(ended time.Duration) bool {
	// A client whose file (-F) ends early has sent an amount. Clocks may differ by a little.
	return !p.UDP && p.Time > 0 && p.Bytes == 0 && p.Blocks == 0 && ended >= p.Omit+p.Time-p.Time/10
}

// expected returns what the far end reports to have sent on a received stream. With omitted
// seconds, its byte count begins at a moment of its own, so TCP has nothing to compare with; its
// count of datagrams covers all of them.
func (l *load) expected(f *flow, far results) (bytes, packets int64, ok bool) {
	s := far.Streams[f.index]
	if f.receiver != nil {
		return 0, s.Packets, true
	}
	return s.Bytes, 0, l.p.Omit == 0
}

// halt ends all workers and closes the connections. It may be called more than once, and before
// start.
func (l *load) halt() {
	l.out.Set(engine.Stopped)
	l.in.Set(engine.Stopped)
	// The phase comes first: a woken worker finds the test over and does not report the end of its
	// connection as a failure.
	for _, f := range l.flows {
		f.worker.Wake()
	}
	for _, f := range l.flows {
		// The close comes after the thread has ended: a descriptor that is closed under a blocked
		// call could already be reused.
		if l.giveBack != nil {
			<-f.worker.Done()
		}
		f.worker.Close()
	}
	if l.giveBack != nil {
		l.giveBack()
		l.giveBack = nil
	}
	l.flows = l.flows[:0]
}

// moved returns the payload of both directions so far.
func (l *load) moved() (n int64) {
	for _, f := range l.flows {
		n += f.worker.Bytes.Load()
	}
	return n
}

// report returns this end's results: it sent until sentUntil, and its last data arrived at
// receivedUntil. sent returns the far sender's count of a stream's datagrams, so that losses at the
// very end count; 0: unknown.
func (l *load) report(counted []tally, sentUntil, receivedUntil time.Duration, sent func(*flow) int64) results {
	r := results{HasRetransmits: -1}
	r.CPUTotal, r.CPUUser, r.CPUSystem = processTimes().share(l.cpu, (l.now() - l.marked).Seconds())
	for i, t := range counted {
		f := l.flows[i]
		s := streamResult{ID: streamID(f.index), Bytes: t.bytes - f.mark.bytes, Retransmits: -1,
			EndSeconds: (receivedUntil - l.marked).Seconds()}
		if f.sends {
			s.EndSeconds = (sentUntil - l.marked).Seconds()
			r.HasRetransmits = max(r.HasRetransmits, 0)
		}
		if l.p.UDP {
			s.Packets, s.OmittedPackets = t.packets, f.mark.packets
			s.Errors, s.OmittedErrors, s.JitterSeconds = t.lost, f.mark.lost, t.got.JitterSeconds
			if n := sent(f); !f.sends && n > s.Packets {
				s.Packets, s.Errors = n, s.Errors+n-s.Packets
			}
		}
		if f.worker.Conn != nil {
			b := f.tcp.Report(f.sends)
			if r.Congestion == "" {
				r.Congestion = b.CongestionControl
			}
			if f.sends && f.tcp.Known() {
				s.Retransmits, r.HasRetransmits = int64(b.RetransSegs), 1
			}
			// What has left, and not what still waits in the send buffer: the other end does not
			// read that once it has announced the end of the test.
			if n, ok := f.tcp.SentBytes(); ok && f.sends {
				s.Bytes = min(n, t.bytes)
			}
		}
		r.Streams = append(r.Streams, s)
	}
	return r
}

// concede raises what this end sent to what the other end received of it: a last block can leave
// between the reading of the counts and the stop of its sender, and what has arrived was sent.
func (l *load) concede(own, far results) {
	for i, f := range l.flows {
		if s := &own.Streams[i]; f.sends && !l.p.UDP && far.Streams[f.index].Bytes > s.Bytes {
			s.Bytes = max(s.Bytes, min(far.Streams[f.index].Bytes, f.tally().bytes-f.mark.bytes))
		}
	}
}

// places returns the CPUs of the workers: the chosen ones; with a rate, which needs a CPU now and
// then, none, because any that is free will do; otherwise all.
func (p params) places(chosen []int) []int {
	if len(chosen) == 0 && (p.BitsPerSec > 0 || p.PacingBits > 0) {
		return nil
	}
	return allowedCPUs(chosen)
}

// allowedCPUs returns the CPUs to spread workers over: the chosen ones, or all that this process
// may use; none if that is unknown.
func allowedCPUs(chosen []int) []int {
	if len(chosen) > 0 {
		return chosen
	}
	cpus, err := sys.AllowedCPUs()
	if err != nil {
		return nil // unpinned is slower, not wrong
	}
	return cpus
}

// sleep waits for d and reports whether it was not interrupted.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
