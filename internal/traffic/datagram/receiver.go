package datagram

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// ReceiveOptions are how a receiver receives.
type ReceiveOptions struct {
	Bytes      int // largest datagram to expect; longer ones are counted as strays. 0: MaxBytes
	Batch      Batch
	Header     Header     // nil: NativeHeader
	Accountant Accountant // counts by rules of its own; nil: none
	// compare samples of the payload after the header with what a [Sender] sends; both ends must be
	// ours
	Verify bool
	// First is the number of the first datagram, if the sender has agreed on a secret one, see
	// [RandomNumber]: what is below it, or far above, is a stray. Nil: whatever comes first is
	// believed.
	First *uint64
	// OwnTime takes the time when the program sees a packet as its arrival, instead of the
	// kernel's. At hundreds of thousands of packets per second that saves several per cent of the
	// receiving CPU, and makes delays some tens of microseconds coarser.
	OwnTime bool
}

// Accountant counts packets by the rules of a dialect. The receiving thread calls it for every
// packet with a good header, including the End ones; it must not allocate or block.
type Accountant interface {
	Count(m Mark, bytes int, arrived time.Duration)
}

// Received is what a receiver counted.
type Received struct {
	Packets int64 // measured, first arrivals: each sequence number once
	Bytes   int64 // their payload

	Duplicates int64 // packets that had arrived before (RFC 5560), measured ones
	Reordered  int64 // of Packets: after a later one (RFC 4737)
	// measured packets so old that duplicates and reordered ones cannot be distinguished; in none
	// of the other counts
	Late int64

	// everything with a good header except the End marks: in and outside the measured window,
	// duplicates and late ones included
	AllPackets      int64
	UniquePackets   int64 // of them, first arrivals
	Strays          int64 // datagrams without a good header, longer than expected, or implausible
	Implausible     int64 // of Strays: with a good header, and a number or a time that the sender cannot have sent
	EndMarks        int64
	Reported        int64  // errors that the network reported (ICMP)
	LowestSequence  uint64 // of all packets; meaningless without AllPackets
	HighestSequence uint64

	FirstAt, LastAt time.Duration   // arrival of the first and the last measured packet, sys.Monotonic of this host
	JitterSeconds   float64         // RFC 3550, of measured packets
	DelayVariation  stats.Latencies // RFC 5481: transit time less the smallest one, of measured packets

	// SocketDrops is how many messages the socket dropped since the receiver was made, and
	// MeasuredSocketDrops since the first measured packet was queued. Without merging they are
	// packets. If Merged is set, the kernel may merge, and one drop may be several packets, see
	// LostAtSocket.
	SocketDrops, MeasuredSocketDrops int64
	DropsAfterLast                   int64 // of SocketDrops: after the last message that arrived
	DropsKnown                       bool  // whether this kernel reports them
	Merged                           bool
	// packets missing between two that arrived, where the socket's drop count rose; no more than it
	// rose by unless Merged
	GapsAtSocket     int64
	DropsBeforeFirst bool // the drop count rose before the first packet arrived

	window windowDrops

	KernelTime bool // whether arrival times are the kernel's; otherwise they are when the program saw the packet
	Batch      Batch
}

// LostAtSocket returns how many of the packets of sent were dropped at the receive buffer. Without
// merging it is what the kernel counted. With merging a drop is a message of unknown length. Then
// it is the number of packets missing wherever the drop count rose, which is exact unless other
// packets were lost between the same two messages.
func (r Received) LostAtSocket(sent Sent) int64 {
	if !r.Merged || r.SocketDrops == 0 {
		return r.SocketDrops
	}
	if r.AllPackets == 0 {
		return sent.AllPackets
	}
	lost := r.GapsAtSocket
	if r.DropsBeforeFirst && r.LowestSequence > sent.FirstSequence {
		lost += int64(r.LowestSequence - sent.FirstSequence)
	}
	if r.DropsAfterLast > 0 && sent.NextSequence > r.HighestSequence {
		lost += int64(sent.NextSequence - r.HighestSequence - 1)
	}
	return lost
}

// windowDrops is what is known about drops around the measured window.
type windowDrops struct {
	first   uint64 // sequence number of the first measured packet that arrived
	after   uint64 // the packets from here to first did not arrive before it
	dropped int64  // by how much the drop count rose right before first
	gaps    int64  // of GapsAtSocket: behind first
}

// MeasuredLostAtSocket is [Received.LostAtSocket] for the measured packets. The sender reports the
// number of the first one and the one after the last.
func (r Received) MeasuredLostAtSocket(first, next uint64) int64 {
	if r.SocketDrops == 0 || next <= first {
		return 0
	}
	// A drop is one packet, unless the kernel merges.
	most := func(packets uint64, drops int64) int64 {
		if r.Merged {
			return int64(packets)
		}
		return min(int64(packets), drops)
	}
	if r.Packets == 0 {
		return most(next-first, r.SocketDrops)
	}
	lost := r.window.gaps
	if from := max(first, r.window.after); r.window.dropped > 0 && from < r.window.first {
		lost += most(r.window.first-from, r.window.dropped)
	}
	if r.DropsAfterLast > 0 && next > r.HighestSequence {
		lost += most(next-r.HighestSequence-1, r.DropsAfterLast)
	}
	return lost
}

// Receiver is the body of a receiving worker.
type Receiver struct {
	socket  *Socket
	header  Header
	each    Accountant
	in      *inbox
	longest int // payload of a datagram
	seen    window
	jitter  jitter
	delays  variation
	drops   dropCount
	check   *checker
	got     Received
	bytes   int64 // payload of AllPackets
	clock   clock

	native           bool          // the send times are of a monotonic clock
	transit, lastAny time.Duration // of the first datagram, and the arrival of the last one
	first            *uint64       // see ReceiveOptions

	ended   chan struct{}
	endOnce sync.Once
	missing atomic.Int64

	// Another goroutine gets a consistent picture without the loop ever waiting for it: it asks,
	// and the loop answers after its next call.
	readers sync.Mutex
	running atomic.Bool
	asked   atomic.Bool
	answer  chan struct{}
	copied  Received
	spread  *variation
	done    <-chan struct{}
}

// NewReceiver makes the worker that receives datagrams on s, in all phases but Stopped.
func NewReceiver(p *engine.Phase, s *Socket, o ReceiveOptions) (*engine.Worker, *Receiver, error) {
	if o.Bytes < 0 || o.Bytes > MaxBytes {
		return nil, nil, fmt.Errorf("%w: %d bytes of payload, where at most %d are possible", ErrBadOptions,
			o.Bytes, MaxBytes)
	}
	if o.Bytes == 0 {
		o.Bytes = MaxBytes
	}
	header := o.Header
	if header == nil {
		header = NativeHeader{}
	}
	if _, err := ParseBatch(string(o.Batch)); err != nil {
		return nil, nil, err
	}
	in, batch, err := s.newInbox(o)
	if err != nil {
		return nil, nil, err
	}
	r := &Receiver{
		socket: s, header: header, each: o.Accountant, in: in, longest: o.Bytes, first: o.First,
		ended: make(chan struct{}), answer: make(chan struct{}, 1), spread: new(variation),
	}
	if o.Verify {
		r.check = newChecker(o.Bytes, header.Bytes())
	}
	_, r.native = header.(NativeHeader)
	r.got.Batch, r.got.Merged = batch, batch == BatchGSO
	r.got.DropsKnown = r.drops.begin(s)
	r.copied = r.got
	w := engine.New(engine.Receiver, p, r)
	w.Method = receiveMethod(batch)
	r.done = w.Done()
	return w, r, nil
}

// end is a method so that calling it allocates nothing.
func (r *Receiver) end() { close(r.ended) }

// Ended returns a channel that is closed when a datagram with an End mark has arrived.
func (r *Receiver) Ended() <-chan struct{} { return r.ended }

// Missing returns how many packets before the latest one have not arrived so far, in and outside
// the measured window. Any goroutine may call it at any time, at no cost. Late packets make it
// smaller again.
func (r *Receiver) Missing() int64 { return r.missing.Load() }

// Received returns the counts so far. Any goroutine may call it at any time; while the worker runs
// it takes up to 20 ms. The loop never waits for it.
func (r *Receiver) Received() Received {
	r.readers.Lock()
	defer r.readers.Unlock()
	if !r.running.Load() {
		return r.finish(r.copied, r.spread) // as it was made
	}
	r.asked.Store(true)
	select {
	case <-r.answer:
	case <-r.done:
	}
	select {
	case <-r.done: // the final counts, also where an answer came right before them
		return r.finish(r.got, &r.delays)
	default:
		return r.finish(r.copied, r.spread)
	}
}

// finish adds what is computed on request.
func (r *Receiver) finish(got Received, v *variation) Received {
	got.DelayVariation = v.summary()
	return got
}

// Wake does nothing: no call of Loop sleeps longer than wakeEvery.
func (r *Receiver) Wake() {}

// Close gives the socket up.
func (r *Receiver) Close() { r.socket.Close() }

// Loop receives.
func (r *Receiver) Loop(w *engine.Worker) error {
	// Best effort, as in the sender.
	_ = sys.SetExactTimers()
	r.clock = newClock()
	r.lastAny = r.clock.at
	r.running.Store(true)
	for w.Phase.Is() != engine.Stopped {
		if err := r.round(w); err != nil {
			r.settle()
			return err
		}
	}
	r.settle()
	return nil
}

// settle takes the last readings.
func (r *Receiver) settle() { r.readDrops() }

// round is one system call and what it returned.
func (r *Receiver) round(w *engine.Worker) error {
	n, err := r.in.receive()
	if err != nil && !errors.Is(err, sys.ErrTimeout) {
		if r.in.judge(err) == fatal {
			return fmt.Errorf("receive datagrams from %s: %w", r.socket.RemoteAddr(), err)
		}
		r.got.Reported++
	}
	if n > 0 {
		now := time.Now()
		mono := r.clock.at + now.Sub(r.clock.base)
		dropped := false
		for i := range n {
			rose, err := r.message(w, r.in.message(i), now, mono)
			if err != nil {
				return fmt.Errorf("receive datagrams from %s: %w", r.socket.RemoteAddr(), err)
			}
			dropped = dropped || rose
		}
		w.Packets.Store(r.got.AllPackets)
		if r.got.UniquePackets > 0 {
			r.missing.Store(int64(r.got.HighestSequence-r.got.LowestSequence) + 1 - r.got.UniquePackets)
		}
		w.Bytes.Store(r.bytes)
		r.in.rest(n, dropped)
	}
	if r.asked.Load() {
		r.reply()
	}
	return nil
}

// reply answers a question.
func (r *Receiver) reply() {
	r.asked.Store(false)
	r.readDrops()
	r.copied, *r.spread = r.got, r.delays
	r.answer <- struct{}{} // one question at a time, so the channel has space
}

// readDrops asks the socket.
func (r *Receiver) readDrops() {
	if !r.got.DropsKnown {
		return
	}
	r.got.SocketDrops, r.got.MeasuredSocketDrops, r.got.DropsAfterLast = r.drops.read(r.socket)
}

// message counts the packets of one message, and takes into account what the socket had dropped
// right before it.
func (r *Receiver) message(w *engine.Worker, m message, now time.Time, mono time.Duration) (dropped bool, _ error) {
	arrived := mono
	if m.arrivedNanos != 0 {
		// The kernel's time is that of the realtime clock, which may be set. Its age is taken from
		// that clock and the rest from the monotonic one.
		arrived -= time.Duration(now.UnixNano() - m.arrivedNanos)
		r.got.KernelTime = true
	}
	drops := r.drops.note(m.drops)
	dropped = drops > 0
	if m.truncated {
		r.got.Strays++
		return dropped, nil
	}
	size := len(m.payload)
	if m.segmentBytes > 0 {
		size = m.segmentBytes
	}
	for rest := m.payload; ; {
		p := rest[:min(size, len(rest))]
		if r.packet(p, arrived, drops) && r.check != nil {
			ok, n := r.check.sample(p)
			if !ok {
				return dropped, ErrCorrupt
			}
			w.Verified.Add(int64(n))
		}
		drops = 0 // dropped packets are missing before the first of several
		if rest = rest[len(p):]; len(rest) == 0 {
			return dropped, nil
		}
	}
}

// packet counts one packet, and reports whether it is data. dropped is the number of messages that
// the socket had dropped right before it.
func (r *Receiver) packet(p []byte, arrived time.Duration, drops int64) (data bool) {
	m, ok := r.header.Parse(p)
	if !ok || len(p) > r.longest { // the buffer for merged messages also takes longer ones
		r.got.Strays++
		return false
	}
	if !m.End && !r.plausible(m, arrived) {
		r.got.Strays++
		r.got.Implausible++
		return false
	}
	if r.each != nil {
		r.each.Count(m, len(p), arrived)
	}
	if m.End {
		r.got.EndMarks++
		r.endOnce.Do(r.end)
		return false
	}
	if r.got.AllPackets == 0 || m.Sequence < r.got.LowestSequence {
		r.got.LowestSequence = m.Sequence
	}
	r.got.AllPackets++
	r.bytes += int64(len(p))
	before := r.seen.highest
	fresh := !r.seen.any
	a := r.seen.note(m.Sequence)
	r.got.HighestSequence = r.seen.highest
	var hole int64 // packets that the socket dropped right before this one
	switch {
	case drops == 0 || a != inOrder:
	case fresh:
		r.got.DropsBeforeFirst = true
	default:
		hole = int64(m.Sequence - before - 1)
		if !r.got.Merged {
			hole = min(hole, drops)
		}
	}
	r.got.GapsAtSocket += hole
	if a == inOrder || a == reordered {
		r.got.UniquePackets++
	}
	if m.Measured {
		if r.got.FirstAt == 0 {
			r.got.FirstAt = arrived
			r.drops.measure()
			r.got.window = windowDrops{first: m.Sequence, dropped: drops}
			if !fresh {
				r.got.window.after = before + 1
			}
		} else {
			r.got.window.gaps += hole
		}
		r.measured(a, m, len(p), arrived)
	}
	return true
}

// measured counts one packet of the measured window.
func (r *Receiver) measured(a arrival, m Mark, size int, arrived time.Duration) {
	r.got.LastAt = arrived
	switch a {
	case duplicate:
		r.got.Duplicates++
	case late:
		r.got.Late++
	case reordered:
		r.got.Reordered++
		fallthrough
	case inOrder:
		r.got.Packets++
		r.got.Bytes += int64(size)
	}
	// Only first arrivals: a duplicate has no transit time of its own, and a late packet may be
	// one.
	if a == inOrder || a == reordered {
		transit := arrived - m.Sent
		r.jitter.note(transit)
		r.got.JitterSeconds = r.jitter.seconds()
		r.delays.note(transit, 1)
	}
}
