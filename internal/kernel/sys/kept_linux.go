package sys

import (
	"io"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls that keep their logical processor.
//
// Go notifies its scheduler before and after an ordinary system call. The scheduler takes the
// logical processor away from a call that sleeps for more than 20 µs, and the thread that checks
// for that (sysmon) wakes every 20 µs as long as it finds such calls. In a ping-pong, in which
// every answer takes longer than that, this costs a context switch for every second transaction. A
// kept call sleeps without notifying the scheduler: the thread keeps its processor, so no other
// goroutine may need that processor (see package engine, LendProcessors).
//
// The scheduler may still need the thread, to stop the world for a garbage collection. It then
// sends a signal, and the call returns [ErrTimeout] instead of being repeated here, so that the
// caller reaches a point where it can be stopped. The kernel never restarts a call with a timeout
// of [SetTimeout] (signal(7)).
//
// recvfrom(2) and sendto(2) reach the socket without the layer of files (vfs_read(), vfs_write()),
// which costs 2 % of a transaction of one byte.

// ReadKept is [Read] that keeps its logical processor. It returns [ErrTimeout] after a signal, too.
func ReadKept(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), 0, 0, 0)
	switch {
	case errno == 0 && n == 0 && len(p) > 0:
		return 0, io.EOF
	case errno == 0:
		return int(n), nil
	}
	return 0, keptError(errno)
}

// WriteKept is [Write] that keeps its logical processor. It returns [ErrTimeout] after a signal,
// too.
func WriteKept(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	if errno == 0 {
		return int(n), nil
	}
	return 0, keptError(errno)
}

// ReadTruncatedKept is [ReadTruncated] that keeps its logical processor. It returns [ErrTimeout]
// after a signal, too.
func ReadTruncatedKept(fd, n int) (int, error) {
	got, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, uintptr(n), unix.MSG_TRUNC, 0, 0)
	switch {
	case errno == 0 && got == 0 && n > 0:
		return 0, io.EOF
	case errno == 0:
		return int(got), nil
	}
	return 0, keptError(errno)
}

// SpliceKept is [Splice] that keeps its logical processor. It returns [ErrTimeout] after a signal,
// too.
func SpliceKept(pipe, socket, n int) (int, error) {
	moved, _, errno := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(pipe), 0, uintptr(socket), 0, uintptr(n),
		unix.SPLICE_F_MOVE)
	if errno == 0 {
		return int(moved), nil
	}
	return 0, keptError(errno)
}

// AcceptKept is [Accept] that keeps its logical processor. It returns [ErrTimeout] also after a
// signal, or if a connection was reset while it waited.
func AcceptKept(fd int, from *Address) (int, error) {
	from.length = uint32(len(from.raw))
	conn, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&from.raw)),
		uintptr(unsafe.Pointer(&from.length)), unix.SOCK_CLOEXEC, 0, 0)
	switch errno {
	case 0:
		return int(conn), nil
	case unix.ECONNABORTED:
		return -1, ErrTimeout
	}
	return -1, keptError(errno)
}

// ConnectKept is [Connect] that keeps its logical processor. It returns [ErrTimeout] after a
// signal, too.
func ConnectKept(fd int, to *Address) error {
	_, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.raw)), uintptr(to.length))
	switch errno {
	case 0, unix.EISCONN: // as in Connect
		return nil
	case unix.EINPROGRESS, unix.EALREADY:
		return ErrTimeout
	}
	return keptError(errno)
}

func keptError(errno unix.Errno) error {
	if errno == unix.EAGAIN || errno == unix.EINTR {
		return ErrTimeout
	}
	return errno
}

// SleepUntilKept is [SleepUntil] that keeps its logical processor. A signal ends it early
// (signal(7): a sleep is never restarted).
func SleepUntilKept(at time.Duration) {
	ts := unix.NsecToTimespec(at.Nanoseconds())
	// As in SleepUntil, the callers read the clock anyway.
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}
