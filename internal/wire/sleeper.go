package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// sleeper is the TCP connection under the TLS of a server's channel. Its reader could simply block
// in tls.Conn.Read, but would sleep at the bottom of fifteen calls, whose frames need a stack of 4
// KiB. So it asks TLS for what is there without waiting, and when nothing is left, a new goroutine
// with the smallest stack there is, 2 KiB, waits for the socket. With a thousand idle clients that
// is 2 MB.
type sleeper struct {
	*net.TCPConn
	raw     syscall.RawConn
	head    []byte // what was read to find out what the connection is, to be read once more
	probing bool   // Read gives errNothing instead of waiting; belongs to the goroutine that reads
}

func newSleeper(conn *net.TCPConn, head []byte) (*sleeper, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &sleeper{TCPConn: conn, raw: raw, head: head}, nil
}

// errNothing says that a probing Read would have to wait. It is a timeout, so that TLS takes it for
// a passing state and goes on where it was.
var errNothing error = os.ErrDeadlineExceeded

// Read gives the head once more, then what comes.
func (s *sleeper) Read(b []byte) (int, error) {
	switch {
	case len(s.head) > 0:
		n := copy(b, s.head)
		if s.head = s.head[n:]; len(s.head) == 0 {
			s.head = nil // its array is not needed any more
		}
		return n, nil
	case s.probing:
		return s.readNow(b)
	}
	return s.TCPConn.Read(b)
}

// probe reads one byte of r, which stands on top of s, if it is there; false: it is not, or not yet
// whole.
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
