package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// beatEvery is the time between two heartbeats of one side. At 4 bytes per beat they do not
	// disturb a measurement.
	beatEvery = 2 * time.Second
	// silentBeats is how many of its own beats a side waits for a byte from the peer: 8 s.
	silentBeats = 4
	// LeastPace is the rate of a large message, in bytes per second, that is progress: half of what
	// 64 kb/s carries. A slower one has a minute, and so has each piece of one that is sent.
	LeastPace = 4000
	// MostForMessage bounds one message of any pace.
	MostForMessage = 5 * time.Minute
	// writeTimeout limits the writing of one piece to a peer that beats but does not read.
	writeTimeout = 60 * time.Second
	// pieceBytes is what LeastPace carries in this time.
	pieceBytes = LeastPace * int(writeTimeout/time.Second)
	// frameBeats is how many of its own beats a side allows for the reading of one frame: as long
	// as for its writing. Its bytes earn further ones, up to mostFrameBeats.
	frameBeats, mostFrameBeats = int32(writeTimeout / beatEvery), int32(MostForMessage / beatEvery)
	// These limit the inbox, which holds messages not yet received by the caller. Requests and
	// answers never come near the limits. Together with the frame being read, 80 MiB is all the
	// memory that a peer can occupy.
	maxInboxMessages = 4096
	maxInboxBytes    = 4 * MaxMessageBytes
)

// Conn is one authenticated control channel. Its methods are safe for concurrent use, except
// Receive, which one goroutine calls. Messages are read as they arrive, so that heartbeats are
// noticed even if no goroutine receives.
//
// An idle channel costs one goroutine with a small stack, so that a server can hold a thousand of
// them. A writer exists only while a frame waits. The reader continues in a new goroutine when it
// has to wait, because decoding has grown its stack, and only a garbage collection would shrink it
// again.
type Conn struct {
	rw     io.ReadWriteCloser
	under  *sleeper // below rw, if the reader can sleep there; nil: it blocks in rw
	remote net.Addr
	key    Key           // which the client has proved, on the side of a Listener; zero elsewhere
	ready  chan struct{} // capacity 1: the inbox has a new message
	done   chan struct{} // closed when the channel has ended; failure is set by then
	silent atomic.Int32  // own beats since the last byte from the peer
	// makes the system tolerate as long a silence as this channel does; nil: it has no limit of its
	// own
	hush   func(time.Duration)
	framed atomic.Int32 // own beats since the first byte of the frame being read, plus one; 0: no frame
	// bytes that have arrived, and those before the frame being read
	arrived, before atomic.Int64
	limit           int           // bytes of a frame that the peer may send
	beat            *time.Timer   // runs tick
	every           time.Duration // between beats; tests shorten it

	handling sync.Mutex // held while handle runs, before mu; so that handle never runs twice at a time, nor after ended

	mu         sync.Mutex    // guards all fields below; never held while reading or writing
	handle     func(Message) // gets messages instead of the inbox; nil: Handle was not called
	ended      func()        // runs after the channel has ended and handle has returned; nil: Handle was not called
	inbox      []Message     // oldest first
	sizes      []int         // encoded bytes of each message in inbox
	inboxBytes int           // sum of sizes
	outbox     []*outgoing   // frames that wait for the writer, oldest first; each has a waiting Send
	writing    bool          // a writer runs, and checks the outbox before it ends
	borne      int32         // beats of silence allowed beyond silentBeats
	bearers    int           // calls of Bear still in effect
	failure    error         // why the channel has ended; nil while it lives
}

// outgoing is one frame on its way. written receives the result and has room for it, so that the
// writer never waits for an abandoned Send. It is nil if no caller needs the result.
type outgoing struct {
	frame   []byte
	written chan error
}

// finish delivers the result.
func (o *outgoing) finish(err error) {
	if o.written != nil {
		o.written <- err
	}
}

// stuckAfter is how many seconds a Send waits for the writer of a channel that has ended.
const stuckAfter = 5

// afterEnd returns the result of a frame when its channel has ended. The close wakes the writer of
// a socket, but not one that sleeps in a full pipe. Seconds are counted one by one, so that a pause
// of this process is not mistaken for that.
func (o *outgoing) afterEnd() error {
	for range stuckAfter {
		select {
		case err := <-o.written:
			return err
		case <-time.After(time.Second):
		}
	}
	return net.ErrClosed
}

// NewConn frames messages over a channel that is already authenticated (TLS, ssh's standard input
// and output, a pipe in tests). The Conn takes ownership of rw, and the caller must close the Conn.
func NewConn(rw io.ReadWriteCloser) *Conn { return newConn(rw, nil, nil, MaxMessageBytes, beatEvery) }

func newConn(rw io.ReadWriteCloser, under *sleeper, hush func(time.Duration), limit int, every time.Duration) *Conn {
	c := &Conn{
		rw:    rw,
		hush:  hush,
		under: under,
		limit: limit,
		ready: make(chan struct{}, 1),
		done:  make(chan struct{}),
		every: every,
	}
	// Only network connections know their peer's address; pipes do not.
	if a, ok := rw.(interface{ RemoteAddr() net.Addr }); ok {
		c.remote = a.RemoteAddr()
	}
	go c.read()
	// With the lock held, because the reader may have failed by now, and fail stops the timer.
	c.mu.Lock()
	if c.failure == nil {
		c.beat = time.AfterFunc(every, c.tick)
	}
	c.mu.Unlock()
	return c
}

// RemoteAddr returns the peer's network address, or nil if the channel has none (ssh).
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Key returns the key that the client has proved to a Listener; the zero Key on the client's side
// and over ssh.
func (c *Conn) Key() Key { return c.key }

// Done returns a channel that is closed when the control channel has ended for any reason. Messages
// that arrived before can still be received.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Send writes one frame. body is encoded as JSON and may be nil. Send returns when the system has
// accepted the frame. If ctx ends first, the channel remains usable, and it is undetermined whether
// the frame is sent. The end of the channel ends every Send, also one that the system does not let
// go on.
func (c *Conn) Send(ctx context.Context, typ string, body any) error {
	frame, err := appendFrame(make([]byte, 0, 512), typ, body)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send %s message: %w", typ, err)
	}
	o := &outgoing{frame: frame, written: make(chan error, 1)}
	if !c.enqueue(o) {
		return c.endedBy("send " + typ + " message")
	}
	select {
	case err = <-o.written:
	case <-ctx.Done():
		c.withdraw(o)
		return fmt.Errorf("send %s message: %w", typ, ctx.Err())
	case <-c.done:
		err = o.afterEnd()
	}
	if err != nil {
		return c.endedBy("send " + typ + " message")
	}
	return nil
}

// enqueue passes a frame to the writer and starts a writer if none runs. It returns false if the
// channel has ended.
func (c *Conn) enqueue(o *outgoing) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return false
	}
	c.outbox = append(c.outbox, o)
	if !c.writing {
		c.writing = true
		go c.write()
	}
	return true
}

// withdraw takes back an abandoned frame, unless it is being written. Otherwise a peer that does
// not read could grow the outbox by one frame for every abandoned Send.
func (c *Conn) withdraw(o *outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.outbox, o); i >= 0 {
		c.outbox = slices.Delete(c.outbox, i, i+1)
	}
}

// Handle passes every message to handle as it arrives, in order and one at a time, instead of to
// Receive. Messages that already wait are passed first. handle must not block: meanwhile the
// channel is not read, and its peer would seem silent. After the channel has ended and handle has
// returned for the last time, ended runs once, in a new goroutine. The caller calls Handle once; it
// returns at once, and no goroutine except the reader waits on the channel.
func (c *Conn) Handle(handle func(Message), ended func()) {
	c.handling.Lock()
	defer c.handling.Unlock()
	c.mu.Lock()
	waiting := c.inbox
	c.inbox, c.sizes, c.inboxBytes = nil, nil, 0
	c.handle, c.ended = handle, ended
	over := c.failure != nil
	c.mu.Unlock()
	for _, m := range waiting {
		handle(m)
	}
	if over {
		go ended()
	}
}

// Receive returns the next message. After the channel has ended it returns the messages that
// arrived before, and then an *Error: ErrPeerGone (wrapping io.EOF if the peer closed in order),
// ErrProtocol, or net.ErrClosed after Close on this side. If ctx ends, the channel remains usable.
func (c *Conn) Receive(ctx context.Context) (Message, error) {
	for {
		if m, ok := c.take(); ok {
			return m, nil
		}
		select {
		case <-c.ready:
		case <-c.done:
			// The reader may have added a last message since the call of take.
			if m, ok := c.take(); ok {
				return m, nil
			}
			return Message{}, c.endedBy("receive message")
		case <-ctx.Done():
			return Message{}, fmt.Errorf("receive message: %w", ctx.Err())
		}
	}
}

// Arrived returns how many bytes have come from the peer: it grows while a message is under way.
func (c *Conn) Arrived() int64 { return c.arrived.Load() }

// Close ends the channel and every call that waits on it. Frames whose Send returned without an
// error are still delivered.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	return nil
}

// Bear makes the channel tolerate an additional silence of d, because the next test on the same
// path may starve it: a flood of datagrams leaves no room for heartbeats. It remains in effect
// until over is called and a byte from the peer has arrived since; of several calls the longest
// counts. Each end must call it separately. Meanwhile a peer that vanishes is noticed d later, and
// the time limit for reading one message also grows by d.
func (c *Conn) Bear(d time.Duration) (over func()) {
	if d <= 0 {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bearers++
	c.borne = max(c.borne, int32(min((d+c.every-1)/c.every, math.MaxInt32/2)))
	if c.hush != nil {
		c.hush(time.Duration(silentBeats+c.borne) * c.every)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bearers--
	})
}

// bound counts one more beat without a byte from the peer as n, and returns how many beats are
// allowed beyond the usual.
func (c *Conn) bound(n int32) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The extra time does not end together with the last Bear: TCP doubles the wait before each
	// retransmission, so the next one may be as far away as the flood was long. The system's own
	// limit remains, since it counts from the oldest unacknowledged byte, regardless of bytes
	// received since.
	if c.bearers == 0 && n == 1 {
		c.borne = 0
	}
	return c.borne
}

// take removes and returns the oldest message.
func (c *Conn) take() (Message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inbox) == 0 {
		return Message{}, false
	}
	m := c.inbox[0]
	c.inboxBytes -= c.sizes[0]
	c.inbox[0] = Message{} // lets the garbage collector free its body while the slice remains
	c.inbox, c.sizes = c.inbox[1:], c.sizes[1:]
	return m, true
}

// read is the goroutine that reads the channel. When no byte is left, it ends and another goroutine
// sleeps until one arrives. If that is not possible, it ends after a message, when decoding has
// grown its stack, and another goroutine continues.
func (c *Conn) read() {
	r := countingReader{r: c.rw, silent: &c.silent, arrived: &c.arrived}
	for {
		var first [1]byte
		there, err := c.begin(r, first[:])
		if err == nil && !there {
			go c.sleep()
			return
		}
		size := 0
		if err == nil {
			c.before.Store(c.arrived.Load())
			c.framed.Store(1)
			var m Message
			if m, size, err = readFrame(io.MultiReader(bytes.NewReader(first[:]), r), c.limit); err == nil && size > 0 {
				err = c.deliver(m, size)
			}
			c.framed.Store(0)
		}
		if err != nil {
			c.fail(err)
			return
		}
		if c.under == nil && size > 0 {
			go c.read()
			return
		}
	}
}

// begin reads the first byte of a frame. It returns false if the reader would have to wait for it
// and a sleeper can do so at lower cost.
func (c *Conn) begin(r io.Reader, b []byte) (bool, error) {
	if c.under != nil {
		return c.under.probe(r, b)
	}
	_, err := io.ReadFull(r, b)
	return true, err
}

// sleep is the goroutine of an idle channel.
func (c *Conn) sleep() {
	c.under.sleep()
	go c.read()
}

// deliver passes a message of n bytes to the handler or the inbox.
func (c *Conn) deliver(m Message, n int) error {
	c.handling.Lock()
	defer c.handling.Unlock()
	c.mu.Lock()
	handle, over := c.handle, c.failure != nil
	// A reader that waited for room would miss the following heartbeats, so a peer that overfills
	// the inbox loses the channel.
	full := handle == nil && (len(c.inbox) >= maxInboxMessages || c.inboxBytes+n > maxInboxBytes)
	if handle == nil && !full {
		c.inbox, c.sizes = append(c.inbox, m), append(c.sizes, n)
		c.inboxBytes += n
	}
	c.mu.Unlock()
	switch {
	case full:
		return fmt.Errorf("%w: the peer sends more messages than this side receives", ErrProtocol)
	case handle != nil && over:
		// ended is running or has run; no further message is expected
	case handle != nil:
		handle(m)
	default:
		select {
		case c.ready <- struct{}{}:
		default: // the receiver has not yet taken the last signal, and will find both
		}
	}
	return nil
}

// write writes the frames of the outbox and ends when it is empty. At most one writer runs, and
// every frame gets a result. Send does not write itself, so that an abandoned Send never leaves
// half a frame.
func (c *Conn) write() {
	limited, _ := c.rw.(interface{ SetWriteDeadline(time.Time) error })
	for {
		c.mu.Lock()
		if len(c.outbox) == 0 || c.failure != nil {
			late := c.outbox
			c.outbox, c.writing = nil, false
			c.mu.Unlock()
			for _, o := range late {
				o.finish(net.ErrClosed)
			}
			return
		}
		o := c.outbox[0]
		c.outbox = c.outbox[1:]
		c.mu.Unlock()
		var err error
		last := time.Now().Add(MostForMessage)
		for piece := range slices.Chunk(o.frame, pieceBytes) {
			if limited != nil {
				by := time.Now().Add(writeTimeout)
				if by.After(last) {
					by = last
				}
				// A file that is not pollable refuses deadlines; there the heartbeats limit the wait.
				_ = limited.SetWriteDeadline(by)
			}
			if _, err = c.rw.Write(piece); err != nil {
				break
			}
		}
		if err != nil {
			c.fail(err)
		}
		o.finish(err)
	}
}

// tick sends a heartbeat and ends the channel if the peer was silent for too many of them. It
// counts its own ticks instead of reading a clock, so that a process that was stopped for a while
// does not blame its peer: only one tick is due after it continues.
func (c *Conn) tick() {
	n := c.silent.Add(1)
	more := c.bound(n)
	if n > silentBeats+more {
		c.fail(fmt.Errorf("nothing heard for %s", time.Duration(silentBeats+more)*c.every))
		return
	}
	// A peer that sends a message byte by byte is never silent, and would occupy its memory without
	// limit.
	pace := LeastPace * c.every.Seconds()
	earned := int32(min(float64(c.arrived.Load()-c.before.Load())/pace, float64(mostFrameBeats-frameBeats)))
	if n, most := c.framed.Load(), frameBeats+earned+more; n > most {
		c.fail(fmt.Errorf("%w: a message took longer than %s", ErrProtocol, time.Duration(most)*c.every))
		return
	} else if n > 0 {
		c.framed.CompareAndSwap(n, n+1) // unless the frame has ended meanwhile
	}
	c.mu.Lock()
	if c.failure != nil {
		c.mu.Unlock()
		return
	}
	c.beat.Reset(c.every)
	busy := c.writing // its bytes serve as a beat
	if !busy {
		c.outbox = append(c.outbox, &outgoing{frame: heartbeat})
		c.writing = true
	}
	c.mu.Unlock()
	if !busy {
		c.write() // in this goroutine, which the timer started for this beat
	}
}

// fail ends the channel with the first reported cause.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	first, ended := c.failure == nil, c.ended
	if first {
		c.failure = cause
		if c.beat != nil {
			c.beat.Stop()
		}
		close(c.done)
	}
	c.mu.Unlock()
	// Without the lock: closing TLS writes a last record, and closing ssh waits for its end.
	if !first {
		return
	}
	if ended != nil {
		// In a new goroutine, since it waits for handle, which may be the caller that closes the
		// channel.
		go func() {
			c.handling.Lock()
			defer c.handling.Unlock()
			ended()
		}()
	}
	_ = c.rw.Close() // an ended channel has no use for the error
}

// endedBy returns the cause as an error of the operation op.
func (c *Conn) endedBy(op string) error {
	<-c.done
	c.mu.Lock()
	cause := c.failure
	c.mu.Unlock()
	if errors.Is(cause, net.ErrClosed) {
		return fmt.Errorf("%s: %w", op, net.ErrClosed)
	}
	e := &Error{Op: op, Kind: ErrPeerGone, Err: cause}
	switch {
	case errors.Is(cause, ErrProtocol):
		return fmt.Errorf("%s: %w", op, cause)
	case isWrongKeyAlert(cause):
		e.Kind = ErrWrongKey
		e.Advice = wrongKeyAdvice
	case cause == io.EOF:
		e.Err = errClosedByPeer
	}
	return e
}

// Err waits for the end of the channel and returns its cause as Receive does, as an error of the
// operation op.
func (c *Conn) Err(op string) error { return c.endedBy(op) }

// errClosedByPeer is io.EOF with a readable text.
var errClosedByPeer = fmt.Errorf("it closed the connection: %w", io.EOF)

// countingReader records every byte from the peer as a sign of life, so that a long frame over a
// slow path does not count as silence.
type countingReader struct {
	r       io.Reader
	silent  *atomic.Int32
	arrived *atomic.Int64
}

func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if n > 0 {
		r.silent.Store(0)
		r.arrived.Add(int64(n))
	}
	return n, err
}

// Control is the part of the channel that a test or a change needs; *Conn implements it.
var _ interface {
	Send(ctx context.Context, typ string, body any) error
	Receive(ctx context.Context) (Message, error)
} = (*Conn)(nil)
