//go:build unix

package dialect

import (
	"io"
	"net"
	"syscall"
)

// peek copies what has arrived on a connection into p without taking it, as soon as that are want
// bytes, or with the connection's read deadline. At the end of a stream what is there has to do.
func peek(conn *net.TCPConn, p []byte, want int) (n int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) (done bool) {
		n, _, failed = syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK)
		switch {
		case failed == syscall.EAGAIN || failed == syscall.EINTR:
			return false
		case failed == nil && n == 0:
			failed = io.EOF
		}
		// With fewer bytes than wanted the poller waits for the next arrival.
		return failed != nil || n >= want
	})
	if err == nil {
		err = failed
	}
	return max(n, 0), err // a call that fails says -1
}
