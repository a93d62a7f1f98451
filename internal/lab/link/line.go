package link

import (
	"math"
	"math/rand/v2"
	"time"
)

// Line is one direction of a link: a queue, a wire of a given rate, loss, and a delay. It computes
// with the times that the caller passes, and holds copies of the frames until they are due. Times
// are durations since any fixed moment and must not go back. Only one goroutine may use a Line.
type Line struct {
	params  Params
	rate    int64 // bits per second; 0: no limit
	delay   time.Duration
	jitter  time.Duration
	queue   int64 // wire bytes
	longest int   // bytes of packet

	random *rand.Rand
	pass   int64         // wire segments that still pass before the next is lost; see nextLoss
	lost   int64         // further wire segments to lose in the present run, after its first
	busy   time.Duration // when the wire becomes free
	rest   int64         // remainder of the division in serialise, in bits × 1e9
	bucket bucket
	last   time.Duration // the latest departure so far, so that frames keep their order

	waiting fifo
	small   pool
	large   pool
	count   Counters
}

// NewLine returns one direction. The error names the parameter that is out of range.
func NewLine(p Params) (*Line, error) {
	l := &Line{small: pool{size: 2 << 10}, large: pool{size: maxBuffer}}
	l.random = rand.New(rand.NewPCG(p.Seed, 0x6c696e6572617465))
	return l, l.Set(p)
}

// maxBuffer holds the largest possible super-frame (65535 bytes of IP packet), its Ethernet header
// with two VLAN tags and the header of the socket.
const maxBuffer = headerLen + ethernetLen + 8 + 65536

// Set changes the parameters from the next frame on. Frames on the way keep their times, and the
// random sequence continues.
func (l *Line) Set(p Params) error {
	if err := p.Check(); err != nil {
		return err
	}
	l.params = p
	l.rate = int64(p.RateBitsPerSec)
	l.delay, l.jitter = seconds(p.DelaySeconds), seconds(p.JitterSeconds)
	l.queue, l.longest = p.Queue(), p.MTU()
	if p.HoleBytes > 0 {
		l.longest = min(l.longest, p.HoleBytes)
	}
	l.bucket.set(p.PoliceBitsPerSec, p.PoliceBurstBytes)
	l.rest, l.lost = 0, 0
	l.pass = l.nextLoss()
	return nil
}

// nextLoss draws how many wire segments pass before the next loss, from the geometric distribution:
// one draw serves many segments, and a super-frame without loss costs one comparison. With bursts
// it also draws how many segments are lost together. This is the chain of Gilbert (1960), whose
// good and bad states have geometric lengths; good states are lengthened so that the share lost
// stays LossRatio.
func (l *Line) nextLoss() int64 {
	if l.lost > 0 {
		l.lost--
		return 0
	}
	p, burst := l.params.LossRatio, max(1, l.params.LossBurst)
	switch {
	case p <= 0:
		return math.MaxInt64
	case p >= 1:
		return 0
	case burst == 1:
		return l.geometric(p)
	}
	l.lost = l.geometric(1 / burst)
	// A run of mean length burst follows a gap of mean length g; the share lost is burst ÷ (g +
	// burst). geometric(q) has the mean (1−q) ÷ q. A gap may be empty and join two runs; the means
	// still hold.
	return l.geometric(1 / (1 + burst*(1-p)/p))
}

// geometric draws how many trials fail before the first success, at success probability p.
func (l *Line) geometric(p float64) int64 {
	return int64(min(math.Log(1-l.random.Float64())/math.Log1p(-p), math.MaxInt64/2))
}

// Push takes one buffer of an AF_PACKET socket (header and frame) at time now. The Line copies what
// it keeps.
func (l *Line) Push(now time.Duration, buf []byte) {
	f, err := Parse(buf)
	n := f.segments
	l.count.InPackets += uint64(n)
	if err != nil {
		l.count.DroppedInvalid += uint64(n)
		return
	}
	l.count.InBytes += uint64(f.bytes(0, n))
	if f.segmentLen(0)-ethernetLen > l.longest {
		l.count.DroppedTooLong += uint64(n)
		return
	}
	conform := l.bucket.take(now, &f)
	l.count.DroppedPolicer += uint64(n - conform)
	// Tail drop: segments that no longer fit are dropped; those already queued stay.
	fit := l.fit(now, &f, conform)
	l.count.DroppedQueue += uint64(conform - fit)

	// Losses cut the train into runs. A lost segment has still used the wire.
	for from := 0; from < fit; {
		run := int(min(int64(fit-from), l.pass))
		l.pass -= int64(run)
		if run > 0 {
			done := l.serialise(now, f.wireBytes(from, from+run))
			l.keep(&f, from, from+run, done)
			from += run
		}
		if from < fit {
			l.serialise(now, f.wireBytes(from, from+1))
			l.count.DroppedLoss++
			l.pass = l.nextLoss()
			from++
		}
	}
}

// fit returns how many of the frame's first n wire segments fit into the queue. An idle wire takes
// one segment regardless of the limit.
func (l *Line) fit(now time.Duration, f *Frame, n int) int {
	if l.rate == 0 || n == 0 {
		return n
	}
	room := l.queue - l.Backlog(now)
	if f.wireBytes(0, n) <= room {
		return n
	}
	// In full segments. A short last segment that would just fit is also dropped; the error is less
	// than one segment.
	fit := int(max(0, room) / f.wireBytes(0, 1))
	if fit == 0 && l.busy <= now {
		fit = 1
	}
	return min(fit, n)
}

// Backlog returns the wire bytes that wait at time now, including those of the frame on the wire.
func (l *Line) Backlog(now time.Duration) int64 {
	if l.rate == 0 || l.busy <= now {
		return 0
	}
	// In floating point, because nanoseconds times bits per second overflow 64 bits from 9 s at 1
	// Gb/s on. Backlog only decides drops; the times of frames are exact.
	return int64(float64(l.busy-now) * float64(l.rate) / 8e9)
}

// serialise puts bytes on the wire behind those already there and returns when their last bit has
// left. It carries the remainder of the division on, so the rate is exact over any number of
// frames.
func (l *Line) serialise(now time.Duration, bytes int64) time.Duration {
	if l.rate == 0 {
		return now
	}
	if l.busy < now {
		l.busy, l.rest = now, 0
	}
	// A super-frame of 64 KiB is some 5e14 here, and the remainder is below the rate, at most 1e12.
	// Both are far from 9.2e18, the limit of 63 bits.
	bits := bytes*8*int64(time.Second) + l.rest
	l.busy += time.Duration(bits / l.rate)
	l.rest = bits % l.rate
	return l.busy
}

// keep stores wire segments [from, to), which left the wire at done, until they arrive.
func (l *Line) keep(f *Frame, from, to int, done time.Duration) {
	due := done + l.delay
	if l.jitter > 0 {
		due += time.Duration(l.random.Int64N(2*int64(l.jitter)+1)) - l.jitter
	}
	// Without Reorder, a frame that drew a short delay waits for the frame before it: the delay
	// varies and the order does not, as on a path of queues.
	if !l.params.Reorder {
		due = max(due, l.last)
	}
	l.last = max(l.last, due)

	p := &l.large
	if headerLen+f.payload+(to-from)*f.gso <= l.small.size && len(f.buf) <= l.small.size {
		p = &l.small
	}
	n := to - from
	l.waiting.insert(waiting{due: due, packets: n, bytes: f.bytes(from, to), buf: f.Append(p.get(), from, to)})
	l.count.WaitingPackets += uint64(n)
}

// Next returns when the next frame is due, or false if no frame waits.
func (l *Line) Next() (time.Duration, bool) {
	if l.waiting.len() == 0 {
		return 0, false
	}
	return l.waiting.at(0).due, true
}

// Pop returns the next buffer (header and frame) that is due at time now, or nil. The caller
// returns it with Recycle.
func (l *Line) Pop(now time.Duration) []byte {
	if l.waiting.len() == 0 || l.waiting.at(0).due > now {
		return nil
	}
	w := l.waiting.pop()
	l.count.WaitingPackets -= uint64(w.packets)
	l.count.OutPackets += uint64(w.packets)
	l.count.OutBytes += uint64(w.bytes)
	return w.buf
}

// Recycle takes back a buffer that Pop returned.
func (l *Line) Recycle(buf []byte) {
	if cap(buf) == l.small.size {
		l.small.put(buf)
	} else {
		l.large.put(buf)
	}
}

// Counters returns the totals so far.
func (l *Line) Counters() Counters { return l.count }

// waiting is one buffer on its way.
type waiting struct {
	due     time.Duration
	packets int
	bytes   int64
	buf     []byte
}

// fifo is a ring of waiting buffers in order of departure. It grows and never shrinks.
type fifo struct {
	ring  []waiting // length a power of two
	first int
	count int
}

func (q *fifo) len() int          { return q.count }
func (q *fifo) at(i int) *waiting { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

// insert puts w behind all buffers that are due no later. Without reordering that is always the
// end.
func (q *fifo) insert(w waiting) {
	if q.count == len(q.ring) {
		ring := make([]waiting, max(64, 2*len(q.ring)))
		for i := range q.count {
			ring[i] = *q.at(i)
		}
		q.ring, q.first = ring, 0
	}
	i := q.count
	q.count++
	for ; i > 0 && q.at(i-1).due > w.due; i-- {
		*q.at(i) = *q.at(i - 1)
	}
	*q.at(i) = w
}

func (q *fifo) pop() waiting {
	w := *q.at(0)
	*q.at(0) = waiting{}
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.count--
	return w
}

// pool reuses buffers of one size, the last used first. The queue and the delay bound their number.
type pool struct {
	size int
	free [][]byte
}

func (p *pool) get() []byte {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, p.size)
}

func (p *pool) put(b []byte) { p.free = append(p.free, b) }
