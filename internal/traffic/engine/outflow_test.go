package engine

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
)

// TestOutflow sends in calls of irregular sizes and compares what arrives with the repeated
// pattern.
func TestOutflow(t *testing.T) {
	const amount = 5*patternPeriod + 123
	for _, paced := range []bool{false, true} {
		b, far := blockingPair(t)
		got := make(chan []byte, 1)
		go func() {
			all, _ := io.ReadAll(far)
			got <- all
		}()
		f, err := b.Outflow(paced)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		leave := Stay()
		for sent, call := 0, 1; sent < amount; call = 3*call + 7 {
			n, err := f.Send(min(call, amount-sent))
			if sent += n; err != nil || n > f.CallBytes() {
				t.Fatalf("%d bytes of %d: %v", n, call, err)
			}
		}
		leave()
		if err := b.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		want := bytes.Repeat(Pattern(patternPeriod), 6)[:amount]
		if all := <-got; !bytes.Equal(all, want) {
			t.Errorf("paced %v: %d bytes of %d arrived, or others", paced, len(all), amount)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err := f.Send(1); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("after close: %d, %v", n, err)
		}
	}
}
