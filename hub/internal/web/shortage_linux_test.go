package web

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

// scarce is a listener that fails some times before each connection.
type scarce struct {
	net.Listener
	with  syscall.Errno
	fails atomic.Int32
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.fails.Add(1)%4 != 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", s.with)}
	}
	return s.Listener.Accept()
}

// TestServesAfterShortages: http.Server ends when accept fails for want of memory or by a firewall.
func TestServesAfterShortages(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM,
		syscall.ECONNABORTED, syscall.ENETUNREACH} {
		t.Run(errno.Error(), func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			b := newBounded(&scarce{Listener: l, with: errno}, 4)
			server := &http.Server{ConnState: b.state, ConnContext: b.remember,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, "done")
				})}
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(b) }()
			for range 3 {
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				code, body, err := get(client, "http://"+l.Addr().String()+"/")
				if err != nil || code != 200 || body != "done" {
					t.Fatalf("%d %q %v", code, body, err)
				}
			}
			_ = server.Close()
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
	}
}
