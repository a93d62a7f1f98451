package tune

import (
	"context"
	"math"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestKeptTwice turns one knob further after another change was kept. What the knob does is the
// product of its trials; its last trial compared two levels of it, and says nothing about the set
// without it.
func TestKeptTwice(t *testing.T) {
	w := longFatPath()
	w.gain = func(w *world) float64 {
		rate := 941e6 * min(1, number(w.hosts[Far].values[rmem])/2500)
		if w.near(mtu) == "1400" {
			rate *= 1.5
		}
		return rate
	}
	c := configFor(w)
	// So confident that three trials are few enough for the last one to stand for an ablation.
	c.Confidence, c.PilotPairs, c.Looks = 0.99, 8, []int{8, 12}
	c.Refill = func(_ context.Context, kept []Change) ([]Candidate, bool, error) {
		if len(kept) < 2 {
			return nil, false, nil
		}
		return []Candidate{{Knob: rmem, Side: Far, Levels: []knob.Value{"6144"}}}, false, nil
	}
	out, err := Run(t.Context(), c, w, w.tuneHosts(), []Candidate{
		{Knob: rmem, Side: Far, Levels: []knob.Value{"128"}},
		{Knob: mtu, Side: Near, Levels: []knob.Value{"1400"}},
	}, nil)
	if err != nil || len(out.Kept) != 2 || len(out.Trials) != 3 {
		t.Fatalf("error %v, kept %v\n%s", err, out.Kept, verdicts(out))
	}
	if i := out.Interaction; i == nil || i.Text != "" || math.Abs(i.Ratio-1) > 0.1 {
		t.Errorf("interaction %+v of independent changes; the confirmed set is %s", out.Interaction, out.Final)
	}
	for _, a := range out.Ablation {
		if a.Knob == rmem && (a.Reused || a.Ratio < 30) {
			t.Errorf("%s is worth %s in the set (reused: %v), want ×39", a.Knob, a.Effect, a.Reused)
		}
	}
}
