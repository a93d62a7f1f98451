package peer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/wire"
)

// start runs a test until the returned function is called, which returns the test's error. start
// returns when the test is running.
func start(t *testing.T, c *peer.Client, spec traffic.Spec) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	running, done := make(chan struct{}), make(chan error, 1)
	go func() {
		started := sync.OnceFunc(func() { close(running) })
		_, err := c.Run(ctx, spec, func(traffic.Interval) { started() })
		done <- err
	}()
	select {
	case <-running:
	case err := <-done:
		t.Fatal(err)
	}
	return func() error { cancel(); return <-done }
}

// ping is a light test for a moment.
var ping = traffic.Spec{Test: traffic.Ping, Duration: brief, Interval: brief}

func TestSeveralTestsAtOnce(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.AtOnce = 2 })
	first, second := f.connect(f.addr, peer.ConnectOptions{}), f.connect(f.addr, peer.ConnectOptions{})
	endFirst, endSecond := start(t, first, long), start(t, second, long)
	// The third has to wait, but a ping does not. Whether it is answered depends on the host: what
	// matters is that the far end admits it.
	waits := make(chan string, 8)
	third := f.connect(f.addr, peer.ConnectOptions{Notify: func(text string) { waits <- text }})
	if _, err := third.Run(t.Context(), ping, nil); err != nil || len(waits) > 0 {
		t.Errorf("ping beside two tests: %v, %d notices", err, len(waits))
	}
	done := make(chan error, 1)
	go func() {
		_, err := third.Run(t.Context(), short, nil)
		done <- err
	}()
	if text := <-waits; !strings.Contains(text, "2 before you") {
		t.Errorf("notice %q", text)
	}
	if err := endFirst(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after one had ended: %v", err)
	}
	if err := endSecond(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOptionsOfTheListener(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	c := f.connect(f.addr, peer.ConnectOptions{})
	for _, spec := range []traffic.Spec{
		{Test: traffic.Stream, Bytes: 256 << 10, WindowBytes: 64 << 10, MSSBytes: 1000},
		short, // after the test with options, a test without
	} {
		if _, err := c.Run(t.Context(), spec, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestLimitsReachTheNearEnd(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) {
		o.Limits = traffic.Limits{MaxDuration: 5 * time.Minute, MaxBitsPerSecond: 1e9}
		o.Gate = admission.New(admission.Limits{ClientsPerSource: 1})
	})
	c := f.connect(f.addr, peer.ConnectOptions{})
	for name, spec := range map[string]traffic.Spec{
		"longer than the 5m0s": {Test: traffic.RR, Duration: 6 * time.Minute},
		"ask for that rate":    {Test: traffic.Stream, Duration: brief, Interval: brief},
	} {
		if _, err := c.Run(t.Context(), spec, nil); !errors.Is(err, traffic.ErrRefused) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// All servers of this host share the gate's places.
	end := start(t, c, traffic.Spec{Test: traffic.Ping, Duration: 5 * time.Minute, Interval: brief})
	other := f.connect(f.addr, peer.ConnectOptions{})
	_, err := other.Run(t.Context(), ping, nil)
	if !errors.Is(err, peer.ErrBusy) || !strings.Contains(err.Error(), "of this source") {
		t.Errorf("a second test of one source: %v", err)
	}
	_ = end()
}

// TestBytesAreChargedToTheirSource has a source whose budget is enough for one test and a half.
func TestBytesAreChargedToTheirSource(t *testing.T) {
	t.Parallel()
	gate := admission.New(admission.Limits{SourceBytes: 3e6})
	f := serve(t, func(o *peer.ServerOptions) { o.Gate = gate })
	c := f.connect(f.addr, peer.ConnectOptions{})
	amount := traffic.Spec{Test: traffic.Stream, Streams: 2, Bytes: 2e6}
	if _, err := c.Run(t.Context(), amount, nil); err != nil {
		t.Fatal(err)
	}
	// A test whose amount exceeds the budget does not even begin.
	if _, err := c.Run(t.Context(), amount, nil); !errors.Is(err, traffic.ErrRefused) ||
		!strings.Contains(err.Error(), "1.91 MiB are more than the 977 KiB") {
		t.Errorf("an amount over the rest of the budget: %v", err)
	}
	// A second connection of the same source shares its budget.
	other := f.connect(f.addr, peer.ConnectOptions{})
	unbounded := traffic.Spec{Test: traffic.Stream, Duration: time.Minute}
	_, err := other.Run(t.Context(), unbounded, nil)
	if !errors.Is(err, traffic.ErrRefused) ||
		!strings.HasSuffix(err.Error(), "the 3 MB that this host allows a source per 1h0m0s are used up") {
		t.Errorf("a test that uses up the budget: %v", err)
	}
	if _, err := c.Run(t.Context(), short, nil); !errors.Is(err, peer.ErrBusy) ||
		!strings.Contains(err.Error(), "has moved the 3 MB") {
		t.Errorf("a test with the budget used up: %v", err)
	}
}

func TestIdleClientsAreClosed(t *testing.T) {
	t.Parallel()
	// A machine that pauses before the test begins makes its client idle: the next one has longer.
	for wait := 300 * time.Millisecond; ; wait *= 3 {
		f := serve(t, func(o *peer.ServerOptions) { o.IdleWait = wait })
		notices := make(chan string, 1)
		c := f.connect(f.addr, peer.ConnectOptions{Notify: func(text string) { notices <- text }})
		// A running test does not count as idle, even if it lasts longer.
		var began atomic.Bool
		spec := traffic.Spec{Test: traffic.RR, Duration: 2*wait + brief, Interval: brief}
		_, err := c.Run(t.Context(), spec, func(traffic.Interval) { began.Store(true) })
		if err != nil && (began.Load() || wait > time.Minute) {
			t.Fatal(err)
		}
		<-c.Done()
		if text := <-notices; !strings.Contains(text, fmt.Sprintf("no request came in %v", wait)) {
			t.Errorf("notice %q", text)
		}
		f.await("sent no request")
		if err == nil {
			return
		}
	}
}

func TestPlacesForOtherSources(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.MaxClients = 64 })
	for range 63 {
		f.connect(f.addr, peer.ConnectOptions{})
	}
	_, err := peer.Connect(t.Context(), f.addr, peer.ConnectOptions{Key: f.key.String()})
	if !errors.Is(err, peer.ErrBusy) || !strings.Contains(err.Error(), "63 clients of this source") {
		t.Errorf("got %v", err)
	}
}

// TestHoldersOfTheKeyMisbehave sends what no correct client does. Each such client must lose its
// connection, and a correct one must not notice.
func TestHoldersOfTheKeyMisbehave(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	hello := func(c *wire.Conn) error { return c.Send(t.Context(), "hello", raw(`{"id":1,"body":{"protocol":1}}`)) }
	open := func(c *wire.Conn, test string) error {
		if err := c.Send(t.Context(), "run.open", raw(`{"id":2,"body":{"spec":{"test":"`+test+`"}}}`)); err != nil {
			return err
		}
		for range 2 { // the answers to hello and to this
			if _, err := c.Receive(t.Context()); err != nil {
				return err
			}
		}
		return nil
	}
	honest := f.connect(f.addr, peer.ConnectOptions{})
	for name, misbehave := range map[string]func(c *wire.Conn) error{
		"a flood of calls": func(c *wire.Conn) error {
			for i := range 200 {
				if err := c.Send(t.Context(), "snapshot", call{uint64(i)}); err != nil {
					return nil // it has been closed
				}
			}
			return nil
		},
		"too much at once": func(c *wire.Conn) error {
			return c.Send(t.Context(), "change.apply",
				raw(`{"id":3,"body":{"reason":"`+strings.Repeat("x", 300<<10)+`"}}`))
		},
		"a call that is none": func(c *wire.Conn) error { return c.Send(t.Context(), "snapshot", raw(`[]`)) },
		"a heavy test instead of a light one": func(c *wire.Conn) error {
			if err := open(c, "ping"); err != nil {
				return err
			}
			return c.Send(t.Context(), "test.start", raw(`{"spec":{"test":"stream"}}`))
		},
		"a test that starts twice": func(c *wire.Conn) error {
			if err := open(c, "rr"); err != nil {
				return err
			}
			for range 2 {
				if err := c.Send(t.Context(), "test.start", raw(`{"spec":{"test":"rr"}}`)); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		for range 5 {
			c, err := wire.Dial(t.Context(), f.addr, f.key)
			if err != nil {
				t.Fatal(err)
			}
			if err := hello(c); err != nil {
				t.Fatal(err)
			}
			if err := misbehave(c); err != nil && !errors.Is(err, wire.ErrPeerGone) {
				t.Errorf("%s: %v", name, err)
			}
			select {
			case <-c.Done():
			case <-time.After(time.Minute):
				t.Errorf("%s: still connected", name)
			}
			c.Close()
		}
	}
	if _, err := honest.Run(t.Context(), short, nil); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

// call is a call without a body.
type call struct {
	ID uint64 `json:"id"`
}
