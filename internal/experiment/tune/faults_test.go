package tune

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
)

// candidatesWithLevels returns candidates that cause every kind of step: levels, trials on both
// sides, keeps, a redundant knob and an ablation.
func candidatesWithLevels() []Candidate {
	return []Candidate{
		{Knob: rmem, Side: Far, Levels: []knob.Value{"128", "3000", "6144", "12288"}},
		{Knob: mtu, Side: Near, Levels: []knob.Value{"1400"}},
		{Knob: wmem, Side: Near, Levels: []knob.Value{"1000", "4096"}},
	}
}

// TestEveryStepFails makes each call to the hosts and to the prober fail, before it has an effect
// and after, and interrupts after each. Afterwards every value must be the original one, or the
// experiment must have been committed in full.
func TestEveryStepFails(t *testing.T) {
	everyStepFails(t, longFatPath)
}

// TestEveryStepTogetherFails does the same for remedies that help only together.
func TestEveryStepTogetherFails(t *testing.T) {
	everyStepFails(t, func() *world {
		w := longFatPath()
		w.hosts[Near].values[wmem], w.hosts[Near].original[wmem] = "64", "64"
		return w
	})
}

// everyStepFails fails every call where long tests may run, and every seventh elsewhere: seven has
// no factor in common with the calls of a pair, so that each kind of call gets its turn.
func everyStepFails(t *testing.T, newWorld func() *world) {
	t.Parallel()
	try := func(ctx context.Context, w *world) (*Outcome, error) {
		return runDefault(ctx, configFor(w), w, candidatesWithLevels(), nil)
	}
	stride := testenv.Sample(1, 7)
	healthy := newWorld()
	if out, err := try(t.Context(), healthy); err != nil || out.State != StateCommitted {
		t.Fatalf("err %v, state %v", err, out.State)
	}
	modes := []string{"fails before", "fails after", "interrupted"}
	committed := 0
	for call := 1; call <= healthy.calls; call++ {
		for mode, name := range modes {
			if call != healthy.calls && (call+2*mode)%stride != 0 {
				continue
			}
			w := newWorld()
			ctx, cancel := context.WithCancel(t.Context())
			if mode == 2 {
				w.cancelAt, w.cancel = call, cancel
			} else {
				w.failAt, w.failure, w.before = call, errInjected, mode == 0
			}
			out, err := try(ctx, w)
			cancel()
			what := fmt.Sprintf("call %d (%s) %s", call, healthy.log[call-1], name)
			if err == nil {
				// Only an interruption in the very last call comes too late.
				if out.State != StateCommitted || mode != 2 || call != healthy.calls {
					t.Errorf("%s: no error, state %s", what, out.State)
				}
				committed++
				continue
			}
			if want := []error{errInjected, errInjected, context.Canceled}[mode]; !errors.Is(err, want) {
				t.Errorf("%s: error %v, want %v", what, err, want)
			}
			if out.State != StateUndone || len(out.Kept) != 0 {
				t.Errorf("%s: state %s, kept %v", what, out.State, out.Kept)
			}
			for _, trial := range out.Trials {
				if trial.Verdict == Kept {
					t.Errorf("%s: %s still counts as kept", what, trial.Knob)
				}
			}
			w.pristine(t, what)
		}
	}
	if committed != 1 {
		t.Errorf("%d runs survived their fault, want 1", committed)
	}
	t.Logf("%d calls, every %dth one with %d faults", healthy.calls, stride, len(modes))
}

// TestUndoImpossible checks that a host that cannot undo is reported, and that the others are still
// undone.
func TestUndoImpossible(t *testing.T) {
	w := longFatPath()
	hosts := w.tuneHosts()
	hosts[Far] = stuckHost{w.hosts[Far]}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kept := 0
	out, err := Run(ctx, configFor(w), w, hosts, []Candidate{
		{Knob: mtu, Side: Near, Levels: []knob.Value{"1400"}},
		{Knob: rmem, Side: Far, Levels: []knob.Value{"6144"}},
	}, func(e Event) {
		if e.Knob == rmem && e.Kind == EventPhase {
			kept++
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || kept != 1 {
		t.Fatalf("error %v", err)
	}
	if out.State != StateUndone {
		t.Errorf("nothing was applied yet, state %s", out.State)
	}

	out, err = Run(t.Context(), configFor(w), w, hosts, longFatCandidates(), nil)
	if !errors.Is(err, errInjected) || out.State != StateTrial {
		t.Errorf("error %v, state %s; want the undo's error and the truth about the state", err, out.State)
	}
	if w.hosts[Far].values[rmem] != "6144" || w.near(mtu) != "1500" || w.near(wmem) != "256" {
		t.Errorf("values %v %v", w.hosts[Far].values, w.hosts[Near].values)
	}
}

// stuckHost applies but never undoes.
type stuckHost struct{ *simHost }

func (stuckHost) Undo(context.Context, ...string) error { return errInjected }
