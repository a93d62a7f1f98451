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
	// beatEvery is how often each side says that it lives. At 4 bytes per beat this does not
	// disturb what is measured.
	beatEvery = 2 * time.Second
	// silentBeats is how many of our own beats may pass without a byte from the peer: 8 s.
	silentBeats = 4
	// writeTimeout bounds the writing of one frame to a peer that beats but does not read. Sixteen
	// MiB in a minute is 2.2 Mb/s: slower paths carry small messages only.
	writeTimeout = 60 * time.Second
	// frameBeats is how many of our own beats the reading of one frame may take: as long as its
	// writing may.
	frameBeats = int32(writeTimeout / beatEvery)
	// The inbox holds what the peer sent and nobody received yet. Requests and answers never come
	// near these bounds. Together with the frame that is being read they are all the memory that a
	// peer can take, 80 MiB.
	maxInboxMessages = 4096
	maxInboxBytes    = 4 * MaxMessageBytes
)

// Conn is one authenticated control channel. Its methods may be called from several goroutines,
// except Receive, which one goroutine calls. Messages are read as they arrive, so that heartbeats
// are seen while nobody receives.
//
// A channel on which nothing happens costs one goroutine with a small stack, so that a server can
// hold a thousand of them: a writer exists only while there is something to write, and the reader
// goes on in a new goroutine when it has to wait, because decoding has made its stack grow and only
// a collection would shrink it again.
type Conn struct {
	rw     io.ReadWriteCloser
	under  *sleeper // under rw, where the reader can sleep; nil: it blocks in rw
	remote net.Addr
	ready  chan struct{} // one place: the inbox has something new
	done   chan struct{} // closed when the channel has ended; failure is set by then
	silent atomic.Int32  // own beats since the last byte from the peer
	// has the system bear as long a silence as this channel does; nil: it has no bound of its own
	hush   func(time.Duration)
	framed atomic.Int32  // own beats since the first byte of the frame that is being read, plus one; 0: none is
	limit  int           // bytes of a frame that the peer may send
	beat   *time.Timer   // runs tick
	every  time.Duration // between beats; tests shorten it

	handling sync.Mutex // held while handle runs, before mu; so it runs once at a time, and never after ended

	mu         sync.Mutex    // over all below, and never held while reading or writing
	handle     func(Message) // gets messages instead of the inbox; nil: nobody has asked
	ended      func()        // runs after the channel has ended and handle has returned; nil: nobody has asked
	inbox      []Message     // oldest first
	sizes      []int         // encoded bytes of each message in inbox
	inboxBytes int           // sum of sizes
	outbox     []*outgoing   // frames that wait for the writer, oldest first; a Send waits for each
	writing    bool          // there is a writer, which looks at the outbox before it ends
	borne      int32         // beats of silence that are allowed beyond silentBeats
	bearers    int           // calls of Bear that are not over
	failure    error         // why the channel has ended; nil while it lives
}

// outgoing is one frame on its way; written gets the outcome and has room for it, so that the
// writer never waits for a Send that was given up. It is nil where nobody wants to know.
type outgoing struct {
	frame   []byte
	written chan error
}

// tell gives the outcome.
func (o *outgoing) tell(err error) {
	if o.written != nil {
		o.written <- err
	}
}

// NewConn frames messages over a channel that is authenticated already (TLS, ssh's standard input
// and output, a pipe in tests). The Conn owns rw from here on and must be closed.
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
	// Under the lock, because the reader may have failed by now, and fail stops the timer.
	c.mu.Lock()
	if c.failure == nil {
		c.beat = time.AfterFunc(every, c.tick)
	}
	c.mu.Unlock()
	return c
}

// RemoteAddr gives the peer's network address, or nil if the channel has none (ssh).
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Done is closed when the channel has ended for whatever reason. Messages that came before can
// still be received.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Send writes one frame; body is encoded as JSON and may be nil. It returns when the frame is
// handed to the system. If ctx ends first, the channel stays whole, and whether the frame goes out
// is left open.
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
	}
	if err != nil {
		return c.endedBy("send " + typ + " message")
	}
	return nil
}

// enqueue gives a frame to the writer, which it starts if there is none. It is false if the channel
// has ended.
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

// withdraw takes back a frame that nobody waits for any more, unless it is being written. Without
// this, a peer that does not read could make the outbox grow by one frame for every Send that is
// given up.
func (c *Conn) withdraw(o *outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.outbox, o); i >= 0 {
		c.outbox = slices.Delete(c.outbox, i, i+1)
	}
}

// Handle has every message given to handle as it comes, in order and one at a time, instead of to
// Receive; those that wait already are given first. handle must not block: the channel is not read
// meanwhile, and its peer would be taken for silent. After the channel has ended and handle has
// returned for the last time, ended runs once, in a goroutine of its own. Handle is called once and
// returns at once; no goroutine waits on the channel beside its reader.
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

// Receive gives the next message. After the channel has ended it gives what had arrived before,
// then an *Error: ErrPeerGone (wrapping io.EOF if the peer closed in order), ErrProtocol, or
// net.ErrClosed after Close on this side. When ctx ends, the channel stays whole.
func (c *Conn) Receive(ctx context.Context) (Message, error) {
	for {
		if m, ok := c.take(); ok {
			return m, nil
		}
		select {
		case <-c.ready:
		case <-c.done:
			// The reader may have put a last message between take and now.
			if m, ok := c.take(); ok {
				return m, nil
			}
			return Message{}, c.endedBy("receive message")
		case <-ctx.Done():
			return Message{}, fmt.Errorf("receive message: %w", ctx.Err())
		}
	}
}

// Close ends the channel and whatever waits on it. What Send has returned from without error is
// still delivered.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	return nil
}

// Bear has the channel bear d of silence more than else, because what is about to be done over the
// same path can drown it: a flood of datagrams leaves no room for heartbeats. It holds until over
// is called and the peer has been heard since; of several calls the longest counts. Both ends must
// call it, each for itself. A peer that vanishes meanwhile is noticed that much later, and no
// message may take longer than that to be read either.
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

// bound counts one more own beat without a byte from the peer as n, and gives how many there may be
// beyond the usual.
func (c *Conn) bound(n int32) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Not at once when it is over: TCP doubles the wait before each retransmission, so that the
	// next one may be as far away as the flood was long. The system's own bound stays where it is,
	// since it counts from the oldest byte that was not acknowledged, whatever was heard since.
	if c.bearers == 0 && n == 1 {
		c.borne = 0
	}
	return c.borne
}

// take pops the oldest message.
func (c *Conn) take() (Message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inbox) == 0 {
		return Message{}, false
	}
	m := c.inbox[0]
	c.inboxBytes -= c.sizes[0]
	c.inbox[0] = Message{} // lets the collector have its body while the slice lives on
	c.inbox, c.sizes = c.inbox[1:], c.sizes[1:]
	return m, true
}

// read is the goroutine that empties the channel. It ends when nothing is left and another one
// sleeps until there is; where that is not possible, it ends after a message, when decoding has
// made its stack grow, and another one reads on.
func (c *Conn) read() {
	r := countingReader{r: c.rw, silent: &c.silent}
	for {
		var first [1]byte
		there, err := c.begin(r, first[:])
		if err == nil && !there {
			go c.sleep()
			return
		}
		size := 0
		if err == nil {
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

// begin reads the first byte of a frame. It is false if the reader would have to wait for it, and
// can do so better elsewhere.
func (c *Conn) begin(r io.Reader, b []byte) (bool, error) {
	if c.under != nil {
		return c.under.probe(r, b)
	}
	_, err := io.ReadFull(r, b)
	return true, err
}

// sleep is the goroutine of a channel on which nothing happens.
func (c *Conn) sleep() {
	c.under.sleep()
	go c.read()
}

// deliver hands a message of n bytes to whoever gets them.
func (c *Conn) deliver(m Message, n int) error {
	c.handling.Lock()
	defer c.handling.Unlock()
	c.mu.Lock()
	handle, over := c.handle, c.failure != nil
	// A reader that waited for room would miss the heartbeats behind, so a peer that overfills the
	// inbox loses the channel.
	full := handle == nil && (len(c.inbox) >= maxInboxMessages || c.inboxBytes+n > maxInboxBytes)
	if handle == nil && !full {
		c.inbox, c.sizes = append(c.inbox, m), append(c.sizes, n)
		c.inboxBytes += n
	}
	c.mu.Unlock()
	switch {
	case full:
		return fmt.Errorf("%w: peer sends more than is asked for", ErrProtocol)
	case handle != nil && over:
		// ended runs or has run; nobody expects anything any more
	case handle != nil:
		handle(m)
	default:
		select {
		case c.ready <- struct{}{}:
		default: // the receiver has not yet looked after the last one, and will find both
		}
	}
	return nil
}

// write writes what is in the outbox and ends when it is empty; there is one at a time, and every
// frame gets an outcome. It is not Send itself that writes, so that a Send can be given up without
// leaving half a frame behind.
func (c *Conn) write() {
	limited, _ := c.rw.(interface{ SetWriteDeadline(time.Time) error })
	for {
		c.mu.Lock()
		if len(c.outbox) == 0 || c.failure != nil {
			late := c.outbox
			c.outbox, c.writing = nil, false
			c.mu.Unlock()
			for _, o := range late {
				o.tell(net.ErrClosed)
			}
			return
		}
		o := c.outbox[0]
		c.outbox = c.outbox[1:]
		c.mu.Unlock()
		if limited != nil {
			// A file that is not pollable refuses deadlines; heartbeats bound the wait there.
			_ = limited.SetWriteDeadline(time.Now().Add(writeTimeout))
		}
		_, err := c.rw.Write(o.frame)
		if err != nil {
			c.fail(err)
		}
		o.tell(err)
	}
}

// tick sends a heartbeat and gives the peer up when it was silent for too many of them. Counting
// own ticks instead of reading a clock keeps a process that was stopped for a while from blaming
// its peer: only one tick is due after it wakes.
func (c *Conn) tick() {
	n := c.silent.Add(1)
	more := c.bound(n)
	if n > silentBeats+more {
		c.fail(fmt.Errorf("nothing heard for %s", time.Duration(silentBeats+more)*c.every))
		return
	}
	// A peer that sends a message byte by byte is never silent, and would hold its memory for as
	// long as it likes.
	if n := c.framed.Load(); n > frameBeats+more {
		c.fail(fmt.Errorf("%w: a message took longer than %s", ErrProtocol, time.Duration(frameBeats+more)*c.every))
		return
	} else if n > 0 {
		c.framed.CompareAndSwap(n, n+1) // unless the frame has just ended
	}
	c.mu.Lock()
	if c.failure != nil {
		c.mu.Unlock()
		return
	}
	c.beat.Reset(c.every)
	busy := c.writing // its bytes say as much as a beat
	if !busy {
		c.outbox = append(c.outbox, &outgoing{frame: heartbeat})
		c.writing = true
	}
	c.mu.Unlock()
	if !busy {
		c.write() // in this goroutine, which the timer has made for this beat
	}
}

// fail ends the channel with the first cause given.
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
	// Outside the lock: closing TLS writes a last record, and closing ssh waits for its end.
	if !first {
		return
	}
	if ended != nil {
		// In a goroutine of its own, since it waits for handle, which may be the one that closes
		// the channel.
		go func() {
			c.handling.Lock()
			defer c.handling.Unlock()
			ended()
		}()
	}
	_ = c.rw.Close() // nothing is left to be told about a channel that has ended
}

// endedBy gives the cause as an error of the operation that met it.
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

// Err waits for the end of the channel and gives its cause as Receive does, as an error of the
// operation op.
func (c *Conn) Err(op string) error { return c.endedBy(op) }

// errClosedByPeer is io.EOF in words that say what happened.
var errClosedByPeer = fmt.Errorf("it closed the connection: %w", io.EOF)

// countingReader notes that the peer lives with every byte that comes, so that a long frame over a
// slow path is no silence.
type countingReader struct {
	r      io.Reader
	silent *atomic.Int32
}

func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if n > 0 {
		r.silent.Store(0)
	}
	return n, err
}

// Control is what a test or a change needs of the channel; *Conn is it.
var _ interface {
	Send(ctx context.Context, typ string, body any) error
	Receive(ctx context.Context) (Message, error)
} = (*Conn)(nil)
