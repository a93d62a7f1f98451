package datagram

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// SendOptions are what a sender sends.
type SendOptions struct {
	Bytes      int     // payload of a datagram, from the header's length to MaxBytes
	BitRate    float64 // payload bits per second; 0: PacketRate, or as fast as possible
	PacketRate float64 // packets per second; 0: BitRate, or as fast as possible. Giving both is an error
	Batch      Batch
	Header     Header // nil: NativeHeader
	// let the fq qdisc space packets (SO_MAX_PACING_RATE); the sender's own pacer then keeps the
	// average in bursts of a millisecond
	KernelPacing bool
	// Every sends the packets of this time together and sleeps in between, as most programs do; 0:
	// as evenly as possible, which costs a CPU where packets are closer than a thread can sleep.
	Every time.Duration
	First uint64 // first sequence number

	// Packets and PayloadBytes end the sending when this much was handed to the kernel, warm-up
	// included; 0: no limit. The last datagram is not shortened.
	Packets      int64
	PayloadBytes int64
}

// BurstTime is Every for clients of other dialects. Packets closer than that leave together, a few
// at a time, as with the programs, which sleep between packets and wake up too late for the next
// one. An even schedule would spin: 300 Mb/s took twice the CPU time that iperf takes.
const BurstTime = 250 * time.Microsecond

// Sent is what a sender has sent.
type Sent struct {
	Packets    int64 // marked as measured, including those that the kernel refused
	Bytes      int64 // their payload
	AllPackets int64 // with those outside the measured window

	// SocketErrors counts the packets of AllPackets that the kernel took and dropped, or refused:
	// queue full (ENOBUFS), forbidden by the firewall (EPERM), no route. MeasuredSocketErrors are
	// those of Packets. Such a packet has its sequence number, so the receiver misses it.
	SocketErrors, MeasuredSocketErrors int64
	// Reported counts errors that the network reported (ICMP, as "port unreachable") about any
	// packet. They are no packets of this count.
	Reported int64
	// Stalls counts calls that waited so long for space in the send buffer that the sender looked
	// at the phase meanwhile. They lose nothing.
	Stalls int64

	FirstSequence, NextSequence uint64 // of all packets: the first, and the one after the last
	FirstMeasured               uint64 // sequence number of the first measured packet; meaningless without Packets

	Batch        Batch         // the one used in the end
	BurstPackets int           // most packets that the schedule, or without one a call, sends together
	TargetGap    time.Duration // between packets; 0: the options name no rate
	// achieved, between packets as they were handed to the kernel, in the measured window; empty
	// without a rate
	Gaps           stats.Latencies
	ForgivenSecond float64       // by how much the schedule was moved because the sender was too late to catch up
	StartedAt      time.Duration // sys.Monotonic of the first measured packet
	StoppedAt      time.Duration // and of the last; a rate over this time lacks one gap
	Pacing         string        // "own", "own+SO_MAX_PACING_RATE"; empty: none
}

// Sender is the body of a sending worker.
type Sender struct {
	socket  *Socket
	header  Header
	bytes   int
	out     *outbox
	forced  bool // the options name the batch, so it does not fall back
	pace    pacer
	gaps    *stats.Histogram
	packets int64 // limit; 0: none

	clock    clock
	last     time.Duration // when the last packets were handed over
	lastKept bool          // last was measured too
	sequence uint64
	sent     Sent

	idle chan struct{}
	once sync.Once
}

// NewSender makes the worker that sends datagrams on s. It sends while the phase is Warm or
// Measured, or until its amount is sent, and then stays idle until Stopped. The error is
// ErrBadOptions, or the reason why the socket cannot do what the options ask for.
func NewSender(p *engine.Phase, s *Socket, o SendOptions) (*engine.Worker, *Sender, error) {
	header := o.Header
	if header == nil {
		header = NativeHeader{}
	}
	gap, err := o.gap(header)
	if err != nil {
		return nil, nil, err
	}
	if _, err := ParseBatch(string(o.Batch)); err != nil {
		return nil, nil, err
	}
	batch, limit, err := s.sendBatch(o)
	if err != nil {
		return nil, nil, err
	}
	b := &Sender{
		socket: s, header: header, bytes: o.Bytes, forced: o.Batch != BatchAuto, packets: o.limit(),
		sequence: o.First, idle: make(chan struct{}),
	}
	b.pace = newExactPacer(gap, limit)
	switch {
	case gap == 0:
		b.pace.burst = limit
	case o.KernelPacing:
		if err := s.pace(o.Bytes, gap); err != nil {
			return nil, nil, err
		}
		b.pace.burst = max(b.pace.burst, min(limit, int(float64(kernelBurst)/gap)))
		b.sent.Pacing = "own+SO_MAX_PACING_RATE"
		b.gaps = stats.NewHistogram()
	default:
		b.pace.burst = max(b.pace.burst, min(limit, int(float64(o.Every)/gap)))
		if o.Every > 0 {
			b.pace.keepMean()
		}
		b.sent.Pacing = "own"
		b.gaps = stats.NewHistogram()
	}
	if o.Batch == BatchAuto && b.pace.burst == 1 {
		batch = BatchSingle // nothing to batch, and the result should not show a batch
	}
	b.sent.FirstSequence, b.sent.NextSequence = o.First, o.First
	b.sent.Batch, b.sent.BurstPackets, b.sent.TargetGap = batch, b.pace.burst, time.Duration(gap)
	b.out = s.newOutbox(batch, o.Bytes, b.pace.burst)
	w := engine.New(engine.Sender, p, b)
	w.Method = sendMethod(batch)
	return w, b, nil
}

// kernelBurst is the time whose packets go to the kernel at once when the kernel spaces them.
const kernelBurst = time.Millisecond

// gap returns the planned time between packets in nanoseconds, or what is wrong with the options.
func (o SendOptions) gap(h Header) (float64, error) {
	switch {
	case o.Bytes < h.Bytes() || o.Bytes > MaxBytes:
		return 0, fmt.Errorf("%w: %d bytes of payload, where %d to %d are possible", ErrBadOptions, o.Bytes,
			h.Bytes(), MaxBytes)
	case o.Packets < 0 || o.PayloadBytes < 0:
		return 0, fmt.Errorf("%w: negative amount", ErrBadOptions)
	case !(o.BitRate >= 0) || !(o.PacketRate >= 0): // written so that NaN is refused too
		return 0, fmt.Errorf("%w: a rate of %v bits or %v packets per second", ErrBadOptions, o.BitRate, o.PacketRate)
	case o.BitRate > 0 && o.PacketRate > 0:
		return 0, fmt.Errorf("%w: both a bit rate and a packet rate", ErrBadOptions)
	}
	packets := o.PacketRate
	if o.BitRate > 0 {
		packets = o.BitRate / float64(8*o.Bytes)
	}
	if packets == 0 {
		return 0, nil
	}
	gap := float64(time.Second) / packets
	if gap > float64(longestGap) {
		return 0, fmt.Errorf("%w: more than %v between packets", ErrBadOptions, longestGap)
	}
	return gap, nil
}

// longestGap is the lowest rate: no user waits longer for a packet.
const longestGap = time.Hour

// limit returns the amount in packets; 0: none.
func (o SendOptions) limit() int64 {
	n := o.Packets
	if o.PayloadBytes > 0 {
		byBytes := (o.PayloadBytes + int64(o.Bytes) - 1) / int64(o.Bytes)
		if n == 0 || byBytes < n {
			n = byBytes
		}
	}
	return n
}

// Idle returns a channel that is closed when the sender has handed its last packet to the kernel.
func (s *Sender) Idle() <-chan struct{} { return s.idle }

// Sent returns what was sent. It is complete, and any goroutine may read it, once Idle is closed,
// and not before; interim counts are in the worker's Tally.
func (s *Sender) Sent() Sent {
	r := s.sent
	r.NextSequence = s.sequence
	r.ForgivenSecond = s.pace.forgiven / 1e9
	if s.gaps != nil {
		r.Gaps = s.gaps.Snapshot()
	}
	return r
}

// Wake does nothing: no call of Loop sleeps longer than wakeEvery.
func (s *Sender) Wake() {}

// Close gives the socket up.
func (s *Sender) Close() {
	s.rest() // a worker that never ran sends nothing more either
	s.socket.Close()
}

func (s *Sender) rest() { s.once.Do(func() { close(s.idle) }) }

// Loop sends.
func (s *Sender) Loop(w *engine.Worker) error {
	// Best effort: with the default slack sleeps end 50 µs late, which the gaps then show.
	_ = sys.SetExactTimers()
	s.clock = newClock()
	for {
		stage := w.Phase.Is()
		if stage >= engine.Tail || s.packets > 0 && s.sent.AllPackets >= s.packets {
			break
		}
		if err := s.round(w, stage == engine.Measured); err != nil {
			s.rest()
			return err
		}
	}
	s.rest()
	for w.Phase.Is() != engine.Stopped {
		engine.SleepUntil(sys.Monotonic() + wakeEvery)
	}
	return nil
}

// round sends what is due, or waits for it for a while.
func (s *Sender) round(w *engine.Worker, measured bool) error {
	now := s.clock.now()
	n, wait := s.pace.take(now)
	if n == 0 {
		s.wait(now, wait)
		return nil
	}
	if s.packets > 0 {
		n = int(min(int64(n), s.packets-s.sent.AllPackets))
	}
	m := Mark{Sequence: s.sequence, Sent: now, Measured: measured}
	for i := range n {
		s.header.Put(s.out.slot(i), m)
		m.Sequence++
	}
	s.time(now, n, measured)
	// Not in the tail: a caller that waits for this sender to be idle would wait as long as the
	// send buffer is full.
	for at := 0; at < n && w.Phase.Is() < engine.Tail; {
		sent, err := s.out.send(at, n)
		if err != nil {
			if sent, err = s.refused(err, at, n); err != nil {
				return err
			}
			s.sent.SocketErrors += int64(sent)
			if measured {
				s.sent.MeasuredSocketErrors += int64(sent)
			}
		}
		at += sent
		s.count(w, sent, measured)
	}
	return nil
}

// count records packets that were handed over.
func (s *Sender) count(w *engine.Worker, n int, measured bool) {
	if measured && n > 0 {
		if s.sent.Packets == 0 {
			s.sent.FirstMeasured = s.sequence
		}
		s.sent.Packets += int64(n)
		s.sent.Bytes += int64(n) * int64(s.bytes)
	}
	s.sequence += uint64(n)
	s.sent.AllPackets += int64(n)
	w.Packets.Store(s.sent.AllPackets)
	w.Bytes.Store(s.sent.AllPackets * int64(s.bytes))
}

// time records the gaps: packets sent together have none between them.
func (s *Sender) time(now time.Duration, n int, measured bool) {
	if measured {
		if s.sent.Packets == 0 {
			s.sent.StartedAt = now
		}
		s.sent.StoppedAt = now
		if s.gaps != nil && s.lastKept {
			s.gaps.Record(int64(now - s.last))
			for range n - 1 {
				s.gaps.Record(0)
			}
		}
	}
	s.last, s.lastKept = now, measured
}

// wait passes the time until packets are due. Long waits sleep, up to a margin that covers the
// wake-up time of a thread; the rest spins. The margin is a twentieth of the gap at most, and so is
// the share of a CPU that spinning costs.
func (s *Sender) wait(now, d time.Duration) {
	const (
		wakeUp    = 60 * time.Microsecond
		worthIt   = 2 * wakeUp // below, sleeping would cost more precision than CPU it saves
		spinShare = 20
	)
	margin := min(wakeUp, max(time.Duration(s.pace.gap)/spinShare, 0))
	if d < worthIt {
		return // the caller's loop spins
	}
	engine.SleepUntil(now + min(d-margin, wakeEvery))
}

// refused decides what an error of sending the packets from at on means: count this many as lost,
// and go on. Zero packets: try again. An error: give up.
func (s *Sender) refused(err error, at, n int) (lost int, _ error) {
	if errors.Is(err, sys.ErrTimeout) {
		s.sent.Stalls++
		return 0, nil
	}
	switch s.out.judge(err) {
	case again:
		s.sent.Reported++
		return 0, nil
	case dropped:
		return s.out.first(at, n), nil
	case noOffload:
		if !s.forced {
			s.out.plain()
			s.sent.Batch = BatchMMsg
			return 0, nil
		}
	case tooLong:
		return 0, fmt.Errorf("send datagrams of %d bytes to %s: %w: %w", s.bytes, s.socket.RemoteAddr(),
			ErrTooLong, err)
	}
	return 0, fmt.Errorf("send datagrams to %s: %w", s.socket.RemoteAddr(), err)
}

// judgement is what an error of a send means.
type judgement int

const (
	fatal     judgement = iota
	again               // the error belongs to an earlier packet; this one was not tried
	dropped             // the packets of the first message are gone
	noOffload           // the path cannot split messages
	tooLong             // the datagrams must not be fragmented and do not fit
)

// clock reads sys.Monotonic through the runtime, whose clock is a vDSO call and no system call.
type clock struct {
	base time.Time
	at   time.Duration // sys.Monotonic at base
}

func newClock() clock { return clock{time.Now(), sys.Monotonic()} }

func (c clock) now() time.Duration { return c.at + time.Since(c.base) }
