package peer_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
)

// TestStolenKey has a second host with a key that was read from the first host's process list.
func TestStolenKey(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.KeyClients = 1 })
	owner := f.connect(f.addr, peer.ConnectOptions{})
	thief := forwardFrom(t, "127.0.0.2", f.addr)
	_, err := peer.Connect(t.Context(), thief.addr, peer.ConnectOptions{Key: f.key.String()})
	if !errors.Is(err, peer.ErrKeyBound) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a second host with the same key: %v", err)
	}
	f.await("with the key of 127.0.0.1, turned away")
	// The first host keeps the key after its connection has ended.
	owner.Close()
	f.await("left")
	if _, err := peer.Connect(t.Context(), thief.addr, peer.ConnectOptions{Key: f.key.String()}); !errors.Is(err,
		peer.ErrKeyBound) {
		t.Errorf("after the first host has left: %v", err)
	}
	if _, err := f.connect(f.addr, peer.ConnectOptions{}).Read(t.Context(), rmem); err != nil {
		t.Errorf("the first host again: %v", err)
	}
}

func TestKeyOfSeveralHosts(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.KeyClients = 2 })
	for _, from := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.1"} {
		f.connect(forwardFrom(t, from, f.addr).addr, peer.ConnectOptions{})
	}
	_, err := peer.Connect(t.Context(), forwardFrom(t, "127.0.0.3", f.addr).addr,
		peer.ConnectOptions{Key: f.key.String()})
	if !errors.Is(err, peer.ErrKeyBound) {
		t.Errorf("a third host: %v", err)
	}
}

func TestExpiredKey(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.KeyExpires = time.Nanosecond })
	_, err := peer.Connect(t.Context(), f.addr, peer.ConnectOptions{Key: f.key.String()})
	if !errors.Is(err, peer.ErrKeyExpired) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("connected with an expired key: %v", err)
	}
}

// TestKeyExpiresUnderAClient checks that a client does not outlive its key, and neither do its
// trials.
func TestKeyExpiresUnderAClient(t *testing.T) {
	t.Parallel()
	var (
		f   *far
		c   *peer.Client
		err error
	)
	// A busy machine may need longer to connect than a key lives: then the next one lives longer.
	for life := 2 * time.Second; c == nil; life *= 2 {
		f = serve(t, func(o *peer.ServerOptions) { o.KeyExpires = life })
		c, err = peer.Connect(t.Context(), f.addr, peer.ConnectOptions{Key: f.key.String()})
		if err != nil && (!errors.Is(err, peer.ErrKeyExpired) || life > time.Minute) {
			t.Fatal(err)
		}
	}
	defer c.Close()
	_, err = c.Apply(t.Context(), "to be lost", knob.Setting{Knob: rmem, Value: larger})
	<-c.Done()
	if err == nil {
		f.await("took back trial")
	}
	if v := f.value(rmem); v != original {
		t.Errorf("the trial left %q", v)
	}
}
