package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPieces are as many pieces of memory as one call takes (UIO_MAXIOV, writev(2)).
const maxPieces = 1024

// Ring is memory that a stream repeats for as long as it likes. A call may send far more than the
// ring holds, so that calls are large and rare while what they read stays in the nearest cache of
// the CPU. It is one writer's; writers may share the memory.
type Ring struct {
	period []byte
	pieces []unix.Iovec
	header unix.Msghdr
}

// NewRing makes a ring of period, which must not change and not be empty, for calls of up to
// maxBytes; the kernel takes 1024 periods at most.
func NewRing(period []byte, maxBytes int) *Ring {
	n := min(2+maxBytes/len(period), maxPieces)
	return &Ring{period: period, pieces: make([]unix.Iovec, n)}
}

// WaitFor says whether a call may sleep until the socket takes what it is given.
type WaitFor int

// The ways to wait. With either a call that could send nothing returns [ErrTimeout].
const (
	WaitKept WaitFor = iota // as long as [SetTimeout] says, and like [WriteKept] without telling the Go scheduler
	WaitTold                // as long as [SetTimeout] says
	WaitNone                // not at all
)

// Write sends up to n bytes from position at of the period on and tells how many the kernel took,
// which may be fewer. Errors are as those of [Write].
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
	// A connection that the other end has closed is an error here, not a signal to the whole
	// process.
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
