package report

import (
	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/journal"
	"github.com/linerate/linerate/internal/knob"
	"github.com/linerate/linerate/internal/tune"
)

// TuneDocument is linerate.tune/1: one whole experiment on a pair of hosts. It holds everything its page shows, raw segments
// included, so that a reader can judge the verdicts again.
type TuneDocument struct {
	Envelope
	Target   string             `json:"target"`
	Goal     string             `json:"goal"`     // throughput or latency
	Baseline Figure             `json:"baseline"` // before any change
	Pilot    *Pilot             `json:"pilot,omitempty"`
	Findings []diagnose.Finding `json:"findings"` // the diagnosis before, most important first
	Trials   []Trial            `json:"trials"`   // in the order they were made
	Final    Final              `json:"final"`
	Changes  []journal.Change   `json:"changes"`  // what the run left in the journals of both hosts
	State    string             `json:"state"`    // trial, committed or undone
	Segments []Segment          `json:"segments"` // every measured segment in order
	Seconds  float64            `json:"duration_seconds,omitempty"`
	Warnings []string           `json:"warnings,omitempty"`
}

// Figure is what the goal's measure came to over several segments. Exactly one of the rates is present, after the goal.
type Figure struct {
	ThroughputBitsPerSec *float64 `json:"throughput_bits_per_second,omitempty"`
	TransactionsPerSec   *float64 `json:"transactions_per_second,omitempty"`
	Segments             int      `json:"segments_total,omitempty"`
}

// Pilot is the A/A comparison before the first trial: how much two equal arms differ here.
type Pilot struct {
	Pairs     int      `json:"pairs"`
	NoiseLow  *float64 `json:"effect_low_ratio,omitempty"` // interval of an effect that is none
	NoiseHigh *float64 `json:"effect_high_ratio,omitempty"`
	Noise     *float64 `json:"noise_ratio,omitempty"` // scatter of the log ratios of equal pairs
}

// Trial is one knob tried at one level on one side. The effect is the ratio of the goal's measure with the change to without it;
// the interval's ends are absent where too few pairs leave them open.
type Trial struct {
	Knob       knob.ID      `json:"knob"`
	From       knob.Value   `json:"from"`
	To         knob.Value   `json:"to"`
	Side       tune.Side    `json:"side"`
	Pairs      int          `json:"pairs"`
	Effect     *float64     `json:"effect_ratio,omitempty"`
	EffectLow  *float64     `json:"effect_low_ratio,omitempty"`
	EffectHigh *float64     `json:"effect_high_ratio,omitempty"`
	Verdict    tune.Verdict `json:"verdict"`
	Why        string       `json:"why,omitempty"` // one sentence
}

// Final is the confirmation: everything kept against the original, measured anew.
type Final struct {
	Effect     *float64 `json:"effect_ratio,omitempty"`
	EffectLow  *float64 `json:"effect_low_ratio,omitempty"`
	EffectHigh *float64 `json:"effect_high_ratio,omitempty"`
	Pairs      int      `json:"pairs,omitempty"`
	Proven     bool     `json:"proven"` // the lower end beats the smallest useful effect
	Figure     *Figure  `json:"figure,omitempty"`
}

// Segment is one measurement with new connections.
type Segment struct {
	Phase                string   `json:"phase"`           // pilot, trial, confirm, ablation
	Arm                  string   `json:"arm"`             // A: without the change, B: with it
	Trial                *int     `json:"trial,omitempty"` // index in trials, in the phase trial
	StartSeconds         float64  `json:"start_seconds"`   // since the experiment began
	EndSeconds           float64  `json:"end_seconds,omitempty"`
	ThroughputBitsPerSec *float64 `json:"throughput_bits_per_second,omitempty"`
	TransactionsPerSec   *float64 `json:"transactions_per_second,omitempty"`
	Discard              string   `json:"discard,omitempty"` // why it does not count
}
