//go:build unix

package dialect

import (
	"io"
	"net"
	"syscall"
)

// peek copies the first bytes of a connection into p and leaves them in the socket. It returns once
// want bytes have arrived, or with the connection's read deadline. At the end of a stream it
// returns what has arrived.
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
		// With fewer bytes than wanted, false makes the poller wait for more.
		return failed != nil || n >= want
	})
	if err == nil {
		err = failed
	}
	return max(n, 0), err // a failed call returns -1
}
