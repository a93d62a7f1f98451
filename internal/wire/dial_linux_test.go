package wire_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/wire"
)

// TestControlChannelHasSmallSegments checks the listening side, because its packets must be small
// too.
func TestControlChannelHasSmallSegments(t *testing.T) {
	segments := make(chan int, 1)
	addr := answer(t, func(c net.Conn) {
		defer c.Close()
		hello(c, 1)
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Error(err)
		}
		_ = raw.Control(func(fd uintptr) {
			n, err := sys.MaxSegmentBytes(int(fd))
			if err != nil {
				t.Error(err)
			}
			segments <- n
		})
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := wire.Dial(ctx, addr, wire.NewKey()); err == nil {
		t.Fatal("no connection arrived")
	}
	if n := <-segments; n > 1220 {
		t.Errorf("segments of %d bytes", n)
	}
}
