package nuttcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// lookEvery bounds the sleep of a write and of the pacing, so that a sender notices the end of the
// test.
const lookEvery = 100 * time.Millisecond

// lockstep is the body of a worker that sends on several connections in turn, one block on each.
// The program reads them in this order and takes the first one that ends as the end of all.
type lockstep struct {
	conns         []*engine.Blocking
	block         []byte
	amount        int64   // to send, together; 0: until the phase is Stopped
	bitsPerSecond float64 // together; 0: unlimited
	done          chan struct{}
	calls         int64
}

func newLockstep(conns []*engine.Blocking, p params) *lockstep {
	return &lockstep{
		conns: conns, block: engine.Pattern(p.blockBytes), amount: p.amount(), bitsPerSecond: p.bitsPerSecond(),
		done: make(chan struct{}),
	}
}

// adoptAll takes connections for a lockstep, all or none.
func adoptAll(conns []*net.TCPConn, p params) ([]*engine.Blocking, error) {
	var links []*engine.Blocking
	for i, c := range conns {
		l, err := engine.AdoptBlocking(c, engine.ConnOptions{NoDelay: p.noDelay})
		if err != nil {
			closeAll(links)
			for _, rest := range conns[i+1:] {
				_ = rest.Close() // the first error is the one to return
			}
			return nil, err
		}
		links = append(links, l)
	}
	return links, nil
}

// Loop sends blocks until the test ends.
func (l *lockstep) Loop(w *engine.Worker) error {
	// Pacing follows what is due since the start and not gaps: after a slow write it catches up, so
	// the mean is the requested rate.
	start := w.Now()
	var sent int64
	for i := 0; w.Phase.Is() != engine.Stopped; i = (i + 1) % len(l.conns) {
		p := l.block
		if l.amount > 0 {
			p = p[:min(int64(len(p)), l.amount-sent)]
		}
		if len(p) == 0 {
			close(l.done)
			return nil
		}
		if err := l.write(w, l.conns[i], p); err != nil {
			return fmt.Errorf("send data: %w", err)
		}
		sent += int64(len(p))
		// In short sleeps, because a low rate may need a long one, and the phase may end during it.
		for l.bitsPerSecond > 0 && w.Phase.Is() != engine.Stopped {
			due := time.Duration(float64(sent)*8e9/l.bitsPerSecond) - (w.Now() - start)
			if due <= 0 {
				break
			}
			engine.SleepUntil(sys.Monotonic() + min(due, lookEvery))
		}
	}
	return nil
}

// write writes all of p, or as much as possible until the phase is Stopped.
func (l *lockstep) write(w *engine.Worker, conn *engine.Blocking, p []byte) error {
	for len(p) > 0 && w.Phase.Is() != engine.Stopped {
		conn.SetWriteDeadline(time.Now().Add(lookEvery))
		n, err := conn.Write(p)
		l.calls++
		w.Bytes.Add(int64(n))
		// Bytes written before the deadline count, and the rest is tried again.
		p = p[n:]
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return nil
}

// Wake does nothing: the loop checks its phase often enough.
func (l *lockstep) Wake() {}

// Close closes the connections; the kernel still sends what is queued.
func (l *lockstep) Close() { closeAll(l.conns) }

func closeAll(conns []*engine.Blocking) {
	for _, c := range conns {
		_ = c.Close() // the error of a second close does not matter
	}
}

// closeWrite ends all connections, in their order.
func (l *lockstep) closeWrite() error {
	// It continues after an error: the other connections still have data in flight.
	var failed error
	for _, c := range l.conns {
		failed = errors.Join(failed, c.CloseWrite())
	}
	return failed
}

// closed waits until the other end has closed all connections, and reports whether it did so in
// time.
func closed(conns []*engine.Blocking, patience time.Duration) bool {
	all, until := true, time.Now().Add(patience)
	for _, c := range conns {
		c.SetReadDeadline(until)
		_, err := io.Copy(io.Discard, io.LimitReader(c, callBytes))
		all = all && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	return all
}

// wakeAll ends blocked and later calls on connections.
func wakeAll(conns []*engine.Blocking) {
	for _, c := range conns {
		c.SetDeadline(time.Unix(1, 0))
		c.Wake() // permanently, whatever deadline is set later
	}
}
