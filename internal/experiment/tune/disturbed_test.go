package tune

import (
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestDisturbed checks that a run which keeps nothing, because a part of it had no clean segment,
// gives no verdict.
func TestDisturbed(t *testing.T) {
	for name, c := range map[string]struct {
		candidates []Candidate
		disturbed  func(Event) bool // asked at the begin of each trial and phase
		rolledBack bool
		reason     string
	}{
		// The other candidate is measured, and has no effect.
		"trial": {[]Candidate{
			{Knob: rmem, Side: Far, Levels: []knob.Value{"6144"}},
			{Knob: tso, Side: Near, Levels: []knob.Value{"off"}},
		}, func(e Event) bool { return e.Knob == rmem }, false, "for 1 of 2 trials"},
		"confirmation": {longFatCandidates(), func(e Event) bool { return e.Phase == PhaseConfirmation }, true, "steal 30 %"},
	} {
		t.Run(name, func(t *testing.T) {
			w := longFatPath()
			disturbed := false
			w.discard = func(int) string {
				if disturbed {
					return "steal 30 %"
				}
				return ""
			}
			out, err := runDefault(t.Context(), configFor(w), w, c.candidates, func(e Event) {
				if e.Kind == EventPhase {
					disturbed = c.disturbed(e)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if !out.Unreliable || out.RolledBack != c.rolledBack || len(out.Kept) != 0 ||
				!strings.Contains(out.Reason, c.reason) {
				t.Errorf("unreliable %v, rolled back %v, kept %v, reason %q", out.Unreliable, out.RolledBack,
					out.Kept, out.Reason)
			}
			if last := out.Trials[len(out.Trials)-1]; last.Pairs == 0 {
				t.Errorf("the trial of %s was not measured: %s", last.Knob, last.Reason)
			}
			w.pristine(t, "after")
		})
	}
}

// TestRestlessNeighbours runs experiments on a host that never has a clean segment, but knows what
// each can have lost. A gain above that is kept; one that the neighbours can explain is not, even
// if they really slow only the old settings.
func TestRestlessNeighbours(t *testing.T) {
	const loss = 0.12
	candidates := []Candidate{{Knob: tso, Side: Near, Levels: []knob.Value{"off"}}}
	for name, c := range map[string]struct {
		off, on float64 // rates of the settings
		kept    bool
		reason  string
	}{
		"twice as fast":            {2, 1, true, "even if disturbances cost only the old settings up to 12.0 %"},
		"just what they explain":   {1, 1 - loss, false, "disturbances can have cost a segment up to 12.0 %"},
		"three per cent":           {1.03, 1, false, "disturbances can have cost a segment up to 12.0 %"},
		"more than they explain":   {1.25, 1, true, "even if"},
		"worse than they explain":  {0.8, 1, false, "worse: "},
		"a loss that they explain": {1 - loss, 1, false, "not proven"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(map[Side]map[knob.ID]knob.Value{Near: {tso: "on"}}, func(w *world) float64 {
				if w.near(tso) == "off" {
					return 1e9 * c.off
				}
				return 1e9 * c.on
			})
			w.discard, w.loss = func(int) string { return "13 % stolen" }, loss
			out, err := runDefault(t.Context(), configFor(w), w, candidates, nil)
			if err != nil {
				t.Fatal(err)
			}
			trial := out.Trials[0]
			if (len(out.Kept) == 1) != c.kept || out.Unreliable || !strings.Contains(trial.Reason, c.reason) {
				t.Errorf("kept %v, unreliable %v, %q", out.Kept, out.Unreliable, trial.Reason)
			}
			if trial.Ratio < c.off/c.on*0.999 || trial.Ratio > c.off/c.on*1.001 {
				t.Errorf("the effect is %v, and %v was measured", trial.Ratio, c.off/c.on)
			}
			// The first segment of each comparison is tried for a clean one.
			comparisons := map[Phase]int{}
			for _, s := range out.Segments {
				if s.Discard != "" {
					comparisons[s.Phase]++
				} else if s.LossRatio != loss {
					t.Errorf("a segment counts with a loss of %v", s.LossRatio)
				}
			}
			for phase, n := range comparisons {
				if n != configFor(w).MaxRepeats {
					t.Errorf("%d segments of the %s were discarded", n, phase)
				}
			}
			if !slices.ContainsFunc(out.Warnings, func(s string) bool { return strings.Contains(s, "up to 12.0 %") }) {
				t.Errorf("no warning of it: %q", out.Warnings)
			}
			again, err := Reanalyse(out, Rules{})
			if err != nil || again.Changed > 0 || again.Disagreements > 0 || again.Pilot == nil ||
				again.Pilot.ResolvableEffect != out.Pilot.ResolvableEffect {
				t.Errorf("judged again: %+v, %v", again, err)
			}
		})
	}
}

// TestAllLost has segments that can have lost everything: no gain is above that, so they never
// count.
func TestAllLost(t *testing.T) {
	w := longFatPath()
	w.discard, w.loss = func(int) string { return "100 % stolen" }, 1
	out, err := runDefault(t.Context(), configFor(w), w, longFatCandidates(), nil)
	if err != nil || !out.Unreliable || len(out.Trials) != 0 {
		t.Errorf("unreliable %v, %d trials, %v", out.Unreliable, len(out.Trials), err)
	}
}
