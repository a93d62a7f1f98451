package lab

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

//go:embed scenarios/replay/*.json
var replayFiles embed.FS

// replays is the directory of the scenarios that recreate a write-up.
const replays = "scenarios/replay"

// Replay says which write-up a scenario recreates and what must come of it. Figures are the write-up's own, in Unit.
type Replay struct {
	Row    string  `json:"row"`    // of the list in docs/replay.md: "S3"
	Source string  `json:"source"` // title and year of the write-up
	Unit   string  `json:"unit"`   // bits_per_second, transactions_per_second, packets_per_second
	Before float64 `json:"before,omitempty"`
	After  float64 `json:"after,omitempty"`
	// Ratio is what the lower bound of the confirmed gain must reach; 0: nothing is to be gained.
	Ratio float64 `json:"ratio,omitempty"`
	// Kept are the changes that must all stay, each needed: "near KNOB", "far KNOB".
	Kept []string `json:"kept,omitempty"`
	// Alone are changes that must not reach Ratio by themselves: of two ends that wait, one is not enough.
	Alone []string `json:"alone,omitempty"`
	// Worse are changes that must have been tried, proven worse and taken back.
	Worse []string `json:"worse,omitempty"`
}

// Gain is what a tune confirmed of a replay: the kept set against the original, with its interval.
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
	Joint   bool   `json:"together"` // with all others that say so
}

// Replays gives the scenarios that recreate a write-up, by name.
func Replays() ([]Scenario, error) {
	entries, err := replayFiles.ReadDir(replays)
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	var all []Scenario
	for _, e := range entries {
		s, err := loadFrom(replayFiles, replays, strings.TrimSuffix(e.Name(), ".json"))
		if err != nil {
			return nil, err
		}
		if s.Replay == nil {
			return nil, fmt.Errorf("scenario %q: it does not say what it recreates", s.Name)
		}
		all = append(all, s)
	}
	return all, nil
}

// units are those in which a replay's figures may be.
var units = []string{"bits_per_second", "transactions_per_second", "packets_per_second"}

// check says what is wrong with a replay of a scenario, or nil.
func (r Replay) check(s Scenario) error {
	if r.Row == "" || r.Source == "" || !slices.Contains(units, r.Unit) {
		return fmt.Errorf("replay: row, source and a unit of %v are needed", units)
	}
	if (r.Ratio > 1) != (len(r.Kept) > 0) || r.Ratio != 0 && r.Ratio <= 1 || r.Before < 0 || r.After < 0 {
		return errors.New("replay: a gain is more than 1 and names what must be kept")
	}
	if r.Ratio == 0 && len(r.Worse) == 0 {
		return errors.New("replay: neither a gain nor a change that is taken back")
	}
	for _, c := range slices.Concat(r.Kept, r.Alone, r.Worse) {
		side, knob, ok := strings.Cut(c, " ")
		if !ok || side != "near" && side != "far" || !strings.Contains(knob, ":") {
			return fmt.Errorf("replay: change %q: want near or far and a knob", c)
		}
	}
	if len(r.Kept) > 0 != s.Expect.Tunable {
		return errors.New("replay: what must be kept and what is expected differ")
	}
	return nil
}

// tuned is the part of linerate.tune/1 that a replay is judged by.
type tuned struct {
	State    string  `json:"state"`
	Reason   string  `json:"reason"`
	Final    *Gain   `json:"final"`
	Kept     []Kept  `json:"kept"`
	Trials   []Tried `json:"trials"`
	Ablation []struct {
		Kept
		Ratio  float64 `json:"effect_ratio"` // of having it, beside the others
		Needed bool    `json:"needed"`
	} `json:"ablation"`
}

// judgeReplay decides whether a replay passed, by the document of its tune, and says why not; the first reason counts.
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
	if r.Reason = want.misses(t); r.Reason != "" {
		return
	}
	if !r.Proof.Whole() {
		r.Reason = r.Proof.leftovers()
		return
	}
	r.Pass = true
}

// misses is the first thing in which a tune falls short of a replay; empty: in nothing.
func (want Replay) misses(t tuned) string {
	if want.Ratio > 0 {
		switch {
		case t.Final == nil || t.State != "committed":
			return "nothing was confirmed: " + t.Reason
		case !(t.Final.Low >= want.Ratio):
			return fmt.Sprintf("the confirmed gain is ×%.3g, at least ×%.3g; the lower bound must reach ×%.3g", t.Final.Ratio, t.Final.Low, want.Ratio)
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

// alone is what one change gains by itself, as a ratio; 0 when the tune did not tell.
//
// Its own trial tells as long as nothing is kept; a later one is measured on top of what was. Of two kept changes the
// ablation tells as well: what is left of the whole gain without the other.
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

// named tells whether a change is the one of a text, "near KNOB".
func named(text string) func(Kept) bool {
	return func(k Kept) bool { return k.Side+" "+k.Knob == text }
}
