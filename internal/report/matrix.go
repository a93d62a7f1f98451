package report

import "encoding/json"

// SchemaMatrix is the document of `lab matrix`, which package lab/matrix fills and judges.
const SchemaMatrix = "linerate.matrix/1"

// MatrixFinding is one finding of a verdict, as far as it matters for whether the verdict is right.
type MatrixFinding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Title    string `json:"title"`
}

// MatrixCase is one verdict on one world: a scenario at a level, played once.
type MatrixCase struct {
	Scenario string `json:"scenario"`
	Level    string `json:"level,omitempty"` // absent: nothing is wrong in this world
	Ground   string `json:"ground"`          // namespace, guest
	Kernel   string `json:"kernel"`          // release on which it was played
	Mode     string `json:"mode"`            // target, passive-near, passive-far
	Run      int    `json:"run"`             // from 1
	// code that must come first, then others that are as right; of two faults both
	Expected []string        `json:"expected"`
	Pair     bool            `json:"pair,omitempty"` // two faults at once
	Found    []MatrixFinding `json:"found"`          // in the order of the verdict
	// the first finding is right; of two faults both are named; of a sound world also: no warning
	Right bool `json:"right"`
	// place of the expected code among the findings, from 1; absent: not found
	Rank     int      `json:"rank,omitempty"`
	Warned   bool     `json:"warned,omitempty"`
	Skipped  bool     `json:"skipped,omitempty"` // this machine cannot play it; reason says what it lacks
	Reason   string   `json:"reason,omitempty"`  // why there is no verdict, one sentence
	Warnings []string `json:"warnings"`          // of the bench
	Seconds  float64  `json:"verdict_seconds,omitempty"`
	// of the command that gave the verdict, its load included
	CPU      float64         `json:"verdict_cpu_seconds,omitempty"`
	Document json.RawMessage `json:"document,omitempty"` // linerate.diagnose/1; with --inside
}

// Faulty reports whether the case counts for the share of right verdicts: it was played, and its
// fault should be found.
func (c *MatrixCase) Faulty() bool { return !c.Skipped && (c.Level == "plain" || c.Level == "gross") }

// Sound reports whether the world was played and had no fault.
func (c *MatrixCase) Sound() bool { return !c.Skipped && c.Level == "" }

// MatrixDocument is linerate.matrix/1: many worlds, and the verdicts on them.
type MatrixDocument struct {
	Envelope
	Cases []MatrixCase `json:"cases"`

	Judged     int      `json:"judged_total"`                // plain and gross cases that were played
	FirstRight *float64 `json:"first_right_ratio,omitempty"` // of these
	// of these: the expected code was among the first three findings
	FirstThree *float64 `json:"first_three_ratio,omitempty"`
	Sounds     int      `json:"sound_total"`        // sound worlds that were played
	FalseAlarm int      `json:"false_alarms_total"` // of these: with a finding at warning or above
	Skips      int      `json:"skipped_total"`
	Pass       bool     `json:"pass"` // at least enough is right, and no sound world was warned of
}

// FirstThree is how many findings a reader looks at.
const FirstThree = 3
