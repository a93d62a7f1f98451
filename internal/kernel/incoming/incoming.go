package incoming

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	shortestRest = 5 * time.Millisecond
	longestRest  = time.Second
	// peersInARow is the number of errors of peers after which a loop rests all the same: an errno
	// that does not go away must not keep a processor busy.
	peersInARow = 64
	// reportAgain is how long Report is not called for a further shortage.
	reportAgain = time.Minute
)

// CloseWith calls end, which closes a listener, when ctx ends. A server calls closed before it
// returns: it closes the listener too, and returns after the listener is closed, by whichever of
// the two. The goroutine that accepts learns of the end a moment earlier, and a successor that is
// as quick finds the port in use (EADDRINUSE).
func CloseWith(ctx context.Context, end func()) (closed func()) {
	once := sync.OnceFunc(end)
	stop := context.AfterFunc(ctx, once)
	return func() {
		stop()
		once()
	}
}

// Connections accepts connections until ctx ends, and then returns nil. The caller closes the
// listener when ctx ends, see [CloseWith], which wakes the waiting call. It is an error if the
// listener fails for good, or is closed while ctx goes on. report is [Retry.Report]. take should
// not block.
func Connections[C io.Closer](ctx context.Context, accept func() (C, error), report func(error), take func(C)) error {
	retry := Retry{Report: report}
	for {
		conn, err := accept()
		switch {
		case err != nil:
			err = retry.After(ctx, err)
		case ctx.Err() == nil:
			retry.Done()
			take(conn)
		default:
			_ = conn.Close() // it arrived in the last moment and was promised nothing
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Retry decides after an error of a listening socket whether its loop goes on, and rests. Its zero
// value is ready. It is for one goroutine.
type Retry struct {
	// Report is called for a shortage, at most once a minute: a server that accepts nothing must say
	// so. It may be nil.
	Report func(error)

	rest  time.Duration // the last one; 0: no shortage since the last Done
	peers int           // errors of peers since the last Done
	// when Report was called last
	reported time.Time
}

// After returns nil when the loop should try again, after a rest if err is a shortage. Otherwise it
// returns why the loop ends: the cause of ctx, or err.
func (r *Retry) After(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch causeOf(err) {
	case socket:
		return err
	case peer:
		if r.peers++; r.peers%peersInARow != 0 {
			return nil
		}
	case shortage:
		if r.Report != nil && (r.reported.IsZero() || time.Since(r.reported) >= reportAgain) {
			r.reported = time.Now()
			r.Report(err)
		}
	}
	r.rest = min(max(2*r.rest, shortestRest), longestRest)
	timer := time.NewTimer(r.rest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Done notes that something arrived: the next shortage is a new one.
func (r *Retry) Done() { r.rest, r.peers = 0, 0 }

// Log returns a function for [Retry.Report] that writes a sentence to a log, which may be nil.
func Log(log func(string)) func(error) {
	if log == nil {
		return nil
	}
	return func(err error) { log(err.Error() + "; retrying") }
}

type cause int

const (
	shortage cause = iota
	peer
	socket
)

func causeOf(err error) cause {
	var errno syscall.Errno
	switch {
	case errors.Is(err, net.ErrClosed):
		return socket
	case errors.As(err, &errno) && slices.Contains(ofSocket, errno):
		return socket
	case errors.As(err, &errno) && slices.Contains(ofPeer, errno):
		return peer
	case errors.As(err, &errno), errors.Is(err, os.ErrDeadlineExceeded):
		return shortage
	}
	return socket // of a listener that is not the system's, which knows why
}
