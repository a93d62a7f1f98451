package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// keepAtMost is how many workers may sleep in system calls without giving their logical processor
// back. The scheduler wakes each of them a hundred times a second to see whether other goroutines
// should run. A few do not notice; hundreds would hardly do anything else.
const keepAtMost = 16

// SleepUntil lets a worker sleep until sys.Monotonic reads at, or until a signal arrives, the way
// that suits the number of workers. Each sleep of which the scheduler knows makes it look around
// for milliseconds: a hundred a second cost a third of a CPU.
func SleepUntil(at time.Duration) {
	if scheduler.keep.Load() {
		sys.SleepUntilKept(at)
		return
	}
	sys.SleepUntil(at)
}

// spareProcessors are left for the conductor, the control channel and the rest of the program.
const spareProcessors = 2

// scheduler is that of this process. GOMAXPROCS belongs to the whole process, so concurrent tests
// must share one count of what was lent.
var scheduler processors

// processors lends workers a logical processor of the Go scheduler each. A thread that returns from
// a system call needs one to go on; with fewer than threads the scheduler, not the kernel, decides
// which one waits. With 64 connections on 2 CPUs that made the 99.9th percentile of a round trip
// 180 ms instead of 11 ms, while the median looked forty times better than it was. The CPUs do not
// become more: the kernel shares them among the threads, fairly.
type processors struct {
	mu   sync.Mutex
	own  int // GOMAXPROCS when nothing is lent
	lent int
	keep atomic.Bool // workers may keep their logical processor while they sleep, see sys.ReadKept
}

// LendProcessors raises GOMAXPROCS for n workers until the returned function is called, once.
func LendProcessors(n int) (giveBack func()) { return scheduler.lend(n) }

func (p *processors) lend(n int) (giveBack func()) {
	p.change(n)
	return func() { p.change(-n) }
}

func (p *processors) change(by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Read again whenever nothing is lent: the program, or a container's CPU limit (Go 1.25), may
	// have changed it.
	if p.lent == 0 {
		p.own = runtime.GOMAXPROCS(0)
	}
	p.lent += by
	// Before there are fewer processors and after there are more: no worker must keep one that
	// other goroutines wait for.
	defer p.keep.Store(p.lent > 0 && p.lent <= keepAtMost)
	if by < 0 {
		p.keep.Store(false)
	}
	want := p.own
	if p.lent > 0 {
		want = max(p.own, p.lent+spareProcessors)
	}
	// A change stops the world for some microseconds, so only when needed.
	if want != runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(want)
	}
}
