package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// TestNotesKeepNoClient has a server that answers calls with notes alone, each unlike the one
// before: it keeps the client no longer than an honest one may.
func TestNotesKeepNoClient(t *testing.T) {
	spec := traffic.Spec{Test: traffic.Ping, Duration: time.Second}
	for _, tc := range []struct {
		name string
		call func(context.Context, *peer.Client) error
		most time.Duration
	}{
		{"snapshot", func(ctx context.Context, c *peer.Client) error { _, err := c.Snapshot(ctx); return err }, time.Minute},
		{"read", func(ctx context.Context, c *peer.Client) error { _, err := c.Read(ctx, rmem); return err }, time.Minute},
		{"apply", func(ctx context.Context, c *peer.Client) error {
			_, err := c.Apply(ctx, "test", knob.Setting{Knob: rmem, Value: larger})
			return err
		}, 2 * time.Minute},
		{"a place for a test", func(ctx context.Context, c *peer.Client) error {
			_, err := c.Run(ctx, spec, nil)
			return err
		}, 6 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, y := net.Pipe()
				near, far := wire.NewConn(x), wire.NewConn(y)
				defer near.Close()
				defer far.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go noteOn(ctx, far)
				began, ended := time.Now(), make(chan error, 1)
				go func() { ended <- tc.call(context.Background(), peer.NewClient(near)) }()
				select {
				case err := <-ended:
					if !errors.Is(err, wire.ErrPeerGone) {
						t.Errorf("%v, want %v", err, wire.ErrPeerGone)
					}
				case <-time.After(time.Hour):
					t.Error("it waits on")
					near.Close()
					<-ended
				}
				if d := time.Since(began); d > tc.most {
					t.Errorf("it waited for %v, want at most %v", d, tc.most)
				}
			})
		})
	}
}

// noteOn sends notes about the latest call, one a second.
func noteOn(ctx context.Context, far *wire.Conn) {
	var last struct {
		ID uint64 `json:"id"`
	}
	calls := make(chan wire.Message)
	go func() {
		for {
			m, err := far.Receive(ctx)
			if err != nil {
				return
			}
			select {
			case calls <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	for n := 0; ; n++ {
		select {
		case m := <-calls:
			if m.Type != "cancel" {
				_ = json.Unmarshal(m.Body, &last)
			}
		case <-time.After(time.Second):
			_ = far.Send(ctx, "note", raw(fmt.Sprintf(`{"id":%d,"text":"%d before you"}`, last.ID, n)))
		case <-ctx.Done():
			return
		}
	}
}
