package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

// stored returns an outcome as a reader of the file sees it.
func stored(t *testing.T, o *Outcome) *Outcome {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var back Outcome
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	return &back
}

// simulated runs one experiment on a world with random noise, occasionally missing guard-rails and
// discarded segments.
func simulated(t *testing.T, seed uint64, ctx context.Context, change func(*world, *Config)) *Outcome {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	w := longFatPath()
	model := noiseModels[seed%uint64(len(noiseModels))]
	w.noise = model.make(random, 0.002+0.03*random.Float64())
	w.hosts[Far].values[rmem] = knob.Value(fmt.Sprint(64 << random.IntN(6)))
	w.hosts[Far].original[rmem] = w.hosts[Far].values[rmem]
	w.guards = func(w *world) map[string]float64 {
		guards := map[string]float64{"rtt_p99_seconds": 0.02 * math.Exp(0.1*random.NormFloat64()),
			"cpu_seconds_per_gigabyte": 1 + random.Float64(), "of no interest": 1}
		if random.IntN(4) == 0 {
			delete(guards, "rtt_p99_seconds")
		}
		return guards
	}
	w.discard = func(int) string {
		if random.IntN(20) == 0 {
			return "the CPU was stolen"
		}
		return ""
	}
	config := configFor(w)
	config.Seed, config.Looks = seed, []int{6, 9, 12}
	if change != nil {
		change(w, &config)
	}
	// Three looks up to twelve pairs: planning sixteen takes longer than the experiment.
	// The record has the result, even after an error.
	out, _ := Run(ctx, config, w, w.tuneHosts(), candidatesWithLevels(), nil)
	return out
}

// TestReanalyseReproduces checks that, by its own rules and after a trip through JSON, the segments
// reproduce every stored effect, guard-rail and verdict to the last bit, including those of
// interrupted runs.
func TestReanalyseReproduces(t *testing.T) {
	compared, kinds := 0, map[Phase]int{}
	for seed := range uint64(30) {
		ctx, cancel := context.WithCancel(t.Context())
		out := simulated(t, seed, ctx, func(w *world, c *Config) {
			switch seed % 5 {
			case 3:
				w.cancelAt, w.cancel = int(40+7*seed), cancel
			case 4:
				c.Confidence, c.MinUsefulEffect, c.Looks = 0.9, 0.03, []int{7, 12}
			}
		})
		cancel()
		again, err := Reanalyse(stored(t, out), Rules{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if out.Pilot != nil {
			if diff := cmp.Diff(out.Pilot, again.Pilot); diff != "" {
				t.Errorf("seed %d: pilot (-live +again):\n%s", seed, diff)
			}
		}
		if again.Changed != 0 || !again.OwnRules || again.RulesUnknown ||
			again.Segments+again.Discarded != len(out.Segments) || again.Discarded != out.Discarded {
			t.Errorf("seed %d: %+v", seed, again)
		}
		for _, c := range again.Comparisons {
			kinds[c.Phase]++
			if c.Stored != nil {
				compared++
				if diff := cmp.Diff(*c.Stored, c.Again); diff != "" {
					t.Errorf("seed %d: %s %d (-live +again):\n%s", seed, c.Phase, c.Trial, diff)
				}
			}
			if c.Phase == PhaseTrial {
				live := out.Trials[c.Trial]
				if diff := cmp.Diff(live.Guards, c.Guards); diff != "" && live.Pairs == c.Again.Pairs &&
					len(c.Guards) > 0 {
					t.Errorf("seed %d: guard-rails of trial %d:\n%s", seed, c.Trial, diff)
				}
				if c.Level != "" {
					t.Errorf("seed %d: trial %d would choose level %s now and chose %s", seed, c.Trial,
						c.Level, live.To)
				}
			}
			if c.Differs {
				t.Errorf("seed %d: %s %d was %s and is %s now: %s", seed, c.Phase, c.Trial, c.Decided,
					c.Judged, c.Reason)
			}
		}
	}
	if compared < 60 || kinds[PhaseTrial] == 0 || kinds[PhaseConfirmation] == 0 || kinds[PhaseAblation] == 0 {
		t.Errorf("only %d comparisons: %v", compared, kinds)
	}
}

// TestReanalyseOtherRules checks that a stricter rule reverts a narrow verdict and reports it, and
// that a clear one stands.
func TestReanalyseOtherRules(t *testing.T) {
	w := longFatPath()
	out, err := runDefault(t.Context(), configFor(w), w, longFatCandidates(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		rules Rules
		kept  bool
		want  string
	}{
		{"its own", Rules{}, true, "gains"},
		{"99 % needs more pairs than six", Rules{Confidence: 0.99}, false, "the next look is at 10"},
		{"more than the gain is asked for", Rules{MinUsefulEffect: 50}, false, "not proven"},
		{"a lower confidence", Rules{Confidence: 0.8}, true, "gains"},
	} {
		again, err := Reanalyse(out, c.rules)
		if err != nil {
			t.Fatal(err)
		}
		got := again.Comparisons[0]
		if (got.Judged == Kept) != c.kept || got.Differs == c.kept || !strings.Contains(got.Reason, c.want) ||
			(again.Disagreements == 0) != c.kept {
			t.Errorf("%s: %+v, %d disagreements", c.name, got, again.Disagreements)
		}
	}
	out.Design = nil
	if again, err := Reanalyse(out, Rules{}); err != nil || !again.RulesUnknown || again.Changed != 0 {
		t.Errorf("a run that does not say its rules: %+v, %v", again, err)
	}
	// Reanalyse detects a number that was changed in the file.
	out.Trials[0].Ratio *= 1.0001
	if again, err := Reanalyse(out, Rules{}); err != nil || again.Changed != 1 {
		t.Errorf("a forged effect: %+v, %v", again, err)
	}
}

// TestReanalyseRefuses checks that rules that cannot decide anything, and segments that no
// experiment produces, are rejected.
func TestReanalyseRefuses(t *testing.T) {
	w := longFatPath()
	good, err := runDefault(t.Context(), configFor(w), w, longFatCandidates(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		rules Rules
		spoil func(*Outcome)
		want  string
	}{
		{"all of certainty", Rules{Confidence: 1}, nil, "not between 0 and 1"},
		{"more than the pairs can show", Rules{Confidence: 0.999999999999}, nil, "cannot"},
		{"a negative effect", Rules{MinUsefulEffect: -1}, nil, "not a positive ratio"},
		{"an arm twice", Rules{}, func(o *Outcome) { o.Segments[1].Arm = o.Segments[0].Arm }, "twice"},
		{"too many pairs", Rules{}, func(o *Outcome) { o.Design.Looks = []int{6} }, "more than the 6 pairs"},
		{"looks without end", Rules{}, func(o *Outcome) { o.Design.Looks = make([]int, 500) }, "500 looks"},
		{"looks backwards", Rules{}, func(o *Outcome) { o.Design.Looks = []int{10, 6} }, "must increase"},
	} {
		out := stored(t, good)
		for i := range 30 {
			if c.name != "too many pairs" {
				break
			}
			for _, arm := range []string{"A", "B"} {
				out.Segments = append(out.Segments,
					Segment{Phase: PhaseTrial, Trial: 9, Pair: i, Arm: arm, Objective: 1})
			}
		}
		if c.spoil != nil {
			c.spoil(out)
		}
		if _, err := Reanalyse(out, c.rules); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "judge again: ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if again, err := Reanalyse(emptyOutcome(), Rules{}); err != nil || again.Pilot != nil ||
		len(again.Comparisons) != 0 {
		t.Errorf("nothing measured: %+v, %v", again, err)
	}
}

// FuzzReanalyse checks that no document causes a panic, and that every result can be written as a
// document.
func FuzzReanalyse(f *testing.F) {
	w := longFatPath()
	out, err := runDefault(f.Context(), configFor(w), w, candidatesWithLevels(), nil)
	if err != nil {
		f.Fatal(err)
	}
	b, err := json.Marshal(out)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, 0.95, 0.01)
	f.Add([]byte(`{"pilot":{"pairs":1},"segments":[{"phase":"trial","trial":-1,"arm":"A"},`+
		`{"phase":"trial","trial":-1,"arm":"B"}]}`), 0.5, 0.0)
	f.Add([]byte(`{"trials":[{"levels":[{"chosen":true}]}],"design":{"looks_pairs":[1000]}}`), 0.99, 1.0)
	f.Fuzz(func(t *testing.T, doc []byte, confidence, effect float64) {
		var o Outcome
		if json.Unmarshal(doc, &o) != nil || o.Design != nil && len(o.Design.Looks) > 0 &&
			o.Design.Looks[len(o.Design.Looks)-1] > 100 {
			return // a plan of a thousand pairs only takes long
		}
		again, err := Reanalyse(&o, Rules{Confidence: confidence, MinUsefulEffect: effect})
		if err != nil {
			return
		}
		if _, err := json.Marshal(again); err != nil {
			t.Error(err)
		}
	})
}
