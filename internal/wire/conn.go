package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// beatEvery is how often each side says that it lives. At 4 bytes per beat this does not disturb what is measured.
	beatEvery = 2 * time.Second
	// silentBeats is how many of our own beats may pass without a byte from the peer: 8 s.
	silentBeats = 4
	// writeTimeout bounds the writing of one frame to a peer that beats but does not read. Sixteen MiB in a minute is 2.2 Mb/s: slower
	// paths carry small messages only.
	writeTimeout = 60 * time.Second
	// The inbox holds what the peer sent and nobody received yet. Requests and answers never come near these bounds. Together with the frame that
	// is being read they are all the memory that a peer can take, 80 MiB.
	maxInboxMessages = 4096
	maxInboxBytes    = 4 * MaxMessageBytes
)

// Conn is one authenticated control channel. Its methods may be called from several goroutines, except Receive, which one
// goroutine calls. Messages are read as they arrive, so that heartbeats are seen while nobody receives.
type Conn struct {
	rw     io.ReadWriteCloser
	remote net.Addr
	out    chan outgoing // unbuffered: what is taken from it is being written
	ready  chan struct{} // one place: the inbox has something new
	done   chan struct{} // closed when the channel has ended; failure is set by then
	silent atomic.Int32  // own beats since the last byte from the peer
	beat   *time.Timer   // runs tick
	every  time.Duration // between beats; tests shorten it

	mu         sync.Mutex // over all below, and never held while reading or writing
	inbox      []Message  // oldest first
	sizes      []int      // encoded bytes of each message in inbox
	inboxBytes int        // sum of sizes
	failure    error      // why the channel has ended; nil while it lives
}

// outgoing is one frame on its way; written gets the outcome.
type outgoing struct {
	frame   []byte
	written chan error
}

// NewConn frames messages over a channel that is authenticated already (TLS, ssh's standard input and output, a pipe in tests).
// The Conn owns rw from here on and must be closed.
func NewConn(rw io.ReadWriteCloser) *Conn { return newConn(rw, beatEvery) }

func newConn(rw io.ReadWriteCloser, every time.Duration) *Conn {
	c := &Conn{
		rw:    rw,
		out:   make(chan outgoing),
		ready: make(chan struct{}, 1),
		done:  make(chan struct{}),
		every: every,
	}
	// Only network connections know their peer's address; pipes do not.
	if a, ok := rw.(interface{ RemoteAddr() net.Addr }); ok {
		c.remote = a.RemoteAddr()
	}
	go c.read()
	go c.write()
	// Under the lock, because reader and writer may have failed by now, and fail stops the timer.
	c.mu.Lock()
	if c.failure == nil {
		c.beat = time.AfterFunc(every, c.tick)
	}
	c.mu.Unlock()
	return c
}

// RemoteAddr gives the peer's network address, or nil if the channel has none (ssh).
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Done is closed when the channel has ended for whatever reason. Messages that came before can still be received.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Send writes one frame; body is encoded as JSON and may be nil. It returns when the frame is handed to the system. If ctx ends first,
// the channel stays whole, and whether the frame goes out is left open.
func (c *Conn) Send(ctx context.Context, typ string, body any) error {
	frame, err := appendFrame(make([]byte, 0, 512), typ, body)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send %s message: %w", typ, err)
	}
	// Room for the outcome, so that the writer never waits for a Send that was given up.
	o := outgoing{frame: frame, written: make(chan error, 1)}
	select {
	case c.out <- o:
	case <-ctx.Done():
		return fmt.Errorf("send %s message: %w", typ, ctx.Err())
	case <-c.done:
		return c.ended("send " + typ + " message")
	}
	select {
	case err := <-o.written:
		if err != nil {
			return c.ended("send " + typ + " message")
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("send %s message: %w", typ, ctx.Err())
	}
}

// Receive gives the next message. After the channel has ended it gives what had arrived before, then an *Error: ErrPeerGone
// (wrapping io.EOF if the peer closed in order), ErrProtocol, or net.ErrClosed after Close on this side. When ctx ends,
// the channel stays whole.
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
			return Message{}, c.ended("receive message")
		case <-ctx.Done():
			return Message{}, fmt.Errorf("receive message: %w", ctx.Err())
		}
	}
}

// Close ends the channel and whatever waits on it. What Send has returned from without error is still delivered.
func (c *Conn) Close() error {
	c.fail(net.ErrClosed)
	return nil
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

// read is the goroutine that empties the channel.
func (c *Conn) read() {
	r := countingReader{r: c.rw, silent: &c.silent}
	for {
		m, n, err := readFrame(r)
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		// A reader that waited for room would miss the heartbeats behind, so a peer that overfills the inbox loses the channel.
		full := len(c.inbox) >= maxInboxMessages || c.inboxBytes+n > maxInboxBytes
		if !full {
			c.inbox, c.sizes = append(c.inbox, m), append(c.sizes, n)
			c.inboxBytes += n
		}
		c.mu.Unlock()
		if full {
			c.fail(fmt.Errorf("%w: peer sends more than is asked for", ErrProtocol))
			return
		}
		select {
		case c.ready <- struct{}{}:
		default: // the receiver has not yet looked after the last one, and will find both
		}
	}
}

// write is the goroutine that fills the channel, so that a Send can be given up without leaving half a frame behind.
func (c *Conn) write() {
	limited, _ := c.rw.(interface{ SetWriteDeadline(time.Time) error })
	for {
		select {
		case o := <-c.out:
			if limited != nil {
				// A file that is not pollable refuses deadlines; heartbeats bound the wait there.
				_ = limited.SetWriteDeadline(time.Now().Add(writeTimeout))
			}
			_, err := c.rw.Write(o.frame)
			if err != nil {
				c.fail(err)
			}
			o.written <- err
			if err != nil {
				return
			}
		case <-c.done:
			return
		}
	}
}

// tick sends a heartbeat and gives the peer up when it was silent for too many of them. Counting own ticks instead of reading a clock keeps
// a process that was stopped for a while from blaming its peer: only one tick is due after it wakes.
func (c *Conn) tick() {
	if n := c.silent.Add(1); n > silentBeats {
		c.fail(fmt.Errorf("nothing heard for %s", time.Duration(silentBeats)*c.every))
		return
	}
	select {
	case c.out <- outgoing{frame: heartbeat, written: make(chan error, 1)}:
	default: // the writer is busy, and its bytes say as much as a beat
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.beat.Reset(c.every)
	}
}

// fail ends the channel with the first cause given.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	first := c.failure == nil
	if first {
		c.failure = cause
		if c.beat != nil {
			c.beat.Stop()
		}
		close(c.done)
	}
	c.mu.Unlock()
	// Outside the lock: closing TLS writes a last record, and closing ssh waits for its end.
	if first {
		_ = c.rw.Close() // nothing is left to be told about a channel that has ended
	}
}

// ended gives the cause as an error of the operation that met it.
func (c *Conn) ended(op string) error {
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

// errClosedByPeer is io.EOF in words that say what happened.
var errClosedByPeer = fmt.Errorf("it closed the connection: %w", io.EOF)

// countingReader notes that the peer lives with every byte that comes, so that a long frame over a slow path is no silence.
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
