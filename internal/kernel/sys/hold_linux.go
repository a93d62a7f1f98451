package sys

import (
	"fmt"
	"runtime"
	"time"
	_ "unsafe" // go:linkname

	"golang.org/x/sys/unix"
)

// The runtime asks each goroutine that runs for 10 ms to make way: by a signal to its thread, and
// at the next call of a function. A thread that sleeps in an operation seems to run (see
// [HeldRead]), and a goroutine that is locked to its thread makes way by passing its logical
// processor to another thread and back. Both threads wait for a processor of the host then. With 64
// threads that is 6400 times a second, once for every third read of a disk; with one thread on a
// busy host it takes a fifth of the time. A thread that holds its processor is not asked.

// HoldThread blocks the signal with which the runtime asks this thread to make way. The goroutine
// is locked to its thread and never unlocks it, so that the thread ends with it.
func HoldThread() error {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		return fmt.Errorf("block a signal: %w", err)
	}
	return nil
}

// HoldProcessor keeps the logical processor for this goroutine until [ReleaseProcessor]. Meanwhile
// the goroutine must not wait for another one, nor make a system call that the runtime learns of:
// only those of this package whose name begins with Held, ends with Kept, or that say so. The rest
// of the program cannot collect garbage meanwhile, so the caller makes way now and then
// ([MakeWay]).
func HoldProcessor() { procPin() }

// ReleaseProcessor ends [HoldProcessor].
func ReleaseProcessor() { procUnpin() }

// MakeWay lets the runtime stop a goroutine that holds its processor, if it wants to.
func MakeWay() {
	procUnpin()
	runtime.Gosched()
	procPin()
}

// HeldClock is [Monotonic] for a goroutine that holds its processor. The runtime's own clock reads
// the vDSO: a system call costs 0.3 µs, which is 3 % of a read of a disk. The request to make way
// stays until it is obeyed, and each call of a function looks at it; this one does not.
//
//go:nosplit
func HeldClock() time.Duration { return time.Duration(nanotime()) }

//go:linkname nanotime runtime.nanotime
//go:noescape
func nanotime() int64

// These two are what sync.Pool uses. The runtime keeps them, and nanotime, for such callers
// (go.dev/issue/67401).

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
