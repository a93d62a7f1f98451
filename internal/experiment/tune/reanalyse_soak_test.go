package tune

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReanalyseSoak checks that the segments of a soak reproduce its live judgement, whatever its
// result.
func TestReanalyseSoak(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules Rules
		after func(w *world) // while it soaks
		held  bool
		judge Verdict // now
		again int     // disagreements
	}{
		{"holds", Rules{}, nil, true, Kept, 0},
		{"the gain is gone", Rules{}, func(w *world) { w.gain = func(*world) float64 { return 5e7 } }, false,
			RevertedUnproven, 0},
		{"it is worse now", Rules{},
			func(w *world) { w.gain = func(w *world) float64 { return 1e9 / number(w.hosts[Far].values[rmem]) } },
			false, RevertedWorse, 0},
		{"a guard-rail is worse", Rules{}, func(w *world) {
			w.guards = func(w *world) map[string]float64 {
				return map[string]float64{"rtt_p99_seconds": 0.020 * number(w.hosts[Far].values[rmem])}
			}
		}, false, RevertedWorse, 0},
		{"disturbed in its third pair", Rules{}, func(w *world) {
			from := w.calls + 4
			w.discard = func(int) string {
				if w.calls > from {
					return "cross traffic"
				}
				return ""
			}
		}, true, RevertedUnproven, 0},
		// of trial, confirmation and soak
		{"rules that need more pairs", Rules{Confidence: 0.99}, nil, true, RevertedUnproven, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := longFatPath()
			c := configFor(w)
			c.Soak = time.Hour
			c.Wait = func(_ context.Context, d time.Duration) error {
				w.clock = w.clock.Add(d)
				if tt.after != nil {
					tt.after(w)
				}
				return nil
			}
			out, err := runDefault(t.Context(), c, w, longFatCandidates()[:1], nil)
			if err != nil {
				t.Fatal(err)
			}
			if out.Soak == nil || out.Soak.Held != tt.held {
				t.Fatalf("soak %+v", out.Soak)
			}
			again, err := Reanalyse(stored(t, out), tt.rules)
			if err != nil {
				t.Fatal(err)
			}
			if again.Disagreements != tt.again {
				t.Errorf("%d disagreements: %+v", again.Disagreements, again.Comparisons)
			}
			last := again.Comparisons[len(again.Comparisons)-1]
			if last.Phase != PhaseSoak || last.Judged != tt.judge || last.Stored == nil {
				t.Fatalf("judged %+v", last)
			}
			if tt.rules != (Rules{}) {
				return
			}
			if again.Changed != 0 {
				t.Errorf("%d effects changed", again.Changed)
			}
			if diff := cmp.Diff(out.Soak.Guards, last.Guards); diff != "" && !out.Soak.Untested {
				t.Errorf("guard-rails (-live +again):\n%s", diff)
			}
			if out.Soak.Untested != (last.Decided == "") || !out.Soak.Untested && (last.Decided == Kept) != tt.held {
				t.Errorf("untested %v, decided %q", out.Soak.Untested, last.Decided)
			}
		})
	}
}
