package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// Kept is one knob that tuning left changed.
type Kept struct {
	Knob string `json:"knob"`
	Side string `json:"side"` // near, far
	From string `json:"from"`
	To   string `json:"to"`
}

// Result is what one played scenario came to. Figures are payload bits per second at the receiver,
// or transactions per second where latency is the goal; 0 means not measured.
type Result struct {
	Scenario scenario.Scenario
	Found    string // code of the first finding
	Kept     []Kept
	Healthy  float64 // the world without its faults
	Before   float64 // with them
	After    float64 // tuned
	Trials   int     // that were measured, one candidate each
	Together int     // 1: those that did not help alone were then tried together
	TuneTime time.Duration
	Ended    string    // why the tune ended as it did, in its own words
	Removals []Removal // of what was kept, in its order; none unless they were asked for
	Gain     *Gain     // what the tune of a replay confirmed; nil: nothing was kept
	Tried    []Tried   // and what it tried
	Proof    Proof
	Pass     bool
	Reason   string // why it did not pass, or why it was skipped, one sentence
	Skipped  bool   // the machine lacks what the scenario needs
	// Unreliable is the tune's own word on its bench: it called nothing something, or had no clean
	// segment.
	Unreliable bool
	// Disturbed: for that reason nothing was tried, and whether tuning repairs the fault is not
	// judged. The finding is right, and all is back.
	Disturbed bool
	Duration  time.Duration
	Warnings  []string

	Diagnose json.RawMessage // the near host's linerate.diagnose/1; nil unless Options.Verdict
	Tune     json.RawMessage // the near host's linerate.tune/1
}

// Proof compares all settings of both hosts before tuning and after undo.
type Proof struct {
	Compared int     // settings read in both hosts, each time
	Turned   []Value // those that tuning had changed, by host and name
	Left     []Value // those that are not back: none, or the undo has failed
}

// Value is one setting at the three moments. An empty text means that the setting was not there.
type Value struct {
	Host, Knob               string
	Before, Tuned, AfterUndo string
}

// Whole tells whether everything is back and something was compared.
func (p Proof) Whole() bool { return p.Compared > 0 && len(p.Left) == 0 }

// prove compares snapshots of one host at the three moments and adds what it finds.
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

// judge decides whether the scenario passed and says why not; the first reason counts.
func (r *Result) judge() {
	e := r.Scenario.Expect
	healthy := r.Healthy
	if e.HealthyBitsPerSec > 0 {
		healthy = e.HealthyBitsPerSec
	}
	switch {
	case r.Found != e.Finding && (r.Scenario.Replay == nil || !slices.Contains(e.Also, r.Found)):
		r.Reason = fmt.Sprintf("the first finding is %s, expected %s", r.Found, e.Finding)
	case !e.Tunable && len(r.Kept) > 0:
		r.Reason = fmt.Sprintf("%s was kept, though there is nothing to tune", names(r.Kept))
	case e.Tunable && len(r.Kept) == 0 && r.Unreliable && r.Scenario.Replay == nil && r.Proof.Whole():
		r.Disturbed, r.Reason = true, "not judged: "+r.Ended
	case e.Tunable && len(r.Kept) == 0:
		r.Reason = fmt.Sprintf("nothing was kept, expected one of %s", strings.Join(e.Knobs, ", "))
	case e.Tunable && !slices.ContainsFunc(r.Kept, func(k Kept) bool { return slices.Contains(e.Knobs, k.Knob) }):
		r.Reason = fmt.Sprintf("%s was kept, expected one of %s", names(r.Kept), strings.Join(e.Knobs, ", "))
	case e.Tunable && r.Scenario.Replay == nil && r.After < e.Passing()*healthy:
		r.Reason = fmt.Sprintf("the rate after tuning is %.0f %% of the healthy one, at least %.0f %% expected",
			100*r.After/healthy, 100*e.Passing())
	case r.Scenario.Replay != nil:
		r.judgeReplay()
	case !r.Proof.Whole():
		r.Reason = r.Proof.leftovers()
	default:
		r.Pass, r.Reason = true, ""
	}
}

// leftovers names what is not back.
func (p Proof) leftovers() string {
	left := make([]string, 0, len(p.Left))
	for _, v := range p.Left {
		left = append(left, v.Host+" "+v.Knob)
	}
	return fmt.Sprintf("after undo these are not as before: %s", strings.Join(left, ", "))
}

func names(kept []Kept) string {
	out := make([]string, len(kept))
	for i, k := range kept {
		out[i] = k.Knob + " (" + k.Side + ")"
	}
	return strings.Join(out, ", ")
}
