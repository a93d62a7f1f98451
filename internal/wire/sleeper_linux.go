package wire

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// canSleep reports that a goroutine can wait for a socket without reading from it.
const canSleep = true

// readNow reads the bytes that the socket already has.
func (s *sleeper) readNow(b []byte) (n int, err error) {
	if rawErr := s.raw.Read(func(fd uintptr) bool {
		// Sockets of package net are non-blocking. The function reports "done" in any case, so that
		// the runtime does not wait.
		n, err = unix.Read(int(fd), b)
		return true
	}); rawErr != nil {
		return 0, rawErr
	}
	switch {
	case err == unix.EAGAIN || err == unix.EINTR: //nolint:errorlint // raw system calls return bare errnos
		return 0, errNothing
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// sleep returns when the socket is readable or has ended.
func (s *sleeper) sleep() {
	var one [1]byte
	// The runtime forgets earlier poller events before it waits, so the socket itself must be
	// checked after that: data that arrived since the last read raises no new event (epoll(7),
	// edge-triggered).
	_ = s.raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err != unix.EAGAIN //nolint:errorlint // as above
	}) // the next read reports a closed socket
}
