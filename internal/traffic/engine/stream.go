package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Sizes of one system call, in bytes.
const (
	// 136 KiB keep a receiver's copy inside a second-level cache, and the cost of the call itself
	// is negligible
	copyBytes = 2 * patternPeriod
	// A sender gives more at a time: acknowledgements that arrive during a call wait for its end
	// and are then processed together, at the cost of one. And congestion controls that model the
	// path (BBR) see what it can carry instead of how often the two ends wake each other. By
	// reference, 544 KiB; 1 MiB is more than the socket has space for, and slower.
	sendBytes = 8 * patternPeriod
	// A fast copying sender keeps its queue short (see shortQueue), so it is inside a call nearly
	// all the time; longer calls are faster. Between two network namespaces, one connection, BBR:
	// 46 Gb/s with 544 KiB, 55 with 1 MiB, 60 with 2 MiB, 61 with 4.
	copySendBytes = 31 * patternPeriod
	maxCallBytes  = 1 << 20 // the most that StreamOptions.BufferBytes may ask for
	// pacedCall is how much of a paced stream one call hands over: what is counted as sent then
	// leaves within some milliseconds.
	pacedCall    = 10 * time.Millisecond
	minPacedCall = 1 << 10
	// longestPacedCall is the most time between two calls of a stream, so that one of some bits a
	// second sends something at all: minPacedCall takes eight seconds at 1 kb/s.
	longestPacedCall = 100 * time.Millisecond
)

// SendMethod is how a stream sender hands bytes to the kernel.
type SendMethod string

// The ways to send. Auto is the fastest on this host that the payload check allows, see
// [ProbeStream], and copying for a stream with a rate.
const (
	SendAuto     SendMethod = ""
	SendCopy     SendMethod = "copy"     // sendmsg(2) from memory, as most programs do
	SendSendfile SendMethod = "sendfile" // sendfile(2) from a memfd: pages go by reference
	SendSplice   SendMethod = "splice"   // vmsplice(2) and splice(2): the same from memory of our own
)

// ReceiveMethod is how a stream receiver takes bytes from the kernel.
type ReceiveMethod string

// The ways to receive. Auto is the one that costs least among those the kernel has.
const (
	ReceiveAuto ReceiveMethod = ""
	ReceiveCopy ReceiveMethod = "copy" // read(2) into memory, as a program that needs its data does
	// MSG_TRUNC (tcp(7)): the kernel drops the bytes in place; samples are still copied and
	// compared
	ReceiveTruncate ReceiveMethod = "truncate"
)

// StreamOptions are how a stream worker moves data. The zero value lets the worker choose.
type StreamOptions struct {
	Send        SendMethod
	Receive     ReceiveMethod
	BufferBytes int    // of one call, at most 1 MiB; default: what is fastest for the method
	Limit       *Quota // sender: send that much and no more, together with all that share it; nil: until the test ends
	Foreign     bool   // receiver: the other end is not this program, so the payload cannot be compared
}

// NewStreamSender makes the worker that sends bulk data on conn as fast as possible: byte n of the
// stream is byte n of the repeated [Pattern]. It returns [sys.ErrNotSupported] for a method that
// this system does not have, and [ErrCorrupt] for one that harms the payload here; then conn stays
// the caller's.
func NewStreamSender(p *Phase, conn *Conn, o StreamOptions) (*Worker, error) {
	method, err := chooseSend(o.Send, conn.pacing > 0)
	if err != nil {
		return nil, err
	}
	w, err := newStreamSender(p, conn, method, o)
	// The host may still refuse a working method to one more worker: a user's pages in pipes
	// are limited, and so are the descriptors of a process.
	if err != nil && o.Send == SendAuto && method != SendCopy {
		w, err = newStreamSender(p, conn, SendCopy, o)
	}
	return w, err
}

// newStreamSender makes it with a chosen method.
func newStreamSender(p *Phase, conn *Conn, method SendMethod, o StreamOptions) (*Worker, error) {
	from, call, err := newSource(method, conn)
	if err != nil {
		return nil, fmt.Errorf("send by %s: %w", method, err)
	}
	if o.BufferBytes > 0 {
		call = min(o.BufferBytes, maxCallBytes)
	}
	if rate := conn.pacing; rate > 0 {
		call = min(call, pacedBytes(rate))
	}
	short := shortQueue{conn: conn, off: method != SendCopy || conn.pacing > 0 || !conn.mayShorten()}
	w := New(Sender, p, &streamSender{conn: conn, from: from, call: call, limit: o.Limit, woken: make(chan struct{}, 1),
		short: short, pace: schedule{bytesPerSecond: conn.pacing}})
	w.Conn, w.Method = conn, string(method)
	return w, nil
}

// pacedBytes returns how much one call of a stream with a rate in bytes per second hands over.
func pacedBytes(rate float64) int {
	least := min(minPacedCall, int(rate*longestPacedCall.Seconds()))
	return max(1, least, int(min(rate*pacedCall.Seconds(), maxCallBytes)))
}

// NewStreamReceiver makes the worker that receives bulk data on conn, counts them and compares
// samples with what [NewStreamSender] sends; a difference ends it with [ErrCorrupt]. The end of the
// stream before the end of the test is an error that wraps io.EOF.
func NewStreamReceiver(p *Phase, conn *Conn, o StreamOptions) (*Worker, error) {
	method, err := chooseReceive(o.Receive)
	if err != nil {
		return nil, err
	}
	r := &streamReceiver{conn: conn, check: newVerifier(o.Foreign), truncate: method == ReceiveTruncate,
		gather: lowWater{conn: conn, off: conn.window}}
	r.call = copyBytes
	if r.truncate {
		r.call = truncateBytes
	}
	if o.BufferBytes > 0 {
		r.call = min(o.BufferBytes, maxCallBytes)
	}
	r.in = make([]byte, r.call)
	if r.truncate {
		r.in = make([]byte, sampleBytes)
	}
	w := New(Receiver, p, r)
	w.Conn, w.Method = conn, string(method)
	return w, nil
}

// source hands over payload by one method.
type source interface {
	// send hands over up to n bytes from position at of the pattern's period on and returns how
	// many the kernel took.
	send(at, n int) (int, error)
	close()
}

// lingerer is a source whose calls may or may not sleep until the socket takes the data.
type lingerer interface{ linger(on bool) }

type streamSender struct {
	conn    *Conn
	from    source
	call    int // bytes of one call
	at      int // position in the pattern's period
	limit   *Quota
	claimed int // of limit, and not sent yet
	short   shortQueue
	pace    schedule
	woken   chan struct{} // ends the sleep of a sender that has nothing left to send

	shared   bool // with other streams on one thread: never sleep
	finished bool // nothing is left to send
	full     bool // the last call took all that it was given
	segment  int  // of a connection that the kernel paces, in bytes, see pacedSegment; 0: none
}

func (s *streamSender) Wake() {
	s.conn.Wake()
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *streamSender) Close() {
	s.conn.Close()
	s.from.close()
}

func (s *streamSender) Loop(w *Worker) error {
	for w.Phase.Is() != Stopped {
		if err := s.round(w); err != nil {
			return err
		}
	}
	return nil
}

// round is one call with as much as the socket takes.
func (s *streamSender) round(w *Worker) error {
	want := s.call
	if s.limit != nil {
		if s.claimed == 0 {
			s.claimed = s.limit.claim(s.call)
		}
		if s.claimed == 0 {
			s.finished, s.full = true, false
			s.rest()
			return nil
		}
		want = s.claimed
	}
	if s.pace.bytesPerSecond > 0 {
		wait := s.pace.wait(w.Now(), want)
		if err := s.conn.hurry(s.pace.hurries); err != nil {
			return err
		}
		if wait > 0 {
			s.full = false
			SleepUntil(sys.Monotonic() + min(wait, wakeEvery))
			return nil
		}
	}
	// A timeout is no failure: it lets the worker look at the phase, which a peer with a closed
	// window would otherwise prevent.
	n, err := s.from.send(s.at, want)
	s.full = n == want
	if n > 0 {
		w.Bytes.Add(int64(n))
		s.pace.sent(n)
		s.at = (s.at + n) % patternPeriod
		if s.limit != nil {
			s.claimed -= n
			s.limit.sent(n)
		}
		if total := w.Bytes.Load(); s.short.meter.due(total) {
			s.short.follow(w.Now(), total)
		}
	}
	if err != nil && !errors.Is(err, sys.ErrTimeout) {
		return fmt.Errorf("send data: %w", err)
	}
	return nil
}

// restEvery bounds the sleep of a sender that has sent its amount. The end of the stream comes
// after it, so a longer sleep would make the transfer look that much longer to the other end.
const restEvery = 2 * time.Millisecond

// rest waits for the end of the test when the quota is used up.
func (s *streamSender) rest() {
	if s.shared {
		return
	}
	late := time.NewTimer(restEvery)
	defer late.Stop()
	select {
	case <-s.woken:
	case <-late.C:
	}
}

type streamReceiver struct {
	conn     *Conn
	call     int    // bytes of one call
	in       []byte // where copied bytes go
	truncate bool
	check    verifier
	gather   lowWater
	full     bool // the last call returned as much as requested
}

func (r *streamReceiver) Wake()  { r.conn.Wake() }
func (r *streamReceiver) Close() { r.conn.Close() }

func (r *streamReceiver) Loop(w *Worker) error {
	for w.Phase.Is() != Stopped {
		if err := r.round(w); err != nil {
			return err
		}
	}
	return nil
}

// round is one call for what has arrived.
func (r *streamReceiver) round(w *Worker) error {
	due := r.check.due()
	asked := len(r.in)
	var n int
	var err error
	if r.truncate && !due {
		asked = r.call
		n, err = r.conn.discard(asked)
	} else {
		n, err = r.conn.read(r.in)
	}
	r.full = n == asked
	w.Bytes.Add(int64(n))
	if err != nil && !errors.Is(err, sys.ErrTimeout) {
		return fmt.Errorf("receive data: %w", err)
	}
	r.gather.drained(n, asked)
	if total := w.Bytes.Load(); r.gather.meter.due(total) {
		r.gather.follow(w.Now(), total)
	}
	if !due || n == 0 {
		r.check.skip(n)
		return nil
	}
	compared, err := r.check.check(r.in[:n])
	w.Verified.Add(int64(compared))
	if err != nil {
		return fmt.Errorf("receive data: %w", err)
	}
	return nil
}
