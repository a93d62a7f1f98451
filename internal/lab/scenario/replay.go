package scenario

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

//go:embed scenarios/replay/*.json
var replayFiles embed.FS

// replays is the directory of scenarios that recreate a write-up.
const replays = "scenarios/replay"

// Replay names the write-up that a scenario recreates and the result that it must reach. Figures
// are the write-up's own, in Unit.
type Replay struct {
	Row    string  `json:"row"`    // of the list in docs/evidence/replay.md: "S3"
	Source string  `json:"source"` // title and year of the write-up
	Unit   string  `json:"unit"`   // bits_per_second, transactions_per_second, packets_per_second
	Before float64 `json:"before,omitempty"`
	After  float64 `json:"after,omitempty"`
	// Ratio is what the lower bound of the confirmed gain must reach; 0: no gain is expected.
	Ratio float64 `json:"ratio,omitempty"`
	// Kept are the changes that tuning must keep and need, all of them: "near KNOB", "far KNOB".
	Kept []string `json:"kept,omitempty"`
	// Alone are changes that must not reach Ratio alone: if both ends wait, changing one is not
	// enough.
	Alone []string `json:"alone,omitempty"`
	// Worse are changes that tuning must try, prove worse and take back.
	Worse []string `json:"worse,omitempty"`
}

// Replays returns the scenarios that recreate a write-up, by name.
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
			return nil, fmt.Errorf("scenario %q: it does not name the write-up that it recreates", s.Name)
		}
		all = append(all, s)
	}
	return all, nil
}

// units are the permitted units of a replay's figures.
var units = []string{"bits_per_second", "transactions_per_second", "packets_per_second"}

// check returns the first error of a scenario's replay, or nil.
func (r Replay) check(s Scenario) error {
	if r.Row == "" || r.Source == "" || !slices.Contains(units, r.Unit) {
		return fmt.Errorf("replay: row, source and a unit of %v are required", units)
	}
	if (r.Ratio > 1) != (len(r.Kept) > 0) || r.Ratio != 0 && r.Ratio <= 1 || r.Before < 0 || r.After < 0 {
		return errors.New("replay: a gain must exceed 1 and name the changes to keep")
	}
	if r.Ratio == 0 && len(r.Worse) == 0 {
		return errors.New("replay: a gain or a change to take back is required")
	}
	for _, c := range slices.Concat(r.Kept, r.Alone, r.Worse) {
		side, knob, ok := strings.Cut(c, " ")
		if !ok || side != "near" && side != "far" || !strings.Contains(knob, ":") {
			return fmt.Errorf("replay: change %q: want near or far and a knob", c)
		}
	}
	if len(r.Kept) > 0 != s.Expect.Tunable {
		return errors.New("replay: the changes to keep contradict the expectation")
	}
	return nil
}
