package stamp

import (
	"context"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// underWay is how many packets may wait for their answers; older ones are lost. At the shortest
	// gap of 100 µs that is after 1.6 s. It is a power of two.
	underWay = 1 << 14
	// maxSamples bounds the samples of one direction: 2 MiB.
	maxSamples = 1 << 18
)

// sender sends and receives in one goroutine.
type sender struct {
	socket *socket
	spec   traffic.Spec
	auth   *authenticator
	format format
	ssid   uint16
	clock  clock

	greetWait time.Duration // for the answer to a mark

	packet []byte // the outgoing packet, padding in place
	in     []byte

	sequence uint32 // of the next packet
	waiting  []sending
	network  error // the network's last error
	foreign  int64 // packets that are no answers

	// Of the measured packets.
	sent, answered, duplicates int64
	rtt                        *stats.Histogram
	up, down, whole            way
	upDuplicates               uint32 // packets that reached the reflector twice, since the first mark
	ttl                        uint8
	hasTTL                     bool
	trusted                    bool // both clocks, in every answer so far
	clockError                 float64
	// round trips that include the reflector's time, because its timestamps are inconsistent
	noSplit int64
	stepped int64 // round trips timed by the program, because a clock was set

	every int64 // every n-th sample is kept
	emit  func(traffic.Interval)
	base  time.Time     // zero of now
	open  time.Duration // start of the measured part
	shut  time.Duration
	cut   edge
	count edge
}

// edge is what had been counted at one moment.
type edge struct {
	at       time.Duration
	answered int64
	rttNanos int64
}

// sending is a packet that waits for its answer.
type sending struct {
	at        time.Duration // monotonic
	unix      int64         // T1
	sequence  uint32
	reflector uint32 // its number in the answer
	state     sendState
	measured  bool
}

type sendState uint8

const (
	unused sendState = iota
	underway
	answeredOnce
)

// way collects the samples of one direction, or of both together.
type way struct {
	samples   []int64 // delays in nanoseconds, including the offset of the clocks
	smallest  int64
	count     int64
	last      int64
	highest   uint32
	reordered uint64
	jitter    float64 // nanoseconds
}

// add adds one delay.
func (w *way) add(delay, every int64) {
	if w.count == 0 {
		w.smallest = delay
	} else {
		w.smallest = min(w.smallest, delay)
		w.jitter += (math.Abs(float64(delay-w.last)) - w.jitter) / 16
	}
	w.last = delay
	if w.count%every == 0 && len(w.samples) < cap(w.samples) {
		w.samples = append(w.samples, delay)
	}
	w.count++
}

// late reports whether a packet arrived after one with a higher sequence number.
func (w *way) late(sequence uint32) bool {
	if w.count == 0 {
		w.highest = sequence
	}
	if int32(sequence-w.highest) < 0 {
		w.reordered++
		return true
	}
	w.highest = sequence
	return false
}

// mark is a packet outside the measured part, whose answer shows the reflector's counter.
type mark struct {
	answered  bool
	tries     int
	sequence  uint32
	reflector uint32
}

// mark sends packets until one is answered. Its error is the context's.
func (s *sender) mark(ctx context.Context) (mark, error) {
	var m mark
	for m.tries < greetTries {
		m.tries++
		m.sequence = s.sequence
		s.send(false)
		for until := s.now() + s.greetWait; ; {
			left := until - s.now()
			if left <= 0 {
				break
			}
			if ctx.Err() != nil {
				return m, context.Cause(ctx)
			}
			s.take(min(left, lookEvery))
			if w := &s.waiting[m.sequence%underWay]; w.state == answeredOnce && w.sequence == m.sequence {
				m.answered, m.reflector = true, w.reflector
				return m, nil
			}
		}
	}
	return m, nil
}

// span sends one packet per gap for d. It follows the clock and not the answers, so that a slow
// answer does not delay other packets. Packets that could not be sent in time are skipped: a burst
// to catch up would measure itself.
func (s *sender) span(ctx context.Context, d time.Duration, measured bool) error {
	if d <= 0 {
		return nil
	}
	now := s.now()
	end, next := now+d, now
	s.cut = s.count
	s.cut.at = now
	if measured {
		s.open = now
	}
	for {
		now = s.now()
		cut := s.cut.at + s.spec.Interval
		// A remainder of less than a tenth of an interval is added to the previous one; its own
		// mean would be noise.
		if end-cut < s.spec.Interval/10 {
			cut = end
		}
		if now >= cut {
			s.interval(now, !measured)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case now >= end:
			if measured {
				s.shut = now
			}
			return nil
		case now >= next:
			s.send(measured)
			next = max(next+s.spec.Gap, now)
		}
		s.take(min(max(min(next, end, cut)-s.now(), 0), lookEvery))
	}
}

// settle waits for the answers in flight.
func (s *sender) settle(ctx context.Context) error {
	for until := s.now() + stragglers; s.answered < s.sent; {
		left := until - s.now()
		if left <= 0 {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.take(min(left, lookEvery))
	}
	return nil
}

// send sends the next packet. A packet that this host could not send is lost like any other.
func (s *sender) send(measured bool) {
	l, state := s.auth.layout(), s.clock.now()
	r := request{sequence: s.sequence, estimate: state.estimate(s.format).bits(), ssid: s.ssid}
	w := &s.waiting[s.sequence%underWay]
	*w = sending{sequence: s.sequence, state: underway, measured: measured}
	s.sequence++
	if measured {
		s.sent++
	}
	// One reading provides both clocks, so that they show the same moment.
	at := time.Now()
	w.at, w.unix = at.Sub(s.base), at.UnixNano()
	putTimestamp(r.timestamp[:], w.unix, s.format, state.taiOffset)
	r.put(s.packet, l)
	if s.auth != nil {
		s.auth.sign(s.packet)
	}
	if err := s.socket.send(s.packet); err != nil {
		s.network = err
	}
}

// take waits for one packet and counts it if it is an answer.
func (s *sender) take(wait time.Duration) {
	n, a, err := s.socket.receive(s.in, wait)
	switch {
	case err == nil:
		s.judge(s.in[:n], a, s.now())
	case !quiet(err):
		s.network = err // the network's report on some packet, which stays unanswered
	}
}

// judge examines one received packet.
func (s *sender) judge(p []byte, a arrival, now time.Duration) {
	r, ok := parseReply(p, s.auth)
	w := &s.waiting[r.sent.sequence%underWay]
	if !ok || w.state == unused || w.sequence != r.sent.sequence {
		s.foreign++
		return
	}
	state := s.clock.now()
	t2, ok2 := parseTimestamp(r.received, r.estimate.format, state.taiOffset, a.at)
	t3, ok3 := parseTimestamp(r.left, r.estimate.format, state.taiOffset, a.at)
	if !ok2 || !ok3 {
		s.foreign++
		return
	}
	if w.state == answeredOnce {
		// Two answers with different numbers mean that the packet arrived twice; two with the same
		// number mean that the answer did.
		if r.sequence != w.reflector {
			s.upDuplicates++
		}
		if w.measured {
			s.duplicates++
		}
		return
	}
	w.state, w.reflector = answeredOnce, r.sequence
	rtt := s.roundTrip(w, a, now, t2, t3)
	s.count.answered++
	s.count.rttNanos += rtt
	if r.hasTTL && r.ttl != 0 {
		s.ttl, s.hasTTL = r.ttl, true
	}
	if !w.measured {
		return
	}
	own := state.estimate(s.format)
	// PTP's seconds of TAI can be compared with UTC only if their offset is known.
	comparable := r.estimate.format == ntpFormat || state.taiOffset != 0
	s.trusted = (s.trusted || s.answered == 0) && own.trusted() && r.estimate.trusted() && comparable
	s.clockError = max(s.clockError, own.seconds()+r.estimate.seconds())
	s.answered++
	s.rtt.Record(rtt)
	// The reflector numbers answers as they leave. Among those that arrive in that order, the
	// sender's own numbers show the order on the way up.
	if !s.down.late(r.sequence) {
		s.up.late(r.sent.sequence)
	}
	s.up.add(t2-w.unix, s.every)
	s.down.add(a.at-t3, s.every)
	s.whole.add(rtt, s.every)
}

// roundTrip returns (T4 − T1) − (T3 − T2). Clocks may be set while a packet is in flight, and a far
// end may send any time: an impossible difference is left out, and the result notes it.
func (s *sender) roundTrip(w *sending, a arrival, now time.Duration, t2, t3 int64) int64 {
	whole := a.at - w.unix
	// The kernel saw the answer before the program did, so unless a clock was set, this is an upper
	// bound. Synchronisation moves a clock by less than a millisecond in a round trip.
	if elapsed := int64(now - w.at); whole < 0 || whole > elapsed+int64(time.Millisecond) {
		s.stepped++
		whole = elapsed
	}
	inside := t3 - t2
	if inside < 0 || inside > whole {
		s.noSplit++
		return whole
	}
	return whole - inside
}

// now returns the monotonic time since the test began, without a system call.
func (s *sender) now() time.Duration { return time.Since(s.base) }

// interval reports the counts since the last one.
func (s *sender) interval(now time.Duration, omitted bool) {
	n := s.count.answered - s.cut.answered
	i := traffic.Interval{StartSeconds: s.cut.at.Seconds(), EndSeconds: now.Seconds(), Omitted: omitted}
	if n > 0 {
		i.TransactionsPerSec = float64(n) / (now - s.cut.at).Seconds()
		i.RTTSeconds = float64(s.count.rttNanos-s.cut.rttNanos) / float64(n) / 1e9
	}
	s.cut = s.count
	s.cut.at = now
	s.emit(i)
}

func newHistogram() *stats.Histogram { return stats.NewHistogram() }
