package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPieces is the number of memory pieces that one call accepts (UIO_MAXIOV, writev(2)).
const maxPieces = 1024

// Ring is memory that a stream repeats indefinitely. A call may send far more bytes than the ring
// holds, so that calls are large and rare while the data they read remains in the nearest cache of
// the CPU. A Ring belongs to one writer; several rings may share the memory.
type Ring struct {
	period []byte
	pieces []unix.Iovec
	header unix.Msghdr
}

// NewRing returns a ring of period, which must not be empty and must not change, for calls of up to
// maxBytes. One call sends at most 1024 periods, the kernel's limit.
func NewRing(period []byte, maxBytes int) *Ring {
	n := min(2+maxBytes/len(period), maxPieces)
	return &Ring{period: period, pieces: make([]unix.Iovec, n)}
}

// WaitFor selects whether a call may sleep until the socket accepts data.
type WaitFor int

// The ways to wait. With each of them, a call that could not send any byte returns [ErrTimeout].
const (
	WaitKept WaitFor = iota // for the time of [SetTimeout], without notifying the Go scheduler, like [WriteKept]
	WaitTold                // for the time of [SetTimeout]
	WaitNone                // not at all
)

// Write sends up to n bytes, starting at position at of the period, and returns how many bytes the
// kernel accepted, which may be fewer. Errors are those of [Write].
func (r *Ring) Write(fd, at, n int, wait WaitFor) (int, error) {
	used := 0
	for ; n > 0 && used < len(r.pieces); used++ {
		size := min(n, len(r.period)-at)
		r.pieces[used].Base = &r.period[at]
		r.pieces[used].SetLen(size)
		at = 0
		n -= size
	}
	r.header.Iov = &r.pieces[0]
	r.header.SetIovlen(used)
	// Writing to a connection that the other end has closed returns an error here, instead of a
	// signal to the whole process.
	flags := unix.MSG_NOSIGNAL
	call := unix.RawSyscall
	switch wait {
	case WaitTold:
		call = unix.Syscall
	case WaitNone:
		flags |= unix.MSG_DONTWAIT
	}
	sent, _, errno := call(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.header)), uintptr(flags))
	if errno == 0 {
		return int(sent), nil
	}
	return 0, keptError(errno)
}
