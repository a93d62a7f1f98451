package report

import "encoding/json"

// SchemaTuneMatrix is the document of `lab tune`, which package lab/matrix fills and judges.
const SchemaTuneMatrix = "linerate.tune-matrix/1"

// TuneRemoval compares the kept set with the kept set without one of its changes, in pairs.
type TuneRemoval struct {
	Knob   string   `json:"knob"`
	Side   string   `json:"side"` // near, far
	From   string   `json:"from"`
	To     string   `json:"to"`
	Ratio  *float64 `json:"effect_ratio,omitempty"`
	Low    *float64 `json:"effect_low_ratio,omitempty"` // of the interval at 95 %
	High   *float64 `json:"effect_high_ratio,omitempty"`
	Needed bool     `json:"needed"` // the low end is above 1: removing it costs more than the noise
}

// NewTuneRemoval makes a removal of its figures, and leaves out those that are not finite.
func NewTuneRemoval(knob, side, from, to string, ratio, low, high float64) TuneRemoval {
	r := TuneRemoval{Knob: knob, Side: side, From: from, To: to, Needed: low > 1}
	if low > 0 {
		r.Ratio, r.Low, r.High = known(ratio), known(low), known(high)
	}
	return r
}

// TuneMatrixCase is one scenario at a level, tuned once. Objectives are in the unit of the goal:
// payload bits a second at the receiver, or transactions a second.
type TuneMatrixCase struct {
	Scenario string        `json:"scenario"`
	Level    string        `json:"level,omitempty"` // absent: a sound world
	Ground   string        `json:"ground"`          // namespace, guest
	Kernel   string        `json:"kernel"`          // release on which it was played
	Run      int           `json:"run"`             // from 1
	Goal     string        `json:"goal"`
	Unit     string        `json:"objective_unit"` // bits_per_second, transactions_per_second
	Found    string        `json:"found,omitempty"`
	Healthy  *float64      `json:"healthy_objective,omitempty"` // a world like it, without what could be tuned
	Before   *float64      `json:"before_objective,omitempty"`
	After    *float64      `json:"after_objective,omitempty"`
	Share    *float64      `json:"share_ratio,omitempty"` // after over healthy
	Trials   int           `json:"trials_total"`          // that were measured; those tried together are one
	Seconds  float64       `json:"tune_seconds,omitempty"`
	Ended    string        `json:"ended,omitempty"` // why the tune ended, in its own words
	Kept     []TuneRemoval `json:"kept"`            // with what each is worth beside the others
	Minimal  bool          `json:"minimal"`         // each kept change is needed
	Undone   bool          `json:"undone"`          // after undo every setting of both hosts is as before
	Tuned    bool          `json:"tuned"`           // all that is asked of it
	// a sound world, and only knobs without an effect were tried
	Null bool `json:"null,omitempty"`
	// the fault takes less than what tuning may leave, and nothing was kept: neither tuned nor
	// failed
	Free     bool            `json:"costs_nothing,omitempty"`
	Skipped  bool            `json:"skipped,omitempty"`
	Reason   string          `json:"reason,omitempty"` // why it is not, or why it was skipped
	Warnings []string        `json:"warnings"`         // of the bench
	Document json.RawMessage `json:"document,omitempty"`
}

// TuneMatrixDocument is linerate.tune-matrix/1: practice worlds, and how far tuning repaired them.
type TuneMatrixDocument struct {
	Envelope
	Cases  []TuneMatrixCase `json:"cases"`
	Judged int              `json:"judged_total"` // that were played, but for those whose fault costs nothing
	Tuned  int              `json:"tuned_total"`
	Share  *float64         `json:"tuned_ratio,omitempty"`
	Free   int              `json:"costs_nothing_total"`
	Skips  int              `json:"skipped_total"`
	Pass   bool             `json:"pass"` // each one judged is tuned
}

// KeptNames returns the kept changes, each as side and knob.
func (c *TuneMatrixCase) KeptNames() []string {
	var all []string
	for _, k := range c.Kept {
		all = append(all, k.Side+" "+k.Knob)
	}
	return all
}
