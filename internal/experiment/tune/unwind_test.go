package tune

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// silentHost stops answering when the caller's context has ended, as a host behind a cable that was
// pulled: a call returns only when its own time is up. It counts the time that calls waited.
type silentHost struct {
	*simHost
	caller context.Context
	waited *time.Duration
}

func (h silentHost) Undo(ctx context.Context, ids ...string) error {
	if h.caller.Err() == nil {
		return h.simHost.Undo(ctx, ids...)
	}
	began := time.Now()
	<-ctx.Done()
	*h.waited += time.Since(began)
	return ctx.Err()
}

// TestUndoBesideSilentHost interrupts an experiment whose newest change is on a host that no longer
// answers. The changes of the other host must be undone all the same, and each host has the time of
// UndoTimeout for itself.
func TestUndoBesideSilentHost(t *testing.T) {
	for _, silent := range []Side{Near, Far} {
		t.Run(string(silent), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { undoBeside(t, silent) }) })
	}
}

func undoBeside(t *testing.T, silent Side) {
	w := longFatPath()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waited time.Duration
	hosts := w.tuneHosts()
	hosts[silent] = silentHost{w.hosts[silent], ctx, &waited}
	first, second := Candidate{Knob: rmem, Side: Far, Levels: []knob.Value{"640"}},
		Candidate{Knob: wmem, Side: Near, Levels: []knob.Value{"4096"}}
	if silent == Far { // the buffer helps only beside a larger window
		w.hosts[Near].values[wmem], w.hosts[Near].original[wmem] = "64", "64"
		w.hosts[Far].values[rmem], w.hosts[Far].original[rmem] = "640", "640"
		first.Knob, first.Side, first.Levels = wmem, Near, []knob.Value{"4096"}
		second.Knob, second.Side, second.Levels = rmem, Far, []knob.Value{"6144"}
	}
	out, err := Run(ctx, configFor(w), w, hosts, []Candidate{first, second}, func(e Event) {
		if e.Kind == EventSegment && e.Knob == second.Knob && e.Arm == "B" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || out.State != StateTrial {
		t.Fatalf("error %v, state %s", err, out.State)
	}
	other := map[Side]Side{Near: Far, Far: Near}[silent]
	for id, want := range w.hosts[other].original {
		if got := w.hosts[other].values[id]; got != want {
			t.Errorf("%s of the %s host is %s, want the original %s", id, other, got, want)
		}
	}
	if limit := DefaultConfig().UndoTimeout; waited > limit {
		t.Errorf("waited %v for the silent host, want at most %v", waited, limit)
	}
}
