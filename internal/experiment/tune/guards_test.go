package tune

import (
	"math"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestGuardLimit checks the absolute limits: a change that breaks one is not kept, however much it
// gains, and a limit that a path already breaks counts against a change only if it makes that
// worse.
func TestGuardLimit(t *testing.T) {
	const tail, rate = "rtt_p99_seconds", "throughput_bits_per_second"
	free := math.Inf(1)
	tests := []struct {
		name          string
		guard         string
		g             Guard
		before, after float64 // value of the guard-rail without and with the knob; 0: not measured
		verdict       Verdict
		reason        string
	}{
		{"within", tail, Guard{Bound: free, Limit: 0.005}, 0.001, 0.004, Kept, "gains"},
		{"past", tail, Guard{Bound: free, Limit: 0.005}, 0.001, 0.006, RevertedWorse,
			"rtt_p99_seconds becomes 0.006, past its limit of 0.005"},
		{"past before and no worse", tail, Guard{Bound: free, Limit: 0.005}, 0.008, 0.008, Kept, "gains"},
		{"past before and better", tail, Guard{Bound: free, Limit: 0.005}, 0.008, 0.006, Kept, "gains"},
		{"past before and worse", tail, Guard{Bound: free, Limit: 0.005}, 0.008, 0.009, RevertedWorse,
			"past its limit"},
		{"not seen", tail, Guard{Bound: free, Limit: 0.005}, 0, 0, RevertedUnproven,
			"rtt_p99_seconds was not measured"},
		{"not seen without a limit", tail, Guard{Bound: 1}, 0, 0, Kept, "gains"},
		{"bound beside the limit", tail, Guard{Bound: 0.5, Limit: 0.005}, 0.001, 0.004, RevertedWorse,
			"worse by at least ×4, allowed is ×1.5"},
		{"rate holds", rate, Guard{Bound: free, Limit: 8e8, LowerIsWorse: true}, 9e8, 8.5e8, Kept, "gains"},
		{"rate falls below", rate, Guard{Bound: free, Limit: 8e8, LowerIsWorse: true}, 9e8, 7e8, RevertedWorse,
			"past its limit of 8e+08"},
		{"rate falls past its bound", rate, Guard{Bound: 0.1, LowerIsWorse: true}, 9e8, 7e8, RevertedWorse,
			"worse by at least ×1.29"},
		{"rate rises", rate, Guard{LowerIsWorse: true}, 7e8, 9e8, Kept, "gains"},
		{"rate falls above its floor", rate, Guard{LowerIsWorse: true, Floor: 5e8}, 9e8, 7e8, Kept, "gains"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := longFatPath()
			w.guards = func(w *world) map[string]float64 {
				v := tt.before
				if w.hosts[Far].values[rmem] == "640" {
					v = tt.after
				}
				if v == 0 {
					return nil
				}
				return map[string]float64{tt.guard: v}
			}
			c := configFor(w)
			c.Guards = map[string]Guard{tt.guard: tt.g}
			out, err := runDefault(t.Context(), c, w,
				[]Candidate{{Knob: rmem, Side: Far, Levels: []knob.Value{"640"}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := out.Trials[0]
			if got.Verdict != tt.verdict || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("verdict %s (%s), want %s (…%s…)", got.Verdict, got.Reason, tt.verdict, tt.reason)
			}
			if tt.before != 0 && (len(got.Guards) != 1 || got.Guards[0].Value != tt.after ||
				got.Guards[0].Limit != tt.g.Limit) {
				t.Errorf("guards %+v, want the value under the change and the limit", got.Guards)
			}
		})
	}
}

func TestGuardsRefused(t *testing.T) {
	for name, g := range map[string]Guard{
		"bound": {Bound: -0.1}, "not a number": {Bound: math.NaN()}, "floor": {Floor: -1}, "limit": {Limit: -1},
		"no limit": {Limit: math.Inf(1)},
	} {
		w := longFatPath()
		c := configFor(w)
		c.Guards = map[string]Guard{"rtt_p99_seconds": g}
		if _, err := runDefault(t.Context(), c, w, longFatCandidates(), nil); err == nil || w.calls != 0 {
			t.Errorf("%s: error %v after %d calls", name, err, w.calls)
		}
	}
}

// TestGuardLimitSeldomSeen checks a limit whose quantity only some segments under the change have,
// as when its load lets hardly any ping through: one good value does not hold the limit.
func TestGuardLimitSeldomSeen(t *testing.T) {
	const tail = "rtt_p99_seconds"
	for _, tt := range []struct {
		every   int // how many segments under the change have one value
		verdict Verdict
		reason  string
	}{
		{1, Kept, "gains"}, {6, RevertedUnproven, "rtt_p99_seconds was measured in 1 of 6 pairs"},
		{3, RevertedUnproven, "rtt_p99_seconds was measured in 2 of 6 pairs"}, {2, Kept, "gains"},
	} {
		w := longFatPath()
		segments := 0
		w.guards = func(w *world) map[string]float64 {
			if w.hosts[Far].values[rmem] != "640" {
				return map[string]float64{tail: 0.001}
			}
			if segments++; segments%tt.every != 0 {
				return nil
			}
			return map[string]float64{tail: 0.004}
		}
		c := configFor(w)
		c.Guards = map[string]Guard{tail: {Bound: math.Inf(1), Limit: 0.005}}
		out, err := runDefault(t.Context(), c, w, []Candidate{{Knob: rmem, Side: Far, Levels: []knob.Value{"640"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.Trials[0]; got.Verdict != tt.verdict || !strings.Contains(got.Reason, tt.reason) {
			t.Errorf("a value in one of %d segments: %s (%s), want %s (…%s…)", tt.every, got.Verdict, got.Reason,
				tt.verdict, tt.reason)
		}
	}
}
