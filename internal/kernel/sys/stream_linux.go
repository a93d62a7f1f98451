package sys

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadNow is a read that never sleeps. [ErrTimeout] means that no data is available. It is for
// loops that poll a socket.
//
// Such a call takes microseconds, so the Go scheduler is not notified; the notification costs as
// much as the call itself.
func ReadNow(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == 0 && n == 0 && len(p) > 0:
		return 0, io.EOF
	case errno == 0:
		return int(n), nil
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0, ErrTimeout
	}
	return 0, errno
}

// WriteNow is a write that never sleeps. It writes as many bytes as fit; [ErrTimeout] means that
// none did.
func WriteNow(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EAGAIN, unix.EINTR:
		return 0, ErrTimeout
	}
	return 0, errno
}

// ReadTruncated removes up to n bytes from a TCP stream without copying them (MSG_TRUNC, tcp(7),
// Linux 2.4). Errors are those of [Read].
func ReadTruncated(fd, n int) (int, error) {
	for {
		// No buffer: tcp_recvmsg() of the kernel touches none when it truncates.
		got, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), 0, uintptr(n), unix.MSG_TRUNC, 0, 0)
		switch {
		case errno == 0 && got == 0 && n > 0:
			return 0, io.EOF
		case errno == 0:
			return int(got), nil
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return 0, ErrTimeout
		default:
			return 0, errno
		}
	}
}

// CreateMemoryFile creates an immutable file in memory with the given content (memfd_create(2),
// Linux 3.17).
func CreateMemoryFile(name string, content []byte) (fd int, err error) {
	fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) {
			return -1, &UnsupportedError{Feature: "memory files", Since: "Linux 3.17"}
		}
		return -1, fmt.Errorf("create memory file: %w", err)
	}
	for rest := content; len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err != nil && err != unix.EINTR {
			_ = unix.Close(fd) // the write error explains
			return -1, fmt.Errorf("fill memory file: %w", err)
		}
		rest = rest[max(n, 0):]
	}
	// The file's pages travel by reference, so a later change of a page would change the received
	// data.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		_ = unix.Close(fd) // as above
		return -1, fmt.Errorf("seal memory file: %w", err)
	}
	return fd, nil
}

// SendFile sends n bytes of a file, starting at offset, to a socket by reference (sendfile(2)). It
// may send fewer. Errors are those of [Write].
func SendFile(socket, file int, offset int64, n int) (int, error) {
	for {
		sent, err := unix.Sendfile(socket, file, &offset, n)
		switch err {
		case nil:
			return sent, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, ErrTimeout
		default:
			return 0, err
		}
	}
}

// OpenPipe creates a pipe of about this capacity. The kernel rounds up to pages, and a capacity
// above fs.pipe-max-size needs a privilege.
func OpenPipe(bytes int) (read, write int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, fmt.Errorf("open pipe: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(ends[0]), unix.F_SETPIPE_SZ, bytes); err != nil {
		_, _ = unix.Close(ends[0]), unix.Close(ends[1]) // nothing was in it
		return -1, -1, fmt.Errorf("make pipe hold %d bytes: %w", bytes, err)
	}
	return ends[0], ends[1], nil
}

// SpliceMemory puts the pages of p into a pipe by reference (vmsplice(2), Linux 2.6.17). p must not
// change as long as the data may still be read.
func SpliceMemory(pipe int, p []byte) (int, error) {
	for {
		// A bare call, because the function of package unix would let the vector escape.
		v := unix.Iovec{Base: unsafe.SliceData(p)}
		v.SetLen(len(p))
		n, _, errno := unix.Syscall6(unix.SYS_VMSPLICE, uintptr(pipe), uintptr(unsafe.Pointer(&v)), 1, 0, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// Splice moves up to n bytes out of a pipe into a socket by reference (splice(2), Linux 2.6.17).
// Errors are those of [Write].
func Splice(pipe, socket, n int) (int, error) {
	for {
		moved, err := unix.Splice(pipe, nil, socket, nil, n, unix.SPLICE_F_MOVE)
		switch err {
		case nil:
			return int(moved), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, ErrTimeout
		default:
			return 0, err
		}
	}
}

// ShutdownRead ends the receiving direction of a stream without notice to the other end, and wakes
// every thread that sleeps in a read on it.
func ShutdownRead(fd int) error {
	if err := unix.Shutdown(fd, unix.SHUT_RD); err != nil {
		return fmt.Errorf("shut down receiving: %w", err)
	}
	return nil
}

// ShutdownWrite ends the sending direction of a stream. Queued data is still delivered.
func ShutdownWrite(fd int) error {
	if err := unix.Shutdown(fd, unix.SHUT_WR); err != nil {
		return fmt.Errorf("shut down sending: %w", err)
	}
	return nil
}
