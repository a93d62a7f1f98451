package rollout_test

import (
	"testing"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/peer/order"
)

// TestPersisted makes a proven change permanent: every host holds it after a power cut. Undo takes
// it back on all of them, and after one more power cut none holds it.
func TestPersisted(t *testing.T) {
	f := newFleet(t, 40, 3)
	most := 0
	f.after = func(int, rollout.Action, []byte) bool {
		n := 0
		for i := range f.hosts {
			if f.hub.m.State(i) == rollout.Persisting {
				n++
			}
		}
		most = max(most, n)
		return false
	}
	f.run()
	if n := f.hub.m.Counts()[rollout.Persisted]; n != len(f.hosts) || f.hub.m.Phase() != rollout.Done {
		t.Errorf("%s: %d of %d persisted: %v", f.hub.m.Phase(), n, len(f.hosts), f.hub.m.Counts())
	}
	if most != 1 { // all hosts of this fleet are in one rack
		t.Errorf("%d hosts of a rack persist at a time", most)
	}
	if unaccounted, stuck := f.account(); unaccounted != 0 || stuck != 0 {
		t.Errorf("%d unaccounted, %d stuck", unaccounted, stuck)
	}
	cut := func(want string) {
		t.Helper()
		for _, h := range f.hosts {
			h.restart(f.rng)
			if v := h.knobs.Values()[rmem]; string(v) != want {
				t.Errorf("host %s holds %s after a power cut", h.id, v)
			}
		}
	}
	cut(string(large))
	if f.persist() {
		t.Error("a host keeps the change only until its restart")
	}
	// Another program's value stays, but the file under it goes.
	f.hosts[7].knobs.Set(rmem, "1000000")
	f.hub.m.Reported(7, f.reports()[f.hosts[7].id])
	f.hub.signed = f.now
	f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.UndoAll, By: "ann"})
	for range 500 {
		if f.step(); f.hub.m.Phase() == rollout.Done {
			break
		}
	}
	if n := f.hub.m.Counts(); n[rollout.Undone] != len(f.hosts)-1 || n[rollout.NotUndone] != 1 {
		t.Errorf("not all are undone: %v", n)
	}
	for _, h := range f.hosts {
		if h.file() != "" {
			t.Errorf("host %s has a file", h.id)
		}
	}
	cut(string(small))
}

// TestPersistsOnlyWhatIsProven: a rollout that is under way, or whose benefit is not proven, makes
// nothing permanent, and a hub that stops or restarts ends the phase.
func TestPersistsOnlyWhatIsProven(t *testing.T) {
	f := newFleet(t, 40, 3)
	for f.hub.m.Stage() < rollout.Wave10 {
		f.step()
	}
	all := rollout.Event{At: f.clock(), Kind: rollout.PersistAll, By: "ann"}
	if f.hub.m.Apply(all); f.hub.m.Phase() == rollout.Keeping || f.hub.m.CanPersist() {
		t.Error("it persists in the middle")
	}
	lost := rollout.Rebuild(f.hub.plan, f.reports())
	if lost.Apply(all); lost.Phase() == rollout.Keeping {
		t.Error("it persists without a proof")
	}
	for _, stop := range []rollout.Kind{rollout.Started, rollout.Stopped} {
		f := newFleet(t, 40, 3)
		for f.hub.m.Phase() != rollout.Done {
			f.step()
		}
		if !f.persist() {
			t.Fatalf("%s: nothing to persist", stop)
		}
		f.after = func(i int, a rollout.Action, _ []byte) bool {
			return a.Verb == order.Persist && f.hub.m.Counts()[rollout.Persisted] >= 5
		}
		for f.hub.m.Counts()[rollout.Persisted] < 5 {
			f.step()
		}
		f.step()
		f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: stop, By: "ann"})
		if n := f.hub.m.Counts(); f.hub.m.Phase() != rollout.Done || n[rollout.Persisting] > 0 || n[rollout.Persisted] != 5 ||
			len(f.hub.m.Next()) > 0 {
			t.Errorf("%s: %s, %v", stop, f.hub.m.Phase(), n)
		}
		f.after = func(int, rollout.Action, []byte) bool { return false }
		f.run() // signs the rest
		if n := f.hub.m.Counts()[rollout.Persisted]; n != len(f.hosts) {
			t.Errorf("%s: %d persisted: %v", stop, n, f.hub.m.Counts())
		}
	}
}
