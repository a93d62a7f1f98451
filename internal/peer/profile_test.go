package peer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/traffic"
)

// TestProfile samples a far host while a test loads it: the test and the samples go on together,
// the stages of the path are there, and no name of a process is.
func TestProfile(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	f := serve(t, nil)
	curtail := make(chan struct{})
	c := f.connect(f.addr, peer.ConnectOptions{Curtail: curtail})
	type ended struct {
		result *traffic.Result
		err    error
	}
	// On a busy machine the stream may get few samples of a profile or none, so it goes on until a
	// profile has its copying.
	test, moved := make(chan ended, 1), make(chan struct{})
	once := sync.OnceFunc(func() { close(moved) })
	go func() {
		r, err := c.Run(t.Context(), traffic.Spec{Test: traffic.Stream, Direction: traffic.Up, Streams: 1,
			Duration: 5 * time.Minute, Interval: 100 * time.Millisecond}, func(i traffic.Interval) {
			if i.ThroughputBitsPerSec > 0 && !i.Omitted {
				once()
			}
		})
		test <- ended{r, err}
	}()
	var p *profile.Profile
	for until := time.Now().Add(2 * time.Minute); ; {
		var err error
		if p, err = c.Profile(t.Context(), 500*time.Millisecond, false); err != nil {
			t.Fatal(err)
		}
		if p.Busy > 0 && p.WorkRow("copy") != nil && len(p.Stacks) > 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d busy samples, stages %+v", p.Busy, p.Stages)
		}
	}
	select {
	case <-moved: // within the measured part
	case e := <-test:
		t.Fatalf("the test beside it has ended: %+v, %v", e.result, e.err)
	}
	close(curtail)
	if e := <-test; e.err != nil || e.result.Bytes == 0 {
		t.Fatalf("the test beside it: %+v, %v", e.result, e.err)
	}
	for _, one := range p.Processes {
		if one.Name != "a program" && !strings.HasPrefix(one.Name, "idle") {
			t.Errorf("the far host disclosed a process: %q", one.Name)
		}
	}
	for _, one := range p.Functions {
		if one.Stage == profile.StageUser && one.Name != "a program" {
			t.Errorf("the far host disclosed a process: %q", one.Name)
		}
	}
}

// TestProfileRefused checks that a far host bounds the time, and that a client that gives up frees
// the place.
func TestProfileRefused(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	f := serve(t, nil)
	c, other := f.connect(f.addr, peer.ConnectOptions{}), f.connect(f.addr, peer.ConnectOptions{})
	for _, d := range []time.Duration{0, 2 * time.Hour} {
		if _, err := c.Profile(t.Context(), d, false); !errors.Is(err, traffic.ErrBadSpec) {
			t.Errorf("%v: %v", d, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		err := peer.ErrBusy
		for errors.Is(err, peer.ErrBusy) { // the other client may have come first
			_, err = c.Profile(ctx, time.Minute, false)
		}
		first <- err
	}()
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := other.Profile(t.Context(), 100*time.Millisecond, false)
		if errors.Is(err, peer.ErrBusy) {
			break
		}
		if err != nil || time.Now().After(until) {
			t.Fatalf("two clients at a time: %v", err)
		}
	}
	cancel()
	<-first
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := other.Profile(t.Context(), 100*time.Millisecond, false)
		if err == nil {
			break
		}
		if !errors.Is(err, peer.ErrBusy) || time.Now().After(until) {
			t.Fatalf("after the first client gave up: %v", err)
		}
	}
}
