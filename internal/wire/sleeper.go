package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// sleeper is the TCP connection below the TLS of a server's channel. Its reader could simply block
// in tls.Conn.Read, but then it would sleep below fifteen calls, whose frames need a stack of 4
// KiB. So it reads from TLS without waiting, and when no byte is left, a new goroutine with the
// smallest stack, 2 KiB, waits for the socket. For a thousand idle clients that saves 2 MB.
type sleeper struct {
	*net.TCPConn
	raw     syscall.RawConn
	head    []byte // bytes read to identify the connection, to be read again
	probing bool   // Read returns errNothing instead of waiting; belongs to the reading goroutine
}

func newSleeper(conn *net.TCPConn, head []byte) (*sleeper, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &sleeper{TCPConn: conn, raw: raw, head: head}, nil
}

// errNothing reports that a probing Read would have to wait. It is a timeout, so that TLS treats it
// as temporary and can continue.
var errNothing error = os.ErrDeadlineExceeded

// Read returns the head again, and then new bytes.
func (s *sleeper) Read(b []byte) (int, error) {
	switch {
	case len(s.head) > 0:
		n := copy(b, s.head)
		if s.head = s.head[n:]; len(s.head) == 0 {
			s.head = nil // its array is no longer needed
		}
		return n, nil
	case s.probing:
		return s.readNow(b)
	}
	return s.TCPConn.Read(b)
}

// probe reads one byte of r, which is layered on s, if one is available. It returns false if none
// is, or if its TLS record is incomplete.
func (s *sleeper) probe(r interface{ Read([]byte) (int, error) }, b []byte) (bool, error) {
	s.probing = true
	n, err := r.Read(b[:1])
	s.probing = false
	if n == 1 {
		return true, nil // an error comes again with the next byte
	}
	if errors.Is(err, errNothing) {
		return false, nil
	}
	return false, err
}
