package matrix

import (
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/report"
)

// Outcome returns the result of a whole scenario for its document. The document lists each kept
// change as side and knob, separated by a blank.
func Outcome(r *lab.Result) report.LabOutcome {
	o := report.LabOutcome{
		Scenario: r.Scenario.Name, Expected: r.Scenario.Expect.Finding, Found: r.Found,
		Healthy: r.Healthy, Before: r.Before, After: r.After,
		Pass: r.Pass, Skipped: r.Skipped, Disturbed: r.Disturbed, Reason: r.Reason, Duration: r.Duration,
	}
	for _, k := range r.Kept {
		o.Kept = append(o.Kept, k.Side+" "+k.Knob)
	}
	o.Replay, o.Unit = replayed(r)
	o.Document = r.Tune
	return o
}

// replayed returns what a replay proved and the unit of its figures, or nil for other scenarios.
func replayed(r *lab.Result) (*report.LabReplay, string) {
	w := r.Scenario.Replay
	if w == nil {
		return nil, ""
	}
	d := &report.LabReplay{Row: w.Row, Source: w.Source, Before: w.Before, After: w.After, Needed: w.Ratio,
		Trials: []report.LabReplayTrial{}}
	if g := r.Gain; g != nil {
		d.Confirmed = &report.LabGain{Pairs: g.Pairs, Ratio: g.Ratio, Low: g.Low, High: g.High,
			Confidence: g.Confidence}
	}
	for _, t := range r.Tried {
		d.Trials = append(d.Trials, report.LabReplayTrial{Change: t.Side + " " + t.Knob, From: t.From, To: t.To,
			Verdict: t.Verdict, Reason: t.Reason})
	}
	return d, w.Unit
}
