package tune

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestLevels checks that the search finds the knee: the smallest level that is as good as the best.
func TestLevels(t *testing.T) {
	levels := []knob.Value{"128", "512", "2048", "3072", "6144", "12288"}
	plan, err := defaultPlan()
	if err != nil {
		t.Fatal(err)
	}
	chosen := map[knob.Value]int{}
	segments := 0
	for seed := range uint64(200) {
		w := longFatPath()
		w.hosts[Near].values[wmem], w.hosts[Near].original[wmem] = "99999", "99999"
		random := rand.New(rand.NewPCG(seed, 1))
		w.noise = func(int) float64 { return 0.01 * random.NormFloat64() }
		c := configFor(w)
		c.Seed = seed
		out, err := run(t.Context(), c, plan, w, w.tuneHosts(),
			[]Candidate{{Knob: rmem, Side: Far, Levels: levels}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		trial := out.Trials[0]
		if trial.Verdict != Kept || len(trial.Levels) != len(levels) {
			t.Fatalf("seed %d: %s %s, %d levels", seed, trial.Verdict, trial.Reason, len(trial.Levels))
		}
		chosen[trial.To]++
		for _, s := range out.Segments {
			if s.Phase == PhaseLevels {
				segments++
			}
		}
	}
	// 2500 KiB fill the path: 3072 is the smallest level that does.
	if chosen["3072"] < 150 || chosen["128"]+chosen["512"]+chosen["2048"] > 0 {
		t.Errorf("levels chosen %v, want 3072 mostly and never less", chosen)
	}
	if mean := float64(segments) / 200; mean > 13 {
		t.Errorf("%.1f segments for %d levels, want about two a level", mean, len(levels))
	}
}

func TestLevelsRefused(t *testing.T) {
	w := longFatPath()
	w.hosts[Near].values[wmem], w.hosts[Near].original[wmem] = "99999", "99999"
	// The host accepts no value above its limit: those levels drop out, the rest continue.
	limited := limitedHost{w.hosts[Far], 4000}
	hosts := w.tuneHosts()
	hosts[Far] = limited
	out, err := Run(t.Context(), configFor(w), w, hosts,
		[]Candidate{{Knob: rmem, Side: Far, Levels: []knob.Value{"3000", "9000", "18000"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trial := out.Trials[0]
	if trial.Verdict != Kept || trial.To != "3000" || trial.Levels[1].Refused == "" || trial.Levels[2].Refused == "" ||
		!trial.Levels[0].Chosen {
		t.Errorf("%s %s: levels %+v", trial.Verdict, trial.Reason, trial.Levels)
	}
}

// limitedHost refuses values above its limit as out of range.
type limitedHost struct {
	*simHost
	limit float64
}

func (h limitedHost) Apply(ctx context.Context, reason string, settings ...knob.Setting) ([]string, error) {
	for _, s := range settings {
		if number(s.Value) > h.limit {
			return nil, &knob.RangeError{Value: s.Value, Allowed: "no more"}
		}
	}
	return h.simHost.Apply(ctx, reason, settings...)
}
