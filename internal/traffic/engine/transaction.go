package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// TransactionOptions are what one end asks and the other answers.
type TransactionOptions struct {
	RequestBytes  int
	ResponseBytes int
	// spin on the socket instead of sleeping in it; [sys.ErrNotSupported] where there are no bare
	// descriptors
	BusyPoll bool
	// Pause is the sleep before each request, during which the connection is idle; it is in no
	// round trip.
	Pause time.Duration
}

// NewRequester makes the worker that sends requests on conn and times each answer, one at a time.
func NewRequester(p *Phase, conn *Conn, o TransactionOptions) (*Worker, error) {
	r := &requester{conn: conn, out: Pattern(o.RequestBytes), in: make([]byte, o.ResponseBytes), pause: o.Pause}
	w := New(Requester, p, r)
	w.Conn, w.RTT = conn, stats.NewHistogram()
	if err := r.calls.choose(w, conn, o.BusyPoll); err != nil {
		return nil, err
	}
	return w, nil
}

// NewResponder makes the worker that answers on conn.
func NewResponder(p *Phase, conn *Conn, o TransactionOptions) (*Worker, error) {
	r := &responder{conn: conn, out: Pattern(o.ResponseBytes), in: make([]byte, o.RequestBytes)}
	w := New(Responder, p, r)
	w.Conn = conn
	if err := r.calls.choose(w, conn, o.BusyPoll); err != nil {
		return nil, err
	}
	return w, nil
}

// calls are how one end of a transaction reads and writes.
type calls struct {
	read, write func([]byte) (int, error)
}

// choose decides between sleeping and spinning, and names the choice.
func (c *calls) choose(w *Worker, conn *Conn, busyPoll bool) error {
	if !busyPoll {
		c.read, c.write, w.Method = conn.read, conn.write, "blocking"
		return nil
	}
	if !canSpin {
		return fmt.Errorf("busy-poll: %w", sys.ErrNotSupported)
	}
	c.read, c.write, w.Method, w.Spins = conn.readNow, conn.writeNow, "busy-poll", true
	return nil
}

type requester struct {
	conn    *Conn
	calls   calls
	out, in []byte
	pause   time.Duration
}

func (r *requester) Wake()  { r.conn.Wake() }
func (r *requester) Close() { r.conn.Close() }

func (r *requester) Loop(w *Worker) error {
	for w.Phase.Is() != Stopped {
		if r.pause > 0 {
			r.rest(w)
		}
		if err := r.round(w); err != nil {
			return err
		}
	}
	return nil
}

// rest sleeps the pause. It looks at the phase now and then, because the end of a test does not
// wait for a long pause.
func (r *requester) rest(w *Worker) {
	for until := w.Now() + r.pause; w.Phase.Is() != Stopped; {
		left := until - w.Now()
		if left <= 0 {
			return
		}
		time.Sleep(min(left, 100*time.Millisecond))
	}
}

// round is one transaction, timed from before its first byte is written until after its last byte
// is read.
func (r *requester) round(w *Worker) error {
	start := w.Now()
	if err := transfer(w, r.calls.write, r.out); err != nil {
		return endOr("send request", err)
	}
	if err := transfer(w, r.calls.read, r.in); err != nil {
		return endOr("receive response", err)
	}
	// Both clock readings come from the vDSO, some tens of nanoseconds each, and lie inside the
	// time measured.
	d := w.Now() - start
	w.Transactions.Add(1)
	w.RTTNanos.Add(int64(d))
	if w.Phase.Is() == Measured {
		w.RTT.Record(int64(d))
	}
	return nil
}

type responder struct {
	conn    *Conn
	calls   calls
	out, in []byte
}

func (r *responder) Wake()  { r.conn.Wake() }
func (r *responder) Close() { r.conn.Close() }

func (r *responder) Loop(w *Worker) error {
	for w.Phase.Is() != Stopped {
		if err := r.round(w); err != nil {
			return err
		}
	}
	return nil
}

// round answers one transaction.
func (r *responder) round(w *Worker) error {
	if err := transfer(w, r.calls.read, r.in); err != nil {
		return endOr("receive request", err)
	}
	if err := transfer(w, r.calls.write, r.out); err != nil {
		return endOr("send response", err)
	}
	w.Transactions.Add(1)
	return nil
}

// transfer moves all of p, and sleeps as long as the test runs.
func transfer(w *Worker, call func([]byte) (int, error), p []byte) error {
	for {
		// As a rule a small message goes in one call, so the common path is one comparison.
		n, err := call(p)
		if n == len(p) {
			return nil
		}
		p = p[n:]
		if err != nil && !errors.Is(err, sys.ErrTimeout) {
			return err
		}
		if w.Phase.Is() == Stopped {
			return errEnded
		}
	}
}

func endOr(op string, err error) error {
	if errors.Is(err, errEnded) {
		return nil
	}
	return fmt.Errorf("%s: %w", op, err)
}
