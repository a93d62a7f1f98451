package wire_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/wire"
)

// TestServesAfterAShortage uses up the descriptors of a listener. It must accept afterwards, and
// one that rests must not wait for its rest when it is closed.
func TestServesAfterAShortage(t *testing.T) {
	if !testenv.Alone(t) {
		return
	}
	l := listen(t, wire.NewKey())
	rejections := make(chan wire.Rejection, 1)
	l.OnReject(func(r wire.Rejection) { rejections <- r })
	conn, feed := testenv.Starve(t, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	feed()
	if r := <-rejections; !errors.Is(r.Err, wire.ErrNotLinerate) {
		t.Errorf("rejected: %v", r.Err)
	}
	_ = conn.Close()
	_, feed = testenv.Starve(t, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	defer feed()
	time.Sleep(time.Second) // the rests grow: 320 ms, 640 ms
	began := time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("closed within %v", time.Since(began))
}
