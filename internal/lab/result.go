package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// Kept is one knob that tuning left changed.
type Kept struct {
	Knob string `json:"knob"`
	Side string `json:"side"` // near, far
	From string `json:"from"`
	To   string `json:"to"`
}

// Result is the result of one played scenario. Figures are payload bits per second at the receiver,
// or transactions per second where the goal is latency; 0 means not measured.
type Result struct {
	Scenario scenario.Scenario
	Found    string // code of the first finding
	Kept     []Kept
	Healthy  float64 // the world without its faults
	Before   float64 // the world with its faults
	After    float64 // tuned
	Trials   int     // measured trials, one candidate each
	Together int     // 1: candidates that did not help alone were then tried together
	TuneTime time.Duration
	Ended    string    // why the tune ended, quoted from its document
	Removals []Removal // of the kept changes, in their order; empty unless Options.Removals asks for them
	Gain     *Gain     // what the tune of a replay confirmed; nil: nothing was kept
	Tried    []Tried   // the changes that the tune of a replay tried
	Proof    Proof
	Pass     bool
	Reason   string // why it did not pass, or why it was skipped, one sentence
	Skipped  bool   // the machine lacks what the scenario needs
	// Unreliable is the tune's own verdict on its measurements: a change without an effect seemed
	// to have one, or no segment was clean.
	Unreliable      bool
	DisturbedTrials int // trials of the tune without a clean segment
	// Disturbed: the scenario is not judged. Either the finding is right and the tune says that it
	// could not measure (Unreliable, DisturbedTrials), and so kept nothing or too little; or
	// something else took the machine meanwhile (Noise), and a finding or a figure is not the
	// expected one. All settings are back then. Or a command failed meanwhile: one that is kept
	// waiting refuses its work, as tune does without a guard.
	Disturbed bool
	Noise     string // what took the machine meanwhile, the end of a sentence; empty: nothing that matters
	Duration  time.Duration
	Warnings  []string

	Diagnose json.RawMessage // the near host's linerate.diagnose/1; nil unless Options.Verdict
	Tune     json.RawMessage // the near host's linerate.tune/1
}

// Proof compares all settings of both hosts before tuning and after undo.
type Proof struct {
	Compared int     // settings read in both hosts, each time
	Turned   []Value // the settings that tuning had changed, by host and name
	Left     []Value // the settings that are not back after undo
}

// Value is one setting at the three moments. An empty text means that the setting did not exist.
type Value struct {
	Host, Knob               string
	Before, Tuned, AfterUndo string
}

// Whole reports whether every setting is back and at least one was compared.
func (p Proof) Whole() bool { return p.Compared > 0 && len(p.Left) == 0 }

// prove compares snapshots of one host at the three moments and adds the differences.
func (p *Proof) prove(host string, before, tuned, after map[string]string) {
	names := map[string]bool{}
	for _, m := range []map[string]string{before, tuned, after} {
		for k := range m {
			names[k] = true
		}
	}
	p.Compared += len(names)
	sorted := make([]string, 0, len(names))
	for k := range names {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	for _, k := range sorted {
		v := Value{Host: host, Knob: k, Before: before[k], Tuned: tuned[k], AfterUndo: after[k]}
		if v.Tuned != v.Before {
			p.Turned = append(p.Turned, v)
		}
		if v.AfterUndo != v.Before {
			p.Left = append(p.Left, v)
		}
	}
}

// fail records the error of a command, which is no verdict where something else took the machine.
func (r *Result) fail(err error) {
	r.Reason = err.Error()
	if r.Noise != "" {
		r.Disturbed, r.Reason = true, fmt.Sprintf("not judged: %s (%v)", r.Noise, err)
	}
}

// judge decides whether the scenario passed. The reason is the first failure.
func (r *Result) judge() {
	e := r.Scenario.Expect
	healthy := r.Healthy
	if e.HealthyBitsPerSec > 0 {
		healthy = e.HealthyBitsPerSec
	}
	measured := false // the reason follows from measurements, which other programs disturb
	switch {
	case r.Found != e.Finding && (r.Scenario.Replay == nil || !slices.Contains(e.Also, r.Found)):
		measured, r.Reason = true, fmt.Sprintf("the first finding is %s, expected %s", r.Found, e.Finding)
	case !e.Tunable && len(r.Kept) > 0:
		r.Reason = fmt.Sprintf("%s was kept, though there is nothing to tune", names(r.Kept))
	case e.Tunable && len(r.Kept) == 0:
		measured, r.Reason = true, fmt.Sprintf("nothing was kept, expected one of %s", strings.Join(e.Knobs, ", "))
	case e.Tunable && !slices.ContainsFunc(r.Kept, func(k Kept) bool { return slices.Contains(e.Knobs, k.Knob) }):
		r.Reason = fmt.Sprintf("%s was kept, expected one of %s", names(r.Kept), strings.Join(e.Knobs, ", "))
	case e.Tunable && r.Scenario.Replay == nil && r.After < e.Passing()*healthy:
		measured = true
		r.Reason = fmt.Sprintf("the rate after tuning is %.0f %% of the healthy one, at least %.0f %% expected",
			100*r.After/healthy, 100*e.Passing())
	case r.Scenario.Replay != nil:
		r.judgeReplay()
	case !r.Proof.Whole():
		r.Reason = r.Proof.leftovers()
	default:
		r.Pass, r.Reason = true, ""
	}
	noise := r.Noise
	if noise == "" && r.Found == e.Finding && r.Scenario.Replay == nil {
		noise = r.unmeasured()
	}
	// A change that was kept without need, and a setting that is not back, are faults on any machine.
	unneeded := !e.Tunable && len(r.Kept) > 0
	if measured && noise != "" && r.Proof.Whole() && !unneeded {
		r.Disturbed, r.Reason = true, fmt.Sprintf("not judged: %s (%s)", noise, r.Reason)
	}
}

// unmeasured returns what the tune says that it could not measure; empty: it measured everything.
func (r *Result) unmeasured() string {
	switch {
	case r.Unreliable:
		return r.Ended
	case r.DisturbedTrials > 0:
		return fmt.Sprintf("the bench was too disturbed for %s", unit.Counted(r.DisturbedTrials, "trial"))
	}
	return ""
}

// leftovers names the settings that are not back.
func (p Proof) leftovers() string {
	left := make([]string, 0, len(p.Left))
	for _, v := range p.Left {
		left = append(left, v.Host+" "+v.Knob)
	}
	return fmt.Sprintf("these settings differ after undo: %s", strings.Join(left, ", "))
}

func names(kept []Kept) string {
	out := make([]string, len(kept))
	for i, k := range kept {
		out[i] = k.Knob + " (" + k.Side + ")"
	}
	return strings.Join(out, ", ")
}
