package engine

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// Tally is what one worker counts: the worker alone writes it, the conductor of the test reads it.
// It fills cache lines of its own.
type Tally struct {
	_            [64]byte
	Bytes        atomic.Int64 // payload: received by a receiver, sent by a sender
	Packets      atomic.Int64 // datagrams, of the same payload; 0 for streams
	Transactions atomic.Int64 // requester, connector: answered requests; pinger: answered packets
	RTTNanos     atomic.Int64 // sum over transactions
	Verified     atomic.Int64 // payload bytes compared with what was sent, of Bytes
	_            [24]byte
}

// Role is what a worker does.
type Role int

// The roles.
const (
	Sender    Role = iota // bulk data, stream or datagrams
	Receiver              // of them
	Requester             // sends requests and times the answers; on one connection, or on a new one each time
	Responder             // answers
	Pinger                // single packets, see package echo
)

// Body is what a worker does round after round.
type Body interface {
	// Loop runs until the worker's Phase is Stopped and returns the error that kept it from that,
	// if any. It allocates nothing and takes no lock.
	Loop(w *Worker) error
	// Wake makes every blocked and every later call of Loop return soon. It may be called from any
	// goroutine, before, during and after Loop.
	Wake()
	// Close gives up sockets. It is called after Loop has returned, or without a Loop, possibly
	// more than once.
	Close()
}

// Worker is one thread of a test.
type Worker struct {
	Tally
	Role  Role
	Phase *Phase
	Conn  *Conn            // nil where the body has no single TCP connection
	RTT   *stats.Histogram // nanoseconds of transactions inside the measured window; nil: the body has no transactions
	// how the body moves data, for the result: "copy", "sendfile", "truncate", "sendmmsg+gso"; may
	// be set until Loop starts
	Method string
	CPU    int  // where Run pinned it; -1: nowhere
	Spins  bool // it never sleeps, so it needs a CPU that no other worker of the test needs, see Place

	body Body
	done chan struct{}
	base time.Time // only for its monotonic reading: time.Since of it is one vDSO call

	thread atomic.Int64 // the number of its thread; 0: it does not run yet, or the system has none
	spent  atomic.Int64 // nanoseconds of CPU time, once it has ended

	carrier *carrier // the thread that it shares, see Multiplex; nil: its own
	seat    int      // among those of the carrier
}

// New makes a worker around a body. It does not run yet; [Worker.Close] gives it up.
func New(role Role, p *Phase, body Body) *Worker {
	return &Worker{Role: role, Phase: p, CPU: -1, body: body, done: make(chan struct{}), base: time.Now()}
}

// Now returns the monotonic time since the worker was made.
func (w *Worker) Now() time.Duration { return time.Since(w.base) }

// Run is the worker's whole life; call it once, in a goroutine of its own. It keeps its thread
// until it ends, and the thread ends with it, so no other goroutine inherits the pinning to cpu
// (-1: none). It returns nil when the test ended first.
func (w *Worker) Run(cpu int) error {
	defer close(w.done)
	err := w.run(cpu)
	if w.Phase.Is() >= Tail {
		return nil // what the other end did after its window is no failure of this one
	}
	return err
}

func (w *Worker) run(cpu int) error {
	if w.carrier != nil {
		return w.carrier.run(w, cpu)
	}
	// Never unlocked: the Go runtime ends a thread whose goroutine returns while it is locked.
	runtime.LockOSThread()
	// A CPU can go offline or leave the process's cpuset at any time. Unpinned is slower, not
	// wrong.
	if cpu >= 0 && sys.Pin(cpu) == nil {
		w.CPU = cpu
	}
	w.onThread(sys.ThreadID())
	err := w.body.Loop(w)
	w.offThread()
	return err
}

// onThread notes the thread that the worker runs on.
func (w *Worker) onThread(id int) { w.thread.Store(int64(id)) }

// offThread notes what the thread has used before it ends.
func (w *Worker) offThread() {
	if used, ok := sys.ThreadTime(int(w.thread.Load())); ok {
		w.spent.Store(int64(used))
	}
}

// ThreadTime returns the CPU time that the worker's thread has used so far, and the thread's
// number, because several workers may share one; false if it is unknown.
func (w *Worker) ThreadTime() (thread int, used time.Duration, ok bool) {
	thread = int(w.thread.Load())
	if spent := w.spent.Load(); spent > 0 {
		return thread, time.Duration(spent), true
	}
	used, ok = sys.ThreadTime(thread)
	return thread, used, ok
}

// Done is closed when Run has returned.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Wake makes the worker look at its phase.
func (w *Worker) Wake() { w.body.Wake() }

// Close gives up the worker's sockets; it must not be running.
func (w *Worker) Close() { w.body.Close() }

// errEnded reports a transfer that the end of the test cut short.
var errEnded = errors.New("test is over")
