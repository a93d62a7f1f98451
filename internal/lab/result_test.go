package lab

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/lab/scenario"
)

func TestProof(t *testing.T) {
	var p Proof
	p.prove("near", map[string]string{"a": "1", "b": "1", "c": "1"}, map[string]string{"a": "2", "b": "1", "d": "9"},
		map[string]string{"a": "1", "b": "3", "d": "9"})
	want := Proof{
		Compared: 4,
		Turned:   []Value{{"near", "a", "1", "2", "1"}, {"near", "c", "1", "", ""}, {"near", "d", "", "9", "9"}},
		Left:     []Value{{"near", "b", "1", "1", "3"}, {"near", "c", "1", "", ""}, {"near", "d", "", "9", "9"}},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	if p.Whole() || (Proof{}).Whole() || !(Proof{Compared: 1}).Whole() {
		t.Error("Whole is wrong for one of three proofs")
	}
}

func TestJudge(t *testing.T) {
	tunable := scenario.Scenario{Expect: scenario.Expectation{Finding: "send-buffer-limited", Tunable: true,
		Knobs: []string{"w", "x"}}}
	nothing := scenario.Scenario{Expect: scenario.Expectation{Finding: "healthy"}}
	whole := Proof{Compared: 10}
	kept := []Kept{{Knob: "w", Side: "near"}}
	for name, c := range map[string]struct {
		r    Result
		want string // in the reason; empty: passes
	}{
		"good": {Result{Scenario: tunable, Found: "send-buffer-limited", Kept: kept, Healthy: 100, After: 90,
			Proof: whole}, ""},
		"other finding": {Result{Scenario: tunable, Found: "healthy", Kept: kept, Healthy: 100, After: 95,
			Proof: whole}, "first finding is healthy"},
		"nothing kept": {Result{Scenario: tunable, Found: "send-buffer-limited", Healthy: 100, After: 95,
			Proof: whole}, "nothing was kept"},
		"another kept": {Result{Scenario: tunable, Found: "send-buffer-limited",
			Kept: []Kept{{Knob: "z", Side: "far"}}, Healthy: 100, After: 95, Proof: whole}, "z (far) was kept"},
		"too slow": {Result{Scenario: tunable, Found: "send-buffer-limited", Kept: kept, Healthy: 100, After: 89,
			Proof: whole}, "89 %"},
		"not all back": {Result{Scenario: tunable, Found: "send-buffer-limited", Kept: kept, Healthy: 100, After: 95,
			Proof: Proof{Compared: 3, Left: []Value{{Host: "far", Knob: "w"}}}}, "far w"},
		"rightly idle":    {Result{Scenario: nothing, Found: "healthy", Healthy: 100, After: 50, Proof: whole}, ""},
		"busy for naught": {Result{Scenario: nothing, Found: "healthy", Kept: kept, Proof: whole}, "nothing to tune"},
	} {
		c.r.judge()
		if c.r.Pass != (c.want == "") || !strings.Contains(c.r.Reason, c.want) {
			t.Errorf("%s: pass %v, reason %q", name, c.r.Pass, c.r.Reason)
		}
	}
	fixed := tunable
	fixed.Expect.HealthyBitsPerSec = 200
	r := Result{Scenario: fixed, Found: "send-buffer-limited", Kept: kept, Healthy: 100, After: 95, Proof: whole}
	if r.judge(); r.Pass {
		t.Error("a fixed bound was not used")
	}
}

// TestJudgeBesideOthers: what other programs can change is not judged beside them; what they cannot
// is.
func TestJudgeBesideOthers(t *testing.T) {
	tunable := scenario.Scenario{Expect: scenario.Expectation{Finding: "path-loss", Tunable: true,
		Knobs: []string{"w"}}}
	sound := scenario.Scenario{Expect: scenario.Expectation{Finding: "healthy"}}
	whole, kept := Proof{Compared: 10}, []Kept{{Knob: "w"}}
	for name, c := range map[string]struct {
		r                 Result
		disturbed, passes bool
	}{
		"another finding": {Result{Scenario: tunable, Found: "cpu-saturated", Proof: whole}, true, false},
		"nothing kept":    {Result{Scenario: tunable, Found: "path-loss", Proof: whole}, true, false},
		"too slow": {Result{Scenario: tunable, Found: "path-loss", Kept: kept, Healthy: 100, After: 50,
			Proof: whole}, true, false},
		"good": {Result{Scenario: tunable, Found: "path-loss", Kept: kept, Healthy: 100, After: 95,
			Proof: whole}, false, true},
		"not all back": {Result{Scenario: tunable, Found: "cpu-saturated",
			Proof: Proof{Compared: 1, Left: []Value{{Host: "near", Knob: "w"}}}}, false, false},
		"a change that nothing needed": {Result{Scenario: sound, Found: "healthy", Kept: kept, Proof: whole}, false, false},
		"the same with another finding": {Result{Scenario: sound, Found: "cpu-saturated", Kept: kept, Proof: whole},
			false, false},
		"the wrong change": {Result{Scenario: tunable, Found: "path-loss", Kept: []Kept{{Knob: "z"}}, Proof: whole},
			false, false},
	} {
		c.r.Noise = "other programs used 0.5 of the 2 CPUs of this machine meanwhile"
		c.r.judge()
		if c.r.Disturbed != c.disturbed || c.r.Pass != c.passes ||
			c.disturbed && !strings.HasPrefix(c.r.Reason, "not judged: other programs used 0.5") {
			t.Errorf("%s: disturbed %v, pass %v, reason %q", name, c.r.Disturbed, c.r.Pass, c.r.Reason)
		}
	}
}

// TestFail checks that the error of a command counts unless something else took the machine.
func TestFail(t *testing.T) {
	err := errors.New("near: linerate tune: exit status 1: start guard: no answer")
	for noise, want := range map[string]string{"": err.Error(),
		"other programs used 1.9 of the 2 CPUs": "not judged: other programs used 1.9 of the 2 CPUs (" + err.Error() + ")"} {
		r := Result{Noise: noise}
		if r.fail(err); r.Pass || r.Disturbed != (noise != "") || r.Reason != want {
			t.Errorf("%+v, want %q", r, want)
		}
	}
}

// TestJudgeDisturbed checks that unreliable measurements excuse a tune that keeps nothing, and no
// other failure.
func TestJudgeDisturbed(t *testing.T) {
	tunable := scenario.Scenario{Expect: scenario.Expectation{Finding: "path-loss", Tunable: true,
		Knobs: []string{"w"}}}
	whole := Proof{Compared: 10}
	for name, c := range map[string]struct {
		r    Result
		want bool
	}{
		"kept too little": {Result{Scenario: tunable, Found: "path-loss", Kept: []Kept{{Knob: "w"}}, After: 0.4,
			Healthy: 1, DisturbedTrials: 1, Proof: whole}, true},
		"kept too little, undisturbed": {Result{Scenario: tunable, Found: "path-loss", Kept: []Kept{{Knob: "w"}},
			After: 0.4, Healthy: 1, Proof: whole}, false},
		"nothing kept":  {Result{Scenario: tunable, Found: "path-loss", Ended: "7 % stolen", Proof: whole}, true},
		"other finding": {Result{Scenario: tunable, Found: "healthy", Ended: "7 % stolen", Proof: whole}, false},
		"another kept": {Result{Scenario: tunable, Found: "path-loss", Kept: []Kept{{Knob: "z"}}, Proof: whole},
			false},
		"not all back": {Result{Scenario: tunable, Found: "path-loss",
			Proof: Proof{Compared: 1, Left: []Value{{Host: "near", Knob: "w"}}}}, false},
	} {
		c.r.Unreliable = len(c.r.Kept) == 0
		c.r.judge()
		if c.r.Disturbed != c.want || c.r.Pass || c.want != strings.HasPrefix(c.r.Reason, "not judged: "+c.r.Ended) {
			t.Errorf("%s: disturbed %v, pass %v, reason %q", name, c.r.Disturbed, c.r.Pass, c.r.Reason)
		}
	}
}
