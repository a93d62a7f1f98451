package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// Gain is the confirmed gain of a replay's tune: the kept set against the original, with its
// interval.
type Gain struct {
	Pairs      int     `json:"pairs"`
	Ratio      float64 `json:"effect_ratio"`
	Low        float64 `json:"effect_low_ratio"`
	High       float64 `json:"effect_high_ratio"`
	Confidence float64 `json:"confidence_ratio"`
}

// Tried is one change that a replay's tune tried.
type Tried struct {
	Kept
	Gain
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	Joint   bool   `json:"together"` // tried together with all other changes that have this mark
}

// tuned is the part of linerate.tune/1 that decides whether a replay passes.
type tuned struct {
	State    string  `json:"state"`
	Reason   string  `json:"reason"`
	Final    *Gain   `json:"final"`
	Kept     []Kept  `json:"kept"`
	Trials   []Tried `json:"trials"`
	Ablation []struct {
		Kept
		Ratio  float64 `json:"effect_ratio"` // gain of this change beside the other kept ones
		Needed bool    `json:"needed"`
	} `json:"ablation"`
}

// judgeReplay decides by the document of the tune whether a replay passed. The reason is the first
// failure.
func (r *Result) judgeReplay() {
	want := *r.Scenario.Replay
	var t tuned
	if err := json.Unmarshal(r.Tune, &t); err != nil {
		r.Reason = fmt.Sprintf("the document of the tune: %v", err)
		return
	}
	r.Tried = t.Trials
	if len(t.Kept) > 0 {
		r.Gain = t.Final
	}
	if r.Reason = misses(want, t); r.Reason != "" {
		return
	}
	if !r.Proof.Whole() {
		r.Reason = r.Proof.leftovers()
		return
	}
	r.Pass = true
}

// misses returns the first way in which a tune falls short of a replay, or "".
func misses(want scenario.Replay, t tuned) string {
	if want.Ratio > 0 {
		switch {
		case t.Final == nil || t.State != "committed":
			return "nothing was confirmed: " + t.Reason
		case !(t.Final.Low >= want.Ratio):
			return fmt.Sprintf("the confirmed gain is ×%.3g, at least ×%.3g; the lower bound must reach ×%.3g",
				t.Final.Ratio, t.Final.Low, want.Ratio)
		}
	}
	for _, c := range want.Kept {
		if !slices.ContainsFunc(t.Kept, named(c)) {
			return fmt.Sprintf("%s was not kept", c)
		}
		for _, a := range t.Ablation {
			if named(c)(a.Kept) && !a.Needed {
				return fmt.Sprintf("%s is not needed beside the others", c)
			}
		}
	}
	for _, c := range want.Alone {
		if gain := t.alone(c); gain >= want.Ratio {
			return fmt.Sprintf("%s alone gains ×%.3g", c, gain)
		}
	}
	for _, c := range want.Worse {
		proven := false
		for _, x := range t.Trials {
			proven = proven || named(c)(x.Kept) && x.Verdict == "reverted-worse" && strings.Contains(x.Reason, "worse")
		}
		if !proven {
			return fmt.Sprintf("%s was not proven worse and taken back", c)
		}
	}
	return ""
}

// alone returns the gain of one change without the others, as a ratio, or 0 if the tune does not
// show it.
//
// The change's own trial shows it as long as nothing is kept; a later trial is measured on top of
// the kept changes. For two kept changes the ablation shows it too: the part of the whole gain that
// remains without the other change.
func (t tuned) alone(change string) float64 {
	for _, x := range t.Trials {
		switch {
		case x.Joint:
		case named(change)(x.Kept):
			return x.Gain.Ratio
		case x.Verdict == "kept":
			if len(t.Ablation) != 2 || t.Final == nil {
				return 0
			}
			for _, other := range t.Ablation {
				if !named(change)(other.Kept) && other.Ratio > 0 {
					return t.Final.Ratio / other.Ratio
				}
			}
			return 0
		}
	}
	return 0
}

// named returns a function that reports whether a change is the one of a text, "near KNOB".
func named(text string) func(Kept) bool {
	return func(k Kept) bool { return k.Side+" "+k.Knob == text }
}
