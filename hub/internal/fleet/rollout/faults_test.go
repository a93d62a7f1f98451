package rollout_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer/order"
)

// faults are the rows of what can die in the middle. Each gets the fleet, the victim, and the order
// that is under way with its bytes; it returns whether the order, or the answer, is lost.
var faults = []struct {
	name string
	do   func(f *fleet, host int, a rollout.Action, data []byte) bool
}{
	{"host cut off for an hour", func(f *fleet, host int, _ rollout.Action, _ []byte) bool {
		f.hosts[host].cut = true
		f.at(time.Hour, func() { f.hosts[host].cut = false })
		return true
	}},
	{"host cut off for good", func(f *fleet, host int, _ rollout.Action, _ []byte) bool {
		f.hosts[host].cut = true
		return true
	}},
	{"hub dies", func(f *fleet, _ int, _ rollout.Action, _ []byte) bool { f.killHub(); return false }},
	{"clock of the hub a year ahead", func(f *fleet, _ int, _ rollout.Action, _ []byte) bool {
		f.hub.ahead += 365 * 24 * time.Hour
		return false
	}},
	{"clock of the hub begins again", func(f *fleet, _ int, _ rollout.Action, _ []byte) bool {
		// A steady clock never goes back; that of a new process begins at zero.
		f.hub.ahead = -f.now
		f.killHub()
		return false
	}},
	{"two hubs", func(f *fleet, _ int, _ rollout.Action, _ []byte) bool {
		old := f.hub
		f.killHub()
		// The old one lives on and sends what it wants, before and after the new one has begun.
		for _, wait := range []time.Duration{0, 3 * time.Minute, 20 * time.Minute} {
			f.at(wait, func() {
				for _, a := range old.m.Next() {
					if a.Verb != "" {
						old.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Sent, Host: a.Host, Verb: a.Verb})
						code := f.hosts[a.Host].deliver(old.envelope(a)).Code
						old.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Answered, Host: a.Host,
							Verb: a.Verb, Code: code})
					}
				}
			})
		}
		return false
	}},
	{"order twice", func(f *fleet, host int, _ rollout.Action, data []byte) bool {
		f.hosts[host].deliver(data)
		for _, wait := range []time.Duration{time.Minute, 10 * time.Minute, 2 * time.Hour} {
			f.at(wait, func() { f.hosts[host].deliver(data) })
		}
		return false
	}},
	{"order late", func(f *fleet, host int, _ rollout.Action, data []byte) bool {
		f.at(7*time.Minute, func() { f.hosts[host].deliver(data) })
		return true
	}},
	{"order a day late", func(f *fleet, host int, _ rollout.Action, data []byte) bool {
		f.at(25*time.Hour, func() { f.hosts[host].deliver(data) })
		return true
	}},
	{"order lost", func(*fleet, int, rollout.Action, []byte) bool { return true }},
	{"commit before try", func(f *fleet, host int, a rollout.Action, _ []byte) bool {
		a.Verb = order.Commit
		f.hosts[host].deliver(f.hub.envelope(a))
		return false
	}},
	{"commits lost for good", func(f *fleet, host int, _ rollout.Action, _ []byte) bool {
		before := f.before
		f.before = func(i int, a rollout.Action, data []byte) bool {
			return i == host && a.Verb == order.Commit && a.Attempt == 0 || before(i, a, data)
		}
		return false
	}},
	{"power cut", func(f *fleet, host int, _ rollout.Action, _ []byte) bool {
		f.hosts[host].restart(f.rng)
		return true
	}},
	{"reinstalled", func(f *fleet, host int, _ rollout.Action, _ []byte) bool {
		f.hosts[host].disk = durable.NewMem()
		f.hosts[host].restart(f.rng)
		return true
	}},
	{"disk full for ten minutes", func(f *fleet, host int, _ rollout.Action, _ []byte) bool {
		full := durable.FullFrom(0)
		f.hosts[host].hook = full
		f.at(10*time.Minute, func() { f.hosts[host].hook = nil })
		return false
	}},
	{"agent killed in the middle", func(f *fleet, host int, _ rollout.Action, data []byte) bool {
		h := f.hosts[host]
		left := f.rng.IntN(40)
		h.hook = func(durable.Op) error {
			if left--; left < 0 {
				return errors.New("killed")
			}
			return nil
		}
		h.deliver(data)
		h.hook = nil
		h.kill()
		return true
	}},
	{"foreign value", func(f *fleet, host int, _ rollout.Action, _ []byte) bool {
		f.hosts[host].knobs.Set(rmem, "1000000")
		return false
	}},
	{"clock of the host a year off", func(f *fleet, host int, _ rollout.Action, _ []byte) bool {
		f.hosts[host].ahead = 365 * 24 * time.Hour
		return false
	}},
}

// at does something once, after a time.
func (f *fleet) at(wait time.Duration, do func()) {
	when, done := f.now+wait, false
	f.later = append(f.later, func() {
		if !done && f.now >= when {
			done = true
			do()
		}
	})
}

// steps are the moments of the protocol of one host at which a fault comes.
var steps = []struct {
	name  string
	verb  order.Verb
	after bool // the host has the order, the hub has no answer
	delay time.Duration
}{
	{"before the try", order.Try, false, 0}, {"after the try", order.Try, true, 0}, {"in trial", order.Try,
		true, 30 * time.Second},
	{"before the commit", order.Commit, false, 0}, {"after the commit", order.Commit, true, 0},
	{"later", order.Commit, true, 20 * time.Minute},
	{"before the persist", order.Persist, false, 0}, {"after the persist", order.Persist, true, 0},
	{"later than the persist", order.Persist, true, 20 * time.Minute},
	{"before the undo", order.Undo, false, 0}, {"after the undo", order.Undo, true, 0},
	{"later than the undo", order.Undo, true, 20 * time.Minute},
}

// inject plays a rollout of n hosts with one fault at one step of the nth host that gets there.
func inject(t *testing.T, n, fault, step, nth int) (unaccounted, stuck int, f *fleet) {
	f = newFleet(t, n, uint64(1+fault*10+step))
	s := steps[step]
	left := nth
	strike := func(host int, a rollout.Action, data []byte) bool {
		if a.Verb != s.verb || left == 0 {
			return false
		}
		if left--; left > 0 {
			return false
		}
		if s.delay > 0 {
			f.at(s.delay, func() { faults[fault].do(f, host, a, data) })
			return false
		}
		return faults[fault].do(f, host, a, data)
	}
	if s.after {
		f.after = strike
	} else {
		f.before = strike
	}
	f.run()
	if s.verb == order.Undo {
		f.undo()
	}
	if left > 0 {
		t.Errorf("%s, %s: the fault did not strike", faults[fault].name, s.name)
	}
	unaccounted, stuck = f.account()
	return unaccounted, stuck, f
}

// everyFault injects all faults at all steps, each in a test of its own.
func everyFault(t *testing.T, hosts int, nth func(*rand.Rand) int) {
	rng := rand.New(rand.NewPCG(1, 1))
	runs, undos, ends, committed, persisted, undone := 0, 0, make(map[rollout.Phase]int), 0, 0, 0
	for fault := range faults {
		before := runs + undos
		for step := range steps {
			victim := nth(rng) // also where this test is not chosen: the next one is the same
			t.Run(faults[fault].name+"/"+steps[step].name, func(t *testing.T) {
				unaccounted, stuck, f := inject(t, hosts, fault, step, victim)
				ends[f.hub.m.Phase()]++
				n := f.hub.m.Counts()
				if steps[step].verb == order.Undo {
					undos++
					undone += n[rollout.Undone]
				} else {
					runs++
					committed += n[rollout.Committed] + n[rollout.Persisted] + n[rollout.NotPersistable]
					persisted += n[rollout.Persisted]
				}
				if unaccounted != 0 || stuck != 0 {
					t.Errorf("%d hosts unaccounted, %d stuck in trial; %s %s", unaccounted, stuck, f.hub.m.Phase(),
						f.hub.m.Reason())
				}
			})
		}
		if runs+undos > before {
			t.Logf("%s: %d runs so far, %v", faults[fault].name, runs+undos, ends)
		}
	}
	share := func(n, runs int) float64 { return 100 * float64(n) / float64(runs*hosts) }
	t.Logf("%d runs of %d hosts: %v; in %d of them %.2f %% of the hosts keep the change, %.2f %% persisted; "+
		"in %d with an undo %.2f %% are undone", runs+undos, hosts, ends, runs, share(committed, runs),
		share(persisted, runs), undos, share(undone, undos))
}

// TestEveryFault is the small version of TestSoakFaults.
func TestEveryFault(t *testing.T) {
	everyFault(t, 12, func(rng *rand.Rand) int { return 1 + rng.IntN(8) })
}

// TestUndoAll undoes a rollout that a person has stopped half way, newest stage first.
func TestUndoAll(t *testing.T) {
	f := newFleet(t, 40, 3)
	for f.hub.m.Stage() < rollout.Wave50 {
		f.step()
	}
	for f.hub.m.Counts()[rollout.Committed] < 15 {
		f.step()
	}
	f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Stopped, By: "ann"})
	before := f.hub.m.Counts()[rollout.Committed]
	if more := f.hub.m.Next(); len(more) != 0 || f.hub.m.Phase() != rollout.Halted {
		t.Errorf("stopped, and it goes on: %+v", more)
	}
	f.hosts[0].knobs.Set(rmem, "1000000")
	f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.UndoAll, By: "ann"})
	newest := rollout.WaveAll
	for range 500 {
		for _, a := range f.hub.m.Next() {
			if a.Verb != order.Undo || f.hub.plan.Stage[a.Host] > newest {
				t.Errorf("%+v of stage %d after %d", a, f.hub.plan.Stage[a.Host], newest)
			}
			newest = f.hub.plan.Stage[a.Host]
		}
		if f.step(); f.hub.m.Phase() == rollout.Done {
			break
		}
	}
	unaccounted, stuck := f.account()
	left := f.hub.m.Counts()[rollout.Committed]
	if f.hub.m.Phase() != rollout.Done || unaccounted != 0 || stuck != 0 || left != 0 || before < 15 {
		t.Errorf("%s: %v; %d unaccounted, %d stuck; %d committed before", f.hub.m.Phase(), f.hub.m.Counts(),
			unaccounted, stuck,
			before)
	}
	for _, h := range f.hosts[1:] {
		if v := h.knobs.Values()[rmem]; v != small {
			t.Errorf("host %s holds %s", h.id, v)
		}
	}
}

// TestHubKilledOften kills the hub at random messages of one rollout, and rebuilds it from the
// hosts.
func TestHubKilledOften(t *testing.T) {
	killHubOften(t, 30, 10)
}

func killHubOften(t *testing.T, hosts, times int) {
	f := newFleet(t, hosts, 77)
	killed := 0
	f.hub.resumed = -10 * times
	f.after = func(int, rollout.Action, []byte) bool {
		if killed < times && f.rng.IntN(max(1, 2*hosts/times)) == 0 {
			killed++
			f.hub.ahead = time.Duration(f.rng.IntN(365*24)) * time.Hour
			f.killHub()
		}
		return false
	}
	f.run()
	unaccounted, stuck := f.account()
	if unaccounted != 0 || stuck != 0 || killed < times {
		t.Errorf("killed %d times: %d hosts unaccounted, %d stuck in trial", killed, unaccounted, stuck)
	}
	t.Log(fmt.Sprintf("killed %d times: %v", killed, f.hub.m.Counts()), f.hub.m.Phase(), f.hub.m.Reason())
}
