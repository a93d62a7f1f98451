package report

// LabReplay is the part of linerate.lab/1 that compares the figures of a recreated write-up with
// what was proven here. Figures of the write-up are in the unit of the document.
type LabReplay struct {
	Row    string  `json:"row"`    // of the list in docs/evidence/replay.md
	Source string  `json:"source"` // title and year of the write-up
	Before float64 `json:"before,omitempty"`
	After  float64 `json:"after,omitempty"`
	// that the lower end had to reach; absent: no gain was expected
	Needed float64 `json:"needed_ratio,omitempty"`
	// the kept set against the original; absent: nothing was kept
	Confirmed *LabGain         `json:"confirmed,omitempty"`
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

// LabReplayTrial is one trial of the tune, with its verdict.
type LabReplayTrial struct {
	Change  string `json:"change"` // "near KNOB"
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}
