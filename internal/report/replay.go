package report

import (
	"fmt"
	"strings"
)

// LabReplay is the part of linerate.lab/1 that tells what a recreated write-up had and what was proven here. Figures of the write-up are in the
// document's unit.
type LabReplay struct {
	Row       string           `json:"row"`    // of the list in docs/replay.md
	Source    string           `json:"source"` // title and year of the write-up
	Before    float64          `json:"before,omitempty"`
	After     float64          `json:"after,omitempty"`
	Needed    float64          `json:"needed_ratio,omitempty"` // that the lower end had to reach; absent: nothing was to be gained
	Confirmed *LabGain         `json:"confirmed,omitempty"`    // the kept set against the original; absent: nothing was kept
	Trials    []LabReplayTrial `json:"trials"`
}

// LabGain is an interval of a ratio: 1 is no change.
type LabGain struct {
	Pairs      int     `json:"pairs"`
	Ratio      float64 `json:"effect_ratio"`
	Low        float64 `json:"effect_low_ratio"`
	High       float64 `json:"effect_high_ratio"`
	Confidence float64 `json:"confidence_ratio"`
}

// LabReplayTrial is one change that was tried and what the tune said of it.
type LabReplayTrial struct {
	Change  string `json:"change"` // "near KNOB"
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}

// text is what stands below the line of the scenario: the write-up's figure, ours, and what became of each trial.
func (r *LabReplay) text() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n    %s, %s", r.Row, r.Source)
	if r.Before > 0 && r.After > 0 {
		fmt.Fprintf(&b, ": ×%.3g there", r.After/r.Before)
	}
	if g := r.Confirmed; g != nil && g.Ratio > 0 {
		fmt.Fprintf(&b, "; ×%.3g here, ×%.3g to ×%.3g with %.0f %% confidence", g.Ratio, g.Low, g.High, 100*g.Confidence)
	}
	for _, t := range r.Trials {
		fmt.Fprintf(&b, "\n    %s: %s: %s", t.Change, t.Verdict, t.Reason)
	}
	return b.String()
}
