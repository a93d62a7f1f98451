package tune

import (
	"math"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/knob"
)

// State is the final state of the host's settings.
type State string

// The states of linerate.tune/1.
const (
	StateTrial     State = "trial"     // still trial changes: held for the caller, or the undo was incomplete
	StateCommitted State = "committed" // the kept set stays
	StateUndone    State = "undone"    // every value is the original one
)

// Phase is a part of the experiment.
type Phase string

// The phases, in their order.
const (
	PhasePilot        Phase = "pilot"
	PhaseLevels       Phase = "levels"
	PhaseTrial        Phase = "trial"
	PhaseConfirmation Phase = "confirmation"
	PhaseAblation     Phase = "ablation"
	PhaseSoak         Phase = "soak"
)

// Outcome is the record of the whole experiment, with every raw segment. It marshals into the keys
// of linerate.tune/1.
type Outcome struct {
	Baseline *Baseline `json:"baseline,omitempty"`
	Pilot    *Pilot    `json:"pilot,omitempty"`
	Trials   []Trial   `json:"trials"`
	// Final compares the kept set with the original, even if it was undone later; 1 without pairs
	// if nothing was kept.
	Final       *Effect      `json:"final,omitempty"`
	Guards      []GuardRun   `json:"guards,omitempty"`
	Profiles    []ArmProfile `json:"profiles,omitempty"` // of the kept set against the original
	Ablation    []Ablation   `json:"ablation,omitempty"`
	Interaction *Interaction `json:"interaction,omitempty"` // if two or more changes are kept
	Soak        *Soak        `json:"soak,omitempty"`        // the test after the wait, if there was one
	Kept        []Change     `json:"kept"`                  // what stays, in the order of application
	// PossiblyCommitted are changes that a host was asked to commit and that the run has not undone:
	// the host was lost, or the run was killed, before the outcome was known. No guard undoes them.
	PossiblyCommitted []Change `json:"possibly_committed,omitempty"`
	State             State    `json:"state"`
	Partial           bool     `json:"partial,omitempty"`                // the time ran out
	BudgetTooSmall    bool     `json:"budget_too_small,omitempty"`       // nothing was tried; Reason has details
	BudgetNeeded      float64  `json:"budget_needed_seconds,omitempty"`  // a sufficient budget then
	RolledBack        bool     `json:"rolled_back,omitempty"`            // kept changes were undone in the end
	Unreliable        bool     `json:"measurement_unreliable,omitempty"` // false differences, or no clean segment
	// DisturbedTrials had no clean segment in all tries, so that they say nothing of their settings.
	DisturbedTrials int       `json:"disturbed_trials_total,omitempty"`
	Reason          string    `json:"reason,omitempty"` // why it ended so
	Warnings        []string  `json:"warnings,omitempty"`
	Discarded       int       `json:"discarded_segments_total"`
	Segments        []Segment `json:"segments"`
	Design          *Design   `json:"design,omitempty"` // the rules that decided
}

// Effect is an interval of the ratio B/A of the objective: 1 is no change. A zero field is unknown,
// and absent in JSON: an end of the interval is unknown if there are too few pairs.
type Effect struct {
	Pairs      int     `json:"pairs"`
	Ratio      float64 `json:"effect_ratio,omitempty"`
	Low        float64 `json:"effect_low_ratio,omitempty"`
	High       float64 `json:"effect_high_ratio,omitempty"`
	Confidence float64 `json:"confidence_ratio,omitempty"`
}

// Baseline is what the pilot measured with the original settings.
type Baseline struct {
	Objective float64            `json:"objective"` // median, in the unit of the goal
	Guards    map[string]float64 `json:"guards,omitempty"`
	Segments  int                `json:"segments_total"`
}

// Pilot is the A/A comparison.
//
// ResolvableEffect is the promise of this run, made before any change: nine in ten gains of that
// size are kept, confirmed and committed (docs/evidence/experiments.md has the measured rates).
// Without it "nothing was proven" would carry no information.
type Pilot struct {
	Effect
	PairNoise        float64 `json:"pair_noise_ratio"`        // robust standard deviation of ln(B/A) of one pair
	NoiseFloor       float64 `json:"noise_floor_ratio"`       // one standard error of a full-length comparison
	MinUsefulEffect  float64 `json:"min_useful_effect_ratio"` // what the lower end of an interval must beat in this run
	ResolvableEffect float64 `json:"resolvable_effect_ratio"` // the gain that is found nine times in ten
	Attempts         int     `json:"attempts_total"`          // 2: the first one showed a false difference

	Unhurried *Resolution `json:"unhurried,omitempty"` // with more time, if the budget is short
}

// Resolution is the gain that a run of some length finds nine times in ten with one candidate, and
// the longest time that this run takes.
type Resolution struct {
	Effect  float64 `json:"resolvable_effect_ratio"`
	Seconds float64 `json:"duration_seconds"`
}

// Trial is one candidate with its result.
type Trial struct {
	Knob knob.ID    `json:"knob"`
	From knob.Value `json:"from,omitempty"`
	To   knob.Value `json:"to,omitempty"`
	Side Side       `json:"side"`
	Effect
	Verdict Verdict    `json:"verdict"`
	Reason  string     `json:"reason"`
	Why     string     `json:"why,omitempty"`      // why it was tried
	Joint   bool       `json:"together,omitempty"` // shares one comparison with the other joint trials
	Levels  []Level    `json:"levels,omitempty"`
	Guards  []GuardRun `json:"guards,omitempty"`
	// Profiles says at each sampled side where the processor time went, before and after.
	Profiles []ArmProfile `json:"profiles,omitempty"`
}

// Level is one level of a knob in the sequential halving.
type Level struct {
	Value    knob.Value `json:"value"`
	Segments int        `json:"segments_total"`
	Mean     float64    `json:"objective"` // geometric mean
	Chosen   bool       `json:"chosen,omitempty"`
	Refused  string     `json:"refused,omitempty"`
}

// GuardRun is the result of one guard-rail in a comparison. Above 1 is worse: B/A, or A/B if lower
// is worse.
type GuardRun struct {
	Name      string  `json:"name"`
	Ratio     float64 `json:"ratio"`
	Low       float64 `json:"low_ratio,omitempty"`
	High      float64 `json:"high_ratio,omitempty"`
	Bound     float64 `json:"bound_ratio"`          // 0: none
	Worse     bool    `json:"worse"`                // proven worse than its bound
	Value     float64 `json:"value,omitempty"`      // median under B, in its own unit
	Limit     float64 `json:"limit,omitempty"`      // the worst allowed value, in its own unit
	PastLimit bool    `json:"past_limit,omitempty"` // B is past the limit, and A was not or B is proven worse
	Unseen    bool    `json:"unseen,omitempty"`     // it has a limit, and fewer than half of the pairs measured it
}

// Ablation is the kept set compared with the kept set without one change.
type Ablation struct {
	Knob knob.ID `json:"knob"`
	Side Side    `json:"side"`
	Effect
	Needed  bool `json:"needed"`
	Sharing int  `json:"sharing_total,omitempty"` // tests that share the risk; absent: no sharing
	Reused  bool `json:"reused,omitempty"`        // its trial, the last one, compared the same two sets
}

// Change is one kept change.
type Change struct {
	Knob knob.ID    `json:"knob"`
	Side Side       `json:"side"`
	From knob.Value `json:"from"`
	To   knob.Value `json:"to"`
	ID   string     `json:"id,omitempty"` // of the journal on its side, once committed or held
}

// Segment is one raw measurement. The outcome keeps all of them, because a verdict that cannot be
// recomputed from the record is an opinion.
type Segment struct {
	Phase Phase `json:"phase"`
	// Trial is an index into trials[] (levels, trial; the first of a joint one) or ablation[];
	// otherwise the attempt from 0.
	Trial           int     `json:"trial"`
	Pair            int     `json:"pair"` // from 0; the round in a search for the level
	Arm             string  `json:"arm"`  // A, B, or the level
	StartSeconds    float64 `json:"start_seconds"`
	DurationSeconds float64 `json:"duration_seconds"`
	Objective       float64 `json:"objective"`
	// LossRatio is the share of the objective that a disturbance can have cost at most, in a segment
	// that counts all the same; absent: none.
	LossRatio float64            `json:"possible_loss_ratio,omitempty"`
	Guards    map[string]float64 `json:"guards,omitempty"`
	Discard   string             `json:"discard,omitempty"`
	Label     string             `json:"label,omitempty"`
}

// effectOf returns the ratio of an interval of logarithms; infinite values and NaN become unknown.
func effectOf(pairs int, i stats.Interval) Effect {
	r := i.Ratio()
	e := Effect{Pairs: pairs, Ratio: known(r.Estimate), Low: known(r.Low), High: known(r.High)}
	if i.Finite() {
		e.Confidence = i.Confidence
	}
	return e
}

// known replaces values that JSON cannot represent by zero, which is left out.
//
// No ratio and no objective in these documents is a meaningful zero: a ratio of zero has no
// logarithm, and an objective of zero is a segment without any throughput.
func known(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
