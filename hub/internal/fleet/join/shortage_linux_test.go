package join

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// scarce is a listener that cannot accept at first, for three reasons in turn.
type scarce struct {
	net.Listener
	fails []syscall.Errno
}

func (s *scarce) Accept() (net.Conn, error) {
	if len(s.fails) > 0 {
		errno := s.fails[0]
		s.fails = s.fails[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", errno)}
	}
	return s.Listener.Accept()
}

// TestServesAfterShortages: the server ended, and the hub with it, when the kernel had no memory.
func TestServesAfterShortages(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(Options{Authority: start(t).authority})
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(t.Context(), &scarce{l, []syscall.Errno{syscall.EMFILE, syscall.ENOBUFS, syscall.EPERM}})
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// Not a ClientHello: the server closes the connection.
	if _, err := c.Write([]byte("no TLS at all\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 100)); n == 0 && !errors.Is(err, io.EOF) {
		t.Errorf("not served: %v", err)
	}
	_ = l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("without its listener: %v", err)
	}
}
