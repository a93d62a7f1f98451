package peer_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	original = knob.Value("4096 131072 6291456")
	larger   = knob.Value("4096 131072 33554432")
)

func TestChangesFromAfar(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	c := f.connect(f.addr, peer.ConnectOptions{})
	ctx := t.Context()
	if v, err := c.Read(ctx, rmem); err != nil || v != original {
		t.Fatalf("got %q, %v", v, err)
	}
	ids, err := c.Apply(ctx, "to see", knob.Setting{Knob: rmem, Value: larger},
		knob.Setting{Knob: wmem, Value: "4096 16384 8388608"})
	if err != nil || len(ids) != 2 || f.value(rmem) != larger {
		t.Fatalf("got %v, %v; knob %q", ids, err, f.value(rmem))
	}
	if err := c.Undo(ctx, ids[1]); err != nil || f.value(wmem) != "4096 16384 4194304" {
		t.Errorf("undo: %v; knob %q", err, f.value(wmem))
	}
	if err := c.Commit(ctx, ids[0]); err != nil {
		t.Error(err)
	}
	history, err := c.History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var states []journal.State
	for _, change := range history {
		states = append(states, change.State)
	}
	if diff := cmp.Diff([]journal.State{journal.Committed, journal.Undone}, states); diff != "" {
		t.Error(diff)
	}
	c.Close()
	f.await("left")
	if v := f.value(rmem); v != larger {
		t.Errorf("the committed change did not stay: %q", v)
	}
	// A later client may undo what another client changed.
	later := f.connect(f.addr, peer.ConnectOptions{})
	outcomes, err := later.UndoOutcomes(ctx, ids[0])
	if err != nil || len(outcomes) != 1 || !outcomes[0].Restored || f.value(rmem) != original {
		t.Errorf("got %+v, %v; knob %q", outcomes, err, f.value(rmem))
	}
}

func TestTrialsEndWithTheConnection(t *testing.T) {
	for name, end := range map[string]func(f *far, n *network, c *peer.Client){
		"client closes":   func(_ *far, _ *network, c *peer.Client) { c.Close() },
		"connection lost": func(_ *far, n *network, _ *peer.Client) { n.cut() },
		"serve ends":      func(f *far, _ *network, _ *peer.Client) { f.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			n := forward(t, f.addr)
			c := f.connect(n.addr, peer.ConnectOptions{})
			if _, err := c.Apply(t.Context(), "to be lost", knob.Setting{Knob: rmem, Value: larger}); err != nil {
				t.Fatal(err)
			}
			end(f, n, c)
			f.await("took back trial")
			if v := f.value(rmem); v != original {
				t.Errorf("the trial left %q", v)
			}
			<-c.Done()
		})
	}
}

func TestTrialsEndByTime(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	c := f.connect(f.addr, peer.ConnectOptions{TrialFor: time.Millisecond})
	ids, err := c.Apply(t.Context(), "to be forgotten", knob.Setting{Knob: rmem, Value: larger})
	if err != nil {
		t.Fatal(err)
	}
	f.await("too long")
	if v := f.value(rmem); v != original {
		t.Errorf("the trial left %q", v)
	}
	if err := c.Commit(t.Context(), ids...); !errors.Is(err, journal.ErrNotTrial) {
		t.Errorf("committing an undone trial: %v", err)
	}
}

// TestTrialsEndWhileATestWaits: the trials of a client whose test waits for those of others end by
// their time.
func TestTrialsEndWhileATestWaits(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	first := f.connect(f.addr, peer.ConnectOptions{})
	running, stopped := make(chan struct{}), make(chan struct{})
	runCtx, endFirst := context.WithCancel(t.Context())
	go func() {
		defer close(stopped)
		started := sync.OnceFunc(func() { close(running) })
		_, _ = first.Run(runCtx, long, func(traffic.Interval) { started() })
	}()
	defer func() { endFirst(); <-stopped }()
	<-running
	for lease := time.Second; ; lease *= 2 {
		waiting, left := make(chan struct{}), make(chan struct{})
		closed := sync.OnceFunc(func() { close(waiting) })
		second := f.connect(f.addr, peer.ConnectOptions{TrialFor: lease, Notify: func(string) { closed() }})
		reason := "for " + lease.String()
		_, err := second.Apply(t.Context(), reason, knob.Setting{Knob: rmem, Value: larger})
		for errors.Is(err, journal.ErrLocked) { // the client before it has not left yet
			_, err = second.Apply(t.Context(), reason, knob.Setting{Knob: rmem, Value: larger})
		}
		if err != nil {
			t.Fatal(err)
		}
		waitCtx, endSecond := context.WithCancel(t.Context())
		go func() {
			defer close(left)
			_, _ = second.Run(waitCtx, long, nil)
		}()
		<-waiting
		late := f.value(rmem) == original // the lease was over before the test waited
		for f.value(rmem) != original && !late {
			select {
			case <-left:
				t.Fatal("the test does not wait any more")
			case <-time.After(time.Millisecond):
			}
		}
		endSecond()
		<-left
		second.Close()
		if !late {
			return
		}
	}
}

// TestCommitThatWasGivenUp checks that a commit that waited too long for its client does not take
// effect afterwards.
func TestCommitThatWasGivenUp(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	first := f.connect(f.addr, peer.ConnectOptions{})
	waiting := make(chan struct{})
	closed := sync.OnceFunc(func() { close(waiting) })
	second := f.connect(f.addr, peer.ConnectOptions{Notify: func(string) { closed() }}.
		WithCancelGrace(100*time.Millisecond))
	ids, err := second.Apply(t.Context(), "two\nlines", knob.Setting{Knob: rmem, Value: larger})
	if err != nil {
		t.Fatal(err)
	}
	f.await(`on trial ("two\nlines")`)
	firstCtx, endFirst := context.WithCancel(t.Context())
	running, done := make(chan struct{}), make(chan struct{}, 2)
	go func() {
		started := sync.OnceFunc(func() { close(running) })
		_, _ = first.Run(firstCtx, long, func(traffic.Interval) { started() })
		done <- struct{}{}
	}()
	<-running
	secondCtx, endSecond := context.WithCancel(t.Context())
	go func() {
		_, _ = second.Run(secondCtx, long, nil) // keeps the far worker busy
		done <- struct{}{}
	}()
	<-waiting
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := second.Commit(ctx, ids...); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	endFirst()
	endSecond()
	<-done
	<-done
	history, err := second.History(t.Context()) // answered after everything queued before it
	if err != nil || len(history) != 1 || history[0].State != journal.Trial {
		t.Errorf("got %+v, %v", history, err)
	}
}

func TestTuningMustBeAllowed(t *testing.T) {
	t.Parallel()
	f := serve(t, func(o *peer.ServerOptions) { o.Tuning = nil })
	c := f.connect(f.addr, peer.ConnectOptions{})
	if c.Info().AllowTuning {
		t.Error("announced as allowed")
	}
	_, err := c.Apply(t.Context(), "no", knob.Setting{Knob: rmem, Value: larger})
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, peer.ErrTuningOff) ||
		!strings.HasPrefix(err.Error(), "farside: ") {
		t.Errorf("got %v", err)
	}
	var h interface{ Hint() string }
	if !errors.As(err, &h) || !strings.Contains(h.Hint(), "--allow-tuning") {
		t.Errorf("no hint in %v", err)
	}
	if err := c.Undo(t.Context(), "0001"); !errors.Is(err, peer.ErrTuningOff) {
		t.Errorf("undo: %v", err)
	}
	if err := c.Commit(t.Context(), "0001"); !errors.Is(err, peer.ErrTuningOff) {
		t.Errorf("commit: %v", err)
	}
	if _, err := c.Read(t.Context(), rmem); err != nil {
		t.Errorf("reading is not changing: %v", err)
	}
	if v := f.value(rmem); v != original {
		t.Errorf("the knob is %q", v)
	}
}

func TestOneTunerAtATime(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	first, second := f.connect(f.addr, peer.ConnectOptions{}), f.connect(f.addr, peer.ConnectOptions{})
	if _, err := first.Apply(t.Context(), "mine", knob.Setting{Knob: rmem, Value: larger}); err != nil {
		t.Fatal(err)
	}
	_, err := second.Apply(t.Context(), "mine too", knob.Setting{Knob: wmem, Value: "4096 16384 8388608"})
	if !errors.Is(err, journal.ErrLocked) {
		t.Errorf("got %v", err)
	}
	first.Close()
	f.await("left")
	if _, err := second.Apply(t.Context(), "now", knob.Setting{Knob: wmem, Value: "4096 16384 8388608"}); err != nil {
		t.Error(err)
	}
}

func TestErrorsKeepTheirIdentity(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	c := f.connect(f.addr, peer.ConnectOptions{})
	ctx := t.Context()
	_, err := c.Read(ctx, "sysctl:net.core.rmem_max")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such knob on this host: %v", err)
	}
	if _, err = c.Read(ctx, "nonsense"); !errors.Is(err, knob.ErrUnknown) {
		t.Errorf("no knob at all: %v", err)
	}
	f.memory.SetReadOnly(wmem, true)
	if _, err = c.Apply(ctx, "no", knob.Setting{Knob: wmem, Value: "4096 16384 8388608"}); !errors.Is(err,
		knob.ErrReadOnly) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read-only: %v", err)
	}
	if err = c.Undo(ctx, "9999"); !errors.Is(err, journal.ErrUnknownChange) {
		t.Errorf("unknown change: %v", err)
	}
	ids, err := c.Apply(ctx, "theirs", knob.Setting{Knob: rmem, Value: larger})
	if err != nil {
		t.Fatal(err)
	}
	f.memory.Set(rmem, "1 2 3")
	if err = c.Undo(ctx, ids...); err == nil || !strings.Contains(err.Error(), `"1 2 3"`) {
		t.Errorf("a foreign value: %v", err)
	}
	if v := f.value(rmem); v != "1 2 3" {
		t.Errorf("another program's value became %q", v)
	}
}
