package peer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/wire"
)

// TestOnce lets one client in, refuses the next, and ends with the first one, whose trial is
// undone.
func TestOnce(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.Once = true })
	// A stranger, and a client that leaves before it has said hello, are no clients yet.
	if _, err := peer.Connect(t.Context(), f.addr, peer.ConnectOptions{Key: wire.NewKey().String()}); !errors.Is(err,
		wire.ErrWrongKey) {
		t.Errorf("a stranger: %v", err)
	}
	silent, err := wire.Dial(t.Context(), f.addr, f.key)
	if err != nil {
		t.Fatal(err)
	}
	silent.Close()
	first := f.connect(f.addr, peer.ConnectOptions{})
	if _, err := peer.Connect(t.Context(), f.addr, peer.ConnectOptions{Key: f.key.String()}); !errors.Is(err,
		peer.ErrBusy) {
		t.Errorf("a second client: %v", err)
	}
	if _, err := first.Run(t.Context(), ping, nil); err != nil {
		t.Error(err)
	}
	if _, err := first.Apply(t.Context(), "to be lost", knob.Setting{Knob: rmem, Value: larger}); err != nil {
		t.Error(err)
	}
	first.Close()
	f.await("left")
	f.stop() // and waits for Serve, which has ended or does so now
	if v := f.value(rmem); v != original {
		t.Errorf("the trial left %q", v)
	}
}

// TestOnceEnds waits for the end that follows the only client, and for the one that follows none.
func TestOnceEnds(t *testing.T) {
	t.Parallel()
	for _, comes := range []bool{true, false} {
		key := wire.NewKey()
		l, err := wire.Listen(t.Context(), "127.0.0.1:0", key)
		if err != nil {
			t.Fatal(err)
		}
		o := peer.ServerOptions{Listener: l, Once: true, Version: "test", HostName: "farside"}
		if !comes {
			o.KeyExpires = time.Millisecond
		}
		done := make(chan error, 1)
		go func() { done <- peer.Serve(context.Background(), o) }()
		if comes {
			c, err := peer.Connect(t.Context(), l.Addr().String(), peer.ConnectOptions{Key: key.String()})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		if err := <-done; comes && err != nil || !comes && !errors.Is(err, peer.ErrKeyExpired) {
			t.Errorf("a client comes (%v): %v", comes, err)
		}
	}
}
