package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

// TestReplayedSession records a session with the key, byte by byte, and sends what the client sent
// once more. The listener hands no connection and no message out: the keys of a session of TLS 1.3
// belong to both ends, and there are no early data.
func TestReplayedSession(t *testing.T) {
	key := wire.NewKey()
	l := listen(t, key)
	served := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served <- "connection"
			c.Handle(func(m wire.Message) { served <- string(m.Body) }, func() {})
		}
	}()
	tap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	var recorded bytes.Buffer
	var relays sync.WaitGroup
	relays.Go(func() {
		near, err := tap.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			near.Close()
			return
		}
		relays.Go(func() {
			_, _ = io.Copy(struct{ io.Writer }{far}, io.TeeReader(near, &recorded))
			far.Close()
		})
		_, _ = io.Copy(struct{ io.Writer }{near}, struct{ io.Reader }{far})
		near.Close()
	})
	c, err := wire.Dial(bounded(t), tap.Addr().String(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(t.Context(), "set", "a change"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"connection", `"a change"`} {
		if got := <-served; got != want {
			t.Fatalf("served %q, want %q", got, want)
		}
	}
	c.Close()
	relays.Wait()

	rejected := make(chan wire.Rejection, 1)
	l.OnReject(func(r wire.Rejection) { rejected <- r })
	again, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Write(recorded.Bytes()); err != nil && recorded.Len() < 1000 {
		t.Fatal(err)
	}
	_ = again.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, again); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the replayed session is still connected")
	}
	t.Log(<-rejected)
	select {
	case got := <-served:
		t.Errorf("the replay was served: %q", got)
	default:
	}
}

// TestReplayedToken offers the token of a test that is over: a listener knows those of the present
// tests alone.
func TestReplayedToken(t *testing.T) {
	l := listen(t, wire.NewKey())
	rejected := make(chan wire.Rejection, 1)
	l.OnReject(func(r wire.Rejection) { rejected <- r })
	earlier := l.Expect(wire.NewToken(), 1)
	token := earlier.Token()
	earlier.Close()
	present := l.Expect(wire.NewToken(), 1)
	defer present.Close()
	conn, err := wire.DialData(bounded(t), l.Addr().String(), token, 0, wire.DataOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Log(<-rejected)
}
