package traffic

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/internal/stats"
	"github.com/linerate/linerate/internal/sys"
)

// Sizes of one system call, in bytes. 128 KiB keep the copy inside a second-level cache and make the cost of the call itself vanish beside it.
const (
	sendBytes    = 128 << 10
	receiveBytes = 128 << 10
)

// The phases of one side of a test.
const (
	warm     int32 = iota // before the measured window
	measured              // inside it
	tail                  // after it: keep the load up for the other side
	stopped
)

// phase is read by every worker in every round and written four times per test, so its cache line stays shared. The padding keeps it alone on
// the 64 bytes that x86-64 and most of arm64 move at once.
type phase struct {
	_ [64]byte
	v atomic.Int32
	_ [60]byte
}

func (p *phase) is() int32    { return p.v.Load() }
func (p *phase) set(to int32) { p.v.Store(to) }

// tally is what one worker counts: it alone writes, the conductor reads. It fills cache lines that nobody else touches.
type tally struct {
	_            [64]byte
	bytes        atomic.Int64 // payload: received by a receiver, sent by a sender
	transactions atomic.Int64 // rr: answered requests; ping: answered packets
	rttNanos     atomic.Int64 // sum over transactions
	_            [40]byte
}

type role int

const (
	sender role = iota
	receiver
	requester
	responder
	pinger
)

// worker is one thread of a test with its connection.
type worker struct {
	tally
	role  role
	conn  *dataConn // nil for pinger
	phase *phase
	out   []byte // what is sent: a whole send buffer, one request, one response
	in    []byte // what is received: a whole receive buffer, one response, one request
	rtt   *stats.Histogram
	ping  *pingState
	done  chan struct{}
	base  time.Time // only for its monotonic reading: time.Since of it is one vDSO call
}

// newWorker prepares everything that the loop will need, so that the loop itself allocates nothing.
func newWorker(r role, conn *dataConn, s Spec, p *phase) *worker {
	w := &worker{role: r, conn: conn, phase: p, done: make(chan struct{}), base: time.Now()}
	switch r {
	case sender:
		w.out = pattern(sendBytes)
	case receiver:
		// Every byte is copied out of the kernel, as a program that wants its data does. MSG_TRUNC would drop it there (tcp(7)) and measure a
		// receiver that nobody has.
		w.in = make([]byte, receiveBytes)
	case requester:
		w.out, w.in, w.rtt = pattern(s.RequestBytes), make([]byte, s.ResponseBytes), stats.NewHistogram()
	case responder:
		w.out, w.in = pattern(s.ResponseBytes), make([]byte, s.RequestBytes)
	case pinger:
		w.rtt = stats.NewHistogram()
	}
	return w
}

// pattern is payload that no link and no middlebox can compress, the same on every run (xorshift64).
func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint64(0x9e3779b97f4a7c15)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// run is the body of the worker's goroutine. It keeps its thread until it ends, and the thread ends with it, so the pinning is never
// inherited. The error is nil when the test ended first.
func (w *worker) run(cpu int) error {
	defer close(w.done)
	// Never unlocked: the Go runtime ends a thread whose goroutine returns while it is locked.
	runtime.LockOSThread()
	if cpu >= 0 {
		// A CPU can go offline or leave our cpuset at any time. Unpinned is slower, not wrong.
		_ = sys.Pin(cpu)
	}
	err := w.loop()
	if w.phase.is() >= tail {
		return nil // whatever the other side did after its window is no failure of this one
	}
	return err
}

// loop repeats the round of the worker's role until the test is over.
func (w *worker) loop() error {
	var round func() error
	switch w.role {
	case sender:
		round = w.send
	case receiver:
		round = w.receive
	case requester:
		round = w.request
	case responder:
		round = w.respond
	case pinger:
		return w.pingLoop()
	}
	for w.phase.is() != stopped {
		if err := round(); err != nil {
			return err
		}
	}
	return nil
}

// send is one write of as much as the socket takes.
func (w *worker) send() error {
	// A timeout is no failure: it is the chance to look at the phase, which a peer with a closed window would otherwise keep us from.
	n, err := w.conn.write(w.out)
	w.bytes.Add(int64(n))
	if err != nil && !errors.Is(err, sys.ErrTimeout) {
		return fmt.Errorf("send data: %w", gone(err))
	}
	return nil
}

// receive is one read of whatever has arrived.
func (w *worker) receive() error {
	n, err := w.conn.read(w.in)
	w.bytes.Add(int64(n))
	if err != nil && !errors.Is(err, sys.ErrTimeout) {
		return fmt.Errorf("receive data: %w", gone(err))
	}
	return nil
}

// request is one transaction, timed from before its first byte is written until after its last byte is read.
func (w *worker) request() error {
	start := time.Since(w.base)
	if err := w.transfer(w.conn.write, w.out); err != nil {
		return endOr("send request", err)
	}
	if err := w.transfer(w.conn.read, w.in); err != nil {
		return endOr("receive response", err)
	}
	// Both readings come from the vDSO, some tens of nanoseconds each, and lie inside the time measured.
	d := time.Since(w.base) - start
	w.transactions.Add(1)
	w.rttNanos.Add(int64(d))
	if w.phase.is() == measured {
		w.rtt.Record(int64(d))
	}
	return nil
}

// respond answers one transaction.
func (w *worker) respond() error {
	if err := w.transfer(w.conn.read, w.in); err != nil {
		return endOr("receive request", err)
	}
	if err := w.transfer(w.conn.write, w.out); err != nil {
		return endOr("send response", err)
	}
	w.transactions.Add(1)
	return nil
}

// errEnded is a transfer that the end of the test cut short.
var errEnded = errors.New("test is over")

// transfer moves all of p, sleeping on while the test runs.
func (w *worker) transfer(call func([]byte) (int, error), p []byte) error {
	for {
		// The whole of a small message goes in one call as a rule, so the common way through is one comparison.
		n, err := call(p)
		if n == len(p) {
			return nil
		}
		p = p[n:]
		if err != nil && !errors.Is(err, sys.ErrTimeout) {
			return err
		}
		if w.phase.is() == stopped {
			return errEnded
		}
	}
}

func endOr(op string, err error) error {
	if errors.Is(err, errEnded) {
		return nil
	}
	return fmt.Errorf("%s: %w", op, gone(err))
}

// cpuOf spreads workers over the CPUs that this process may use. Senders count from the first CPU on and receivers from the last, so that
// two ends on one machine, as in a practice world, copy on different CPUs. The two ends of a transaction never run at the same time, so
// there they share a CPU: waking an idle one costs an interrupt between CPUs, in a virtual machine 30 µs and more. -1: do not pin.
func cpuOf(cpus []int, r role, index int) int {
	if len(cpus) < 2 {
		return -1
	}
	i := index % len(cpus)
	if r == receiver {
		i = len(cpus) - 1 - i
	}
	return cpus[i]
}
