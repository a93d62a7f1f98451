package wire_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

// TestConnCarriesALargeMessageOverASlowPath checks that a message of 800 kB passes a path of 64
// kb/s, which takes 100 s, in both directions of the same channel: the time of a message grows with
// its bytes.
func TestConnCarriesALargeMessageOverASlowPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, toA := net.Pipe()
		y, toB := net.Pipe()
		a, b := wire.NewConnBeating(x, 2*time.Second), wire.NewConnBeating(y, 2*time.Second)
		var paths sync.WaitGroup
		for _, p := range [][2]net.Conn{{toA, toB}, {toB, toA}} {
			paths.Go(func() {
				buf := make([]byte, 1500)
				for {
					n, err := p[0].Read(buf)
					time.Sleep(time.Duration(n) * time.Second / 8000)
					if _, errW := p[1].Write(buf[:n]); err != nil || errW != nil {
						return
					}
				}
			})
		}
		body := bytes.Repeat([]byte("x"), 800_000)
		sent := make(chan error, 1)
		go func() { sent <- a.Send(t.Context(), "large", string(body)) }()
		m, err := b.Receive(t.Context())
		if err != nil || len(m.Body) != len(body)+2 {
			t.Errorf("%d bytes, %v", len(m.Body), err)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if n := b.Arrived(); n < int64(len(body)) {
			t.Errorf("%d bytes arrived", n)
		}
		for _, c := range []io.Closer{a, b, toA, toB} {
			_ = c.Close()
		}
		paths.Wait()
	})
}
