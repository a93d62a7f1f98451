package sys

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The runtime asks each goroutine that runs for 10 ms to make way: by a signal to its thread, and
// at the next call of a function. A thread that sleeps in an operation seems to run (see
// [HeldRead]), and a goroutine that is locked to its thread makes way by passing its logical
// processor to another thread and back. With 64 threads that is 6400 times a second, once for every
// third read of a disk. A burst is a loop without such a call, in a thread that takes no such
// signal.

// BurstOps is the largest number of reads of a [Burst].
const BurstOps = 1024

// Burst is a number of reads in a row. One goroutine uses it.
type Burst struct {
	Offsets [BurstOps]int64 // of the reads, in bytes
	Took    [BurstOps]int64 // of the completed ones, in nanoseconds
	Done    int             // completed reads
	Got     int             // bytes of the read after them, which failed

	until int64
	errno unix.Errno
}

// Read reads len(p) bytes at each offset until all are done, until a time of the clock of
// [Monotonic] has passed, until stop is true, or until a read fails or is short; the last are Got
// bytes and the errno, nil for a short one.
func (b *Burst) Read(fd int, p []byte, until time.Duration, stop *atomic.Bool) (failed bool, err error) {
	b.Done, b.until = 0, int64(until)
	if b.read(uintptr(fd), unsafe.Pointer(&p[0]), uintptr(len(p)), stop) {
		return false, nil
	}
	if b.errno != 0 {
		return true, b.errno
	}
	return true, nil
}

// read calls no function that could be asked to make way. It returns false after a failure.
//
//go:nosplit
func (b *Burst) read(fd uintptr, p unsafe.Pointer, length uintptr, stop *atomic.Bool) bool {
	began := heldClock()
	for b.Done < BurstOps && began < b.until && !stop.Load() {
		at := b.Offsets[b.Done]
		got, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, fd, uintptr(p), length, uintptr(at), uintptr(uint64(at)>>32), 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || got != length {
			b.Got, b.errno = int(got), errno
			return false
		}
		now := heldClock()
		b.Took[b.Done] = now - began
		b.Done++
		began = now
	}
	return true
}

// heldClock is CLOCK_MONOTONIC in nanoseconds. The functions of package time can be asked to make
// way, and the system call costs 0.3 µs, which is 3 % of a read of a disk. The runtime's own clock
// reads the vDSO on the stack of the scheduler; the runtime keeps it for such callers
// (go.dev/issue/67401).
//
//go:linkname heldClock runtime.nanotime
//go:noescape
func heldClock() int64

// HoldThread blocks the signal with which the runtime asks this thread to make way. The goroutine
// is locked to its thread and never unlocks it, so that the thread ends with it.
func HoldThread() error {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1)
	return unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}
