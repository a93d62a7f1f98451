package engine

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Blocking is a connection for loops that are written for package net, of servers of other
// dialects. Its calls sleep in the kernel, as those of other programs do, and not in the poller of
// the Go runtime: there each wake-up costs the scheduler two to three times the call itself. 287
// Mb/s into such a server took 75 % of a CPU, where iperf takes 34 %.
//
// Read and Write may be called from two goroutines at once, and everything else from any. Deadlines
// are kept to a fifth of a second.
type Blocking struct {
	conn            *Conn
	readBy, writeBy atomic.Int64 // nanoseconds of Unix time; 0: no deadline
	woken           atomic.Bool

	mu     sync.Mutex
	calls  int // in the kernel
	closed bool
}

// AdoptBlocking takes a connection away from package net, as [Adopt] does.
func AdoptBlocking(conn *net.TCPConn, o ConnOptions) (*Blocking, error) {
	c, err := Adopt(conn, o)
	if err != nil {
		return nil, err
	}
	return &Blocking{conn: c}, nil
}

// Stay makes the calling goroutine keep its thread, and lends it a logical processor, until the
// returned function is called. A loop over Read or Write runs within it.
func Stay() (leave func()) {
	giveBack := LendProcessors(1)
	runtime.LockOSThread()
	return func() {
		runtime.UnlockOSThread()
		giveBack()
	}
}

// Read is that of net.Conn.
func (b *Blocking) Read(p []byte) (int, error) {
	for {
		n, err := b.call(b.conn.read, p)
		switch {
		case !errors.Is(err, sys.ErrTimeout):
			return n, err
		case past(&b.readBy):
			return 0, os.ErrDeadlineExceeded
		case b.woken.Load():
			return 0, io.EOF
		}
	}
}

// Write is that of net.Conn: it writes all of p, or returns an error.
func (b *Blocking) Write(p []byte) (n int, err error) {
	for n < len(p) {
		k, err := b.call(b.conn.write, p[n:])
		n += k
		switch {
		case err != nil && !errors.Is(err, sys.ErrTimeout):
			return n, err
		case n < len(p) && past(&b.writeBy):
			return n, os.ErrDeadlineExceeded
		}
	}
	return n, nil
}

// call makes one call, unless the connection is closed.
func (b *Blocking) call(do func([]byte) (int, error), p []byte) (int, error) {
	if !b.enter() {
		return 0, net.ErrClosed
	}
	b.conn.bound()
	n, err := do(p)
	return n, b.leave(err)
}

// enter begins a call; false: the connection is closed.
func (b *Blocking) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.calls++
	return true
}

// leave ends a call and returns its error. The last of the calls that a Close finds in the kernel
// gives the descriptor up: the number could belong to another file the next moment.
func (b *Blocking) leave(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls--
	if !b.closed {
		return err
	}
	if b.calls == 0 {
		b.conn.release()
	}
	// What arrived before counts; the end of the stream is this end's own doing.
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, sys.ErrTimeout) {
		return net.ErrClosed
	}
	return err
}

// past reports whether a deadline has passed.
func past(deadline *atomic.Int64) bool {
	at := deadline.Load()
	return at != 0 && time.Now().UnixNano() >= at
}

// SetReadDeadline sets the deadline of Read. A call that sleeps looks at it five times a second.
func (b *Blocking) SetReadDeadline(t time.Time) { b.readBy.Store(nanos(t)) }

// SetWriteDeadline sets the deadline of Write, see [Blocking.SetReadDeadline].
func (b *Blocking) SetWriteDeadline(t time.Time) { b.writeBy.Store(nanos(t)) }

// SetDeadline sets both.
func (b *Blocking) SetDeadline(t time.Time) {
	b.SetReadDeadline(t)
	b.SetWriteDeadline(t)
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Info returns what the kernel knows of the connection, also after its end; see [Conn.Info].
func (b *Blocking) Info() (sys.TCPInfo, error) {
	if !b.enter() {
		return sys.TCPInfo{}, net.ErrClosed
	}
	info, err := b.conn.Info()
	return info, b.leave(err)
}

// CloseWrite sends the end of the stream after everything queued.
func (b *Blocking) CloseWrite() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return net.ErrClosed
	}
	return b.conn.CloseWrite()
}

// Wake ends a sleeping Read and all later ones.
func (b *Blocking) Wake() {
	b.woken.Store(true)
	b.conn.Wake()
}

// Close closes the connection, and wakes the calls that sleep on it. The kernel still sends what is
// queued. Further calls return net.ErrClosed. It does not wait.
func (b *Blocking) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return net.ErrClosed
	}
	b.closed = true
	if b.calls == 0 {
		b.conn.release()
		return nil
	}
	b.conn.Wake()
	return nil
}
