package sys

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A burst is a loop of reads that calls no function which looks at the runtime's request to make
// way (see [HoldProcessor]), in a thread that takes no such signal ([HoldThread]). Many threads
// side by side spend less time in bursts than while they hold their processors.

// BurstOps is the largest number of reads of a [Burst].
const BurstOps = 256

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
	began := nanotime()
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
		now := nanotime()
		b.Took[b.Done] = now - began
		b.Done++
		began = now
	}
	return true
}
