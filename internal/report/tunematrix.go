package report

import (
	"encoding/json"
	"slices"
	"strings"
)

// SchemaTuneMatrix is the document of `lab tune`.
const SchemaTuneMatrix = "linerate.tune-matrix/1"

// What a tune of a practice world must hold to.
const (
	tuneMatrixShare  = 0.9 // of the healthy figure
	tuneMatrixTrials = 20
	nullKept         = 0.05 // of the knobs without an effect that were tried
)

// TuneRemoval is the kept set with one of its changes over the kept set without it, in pairs.
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

// NewTuneRemoval makes one of figures; what is not finite is left out.
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
	Scenario string          `json:"scenario"`
	Level    string          `json:"level,omitempty"` // absent: a sound world
	Ground   string          `json:"ground"`          // namespace, guest
	Kernel   string          `json:"kernel"`          // release on which it was played
	Run      int             `json:"run"`             // from 1
	Goal     string          `json:"goal"`
	Unit     string          `json:"objective_unit"` // bits_per_second, transactions_per_second
	Found    string          `json:"found,omitempty"`
	Healthy  *float64        `json:"healthy_objective,omitempty"` // a world like it, without what could be tuned
	Before   *float64        `json:"before_objective,omitempty"`
	After    *float64        `json:"after_objective,omitempty"`
	Share    *float64        `json:"share_ratio,omitempty"` // after over healthy
	Trials   int             `json:"trials_total"`          // that were measured; those tried together are one
	Seconds  float64         `json:"tune_seconds,omitempty"`
	Ended    string          `json:"ended,omitempty"`         // why the tune ended, in its own words
	Kept     []TuneRemoval   `json:"kept"`                    // with what each is worth beside the others
	Minimal  bool            `json:"minimal"`                 // each kept change is needed
	Undone   bool            `json:"undone"`                  // after undo every setting of both hosts is as before
	Tuned    bool            `json:"tuned"`                   // all that is asked of it
	Null     bool            `json:"null,omitempty"`          // a sound world, and only knobs without an effect were tried
	Free     bool            `json:"costs_nothing,omitempty"` // the fault takes less than what tuning may leave, and nothing was kept: neither tuned nor failed
	Skipped  bool            `json:"skipped,omitempty"`
	Reason   string          `json:"reason,omitempty"` // why it is not, or why it was skipped
	Warnings []string        `json:"warnings"`         // of the bench
	Document json.RawMessage `json:"document,omitempty"`
}

// Judge says whether a case that was played reaches what is asked, and why not; the first reason
// counts.
func (c *TuneMatrixCase) Judge() {
	c.Unit = "bits_per_second"
	if c.Goal == "latency" {
		c.Unit = "transactions_per_second"
	}
	c.Share = nil
	if c.Healthy != nil && c.After != nil && *c.Healthy > 0 {
		c.Share = known(*c.After / *c.Healthy)
	}
	spare := slices.IndexFunc(c.Kept, func(r TuneRemoval) bool { return !r.Needed })
	c.Minimal = spare < 0
	c.Free = c.free()
	switch {
	case c.Skipped || c.Reason != "":
	case c.Null && c.Trials == 0:
		c.Reason = "nothing was tried: " + c.Ended
	case c.Null && float64(len(c.Kept)) > nullKept*float64(c.Trials):
		c.Reason = "knobs without an effect were kept: " + strings.Join(c.KeptNames(), ", ")
	case c.Null && c.Undone:
	case c.Free && c.Undone:
	case c.Share == nil:
		c.Reason = "it was not measured to the end"
	case *c.Share < tuneMatrixShare:
		c.Reason = "the figure after tuning is too far below the healthy one"
		if c.Ended != "" {
			c.Reason += ": " + c.Ended
		}
	case c.Trials > tuneMatrixTrials:
		c.Reason = "it took too many trials"
	case !c.Minimal:
		c.Reason = c.Kept[spare].Side + " " + c.Kept[spare].Knob + " was kept, and without it nothing is lost"
	case !c.Undone:
		c.Reason = "after undo not every setting is as before"
	}
	c.Free = c.Free && c.Reason == ""
	c.Tuned = !c.Skipped && !c.Free && c.Reason == ""
}

// free tells that the fault costs nothing in this world: there was nothing to repair, and nothing
// was kept.
//
// To count it as tuned would praise a tune for having done nothing; to count it as failed would
// blame it for the same.
func (c *TuneMatrixCase) free() bool {
	return !c.Null && !c.Skipped && len(c.Kept) == 0 && c.Before != nil && c.Healthy != nil && *c.Healthy > 0 &&
		*c.Before >= tuneMatrixShare**c.Healthy
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

// NewTuneMatrix makes the document and counts.
func NewTuneMatrix(e Envelope, cases []TuneMatrixCase) *TuneMatrixDocument {
	d := &TuneMatrixDocument{Envelope: e.Of(SchemaTuneMatrix), Cases: slices.Clone(cases)}
	for _, c := range d.Cases {
		switch {
		case c.Skipped:
			d.Skips++
			continue
		case c.Free:
			d.Free++
			continue
		case c.Tuned:
			d.Tuned++
		}
		d.Judged++
	}
	if d.Judged > 0 {
		d.Share = known(float64(d.Tuned) / float64(d.Judged))
	}
	d.Pass = d.Tuned == d.Judged
	FillSlices(d)
	return d
}

// KeptNames are the changes that were kept, each by side and knob.
func (c *TuneMatrixCase) KeptNames() []string {
	var all []string
	for _, k := range c.Kept {
		all = append(all, k.Side+" "+k.Knob)
	}
	return all
}
