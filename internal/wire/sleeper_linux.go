package wire

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// canSleep tells that a goroutine can wait for a socket without reading from it.
const canSleep = true

// readNow reads what the socket has.
func (s *sleeper) readNow(b []byte) (n int, err error) {
	if rawErr := s.raw.Read(func(fd uintptr) bool {
		// Sockets of package net are non-blocking. "Done" whatever came of it, so that the runtime
		// does not wait.
		n, err = unix.Read(int(fd), b)
		return true
	}); rawErr != nil {
		return 0, rawErr
	}
	switch {
	case err == unix.EAGAIN || err == unix.EINTR: //nolint:errorlint // raw system calls give bare errnos
		return 0, errNothing
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// sleep returns when the socket has something to read, or has ended.
func (s *sleeper) sleep() {
	var one [1]byte
	// The runtime forgets what the poller has told it before it asks, so the question must be put
	// to the socket itself, and after that: what came since the last read would not be told again
	// (epoll(7), edge-triggered).
	_ = s.raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err != unix.EAGAIN //nolint:errorlint // as above
	}) // a socket that was closed is found so by the next read
}
