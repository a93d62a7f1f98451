package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// TuneDocument is linerate.tune/1: one whole experiment on a pair of hosts. It holds everything
// that its page shows, raw segments included, so that a reader can judge the verdicts again.
type TuneDocument struct {
	Envelope
	// name under which it is stored; `linerate report RUN` shows it again
	Run    string `json:"run,omitempty"`
	Target string `json:"target"`
	Goal   string `json:"goal"` // throughput, latency or packets; of a disk throughput, latency or operations
	// of every objective: bits_per_second, transactions_per_second or packets_per_second; of a disk
	// bytes_per_second or operations_per_second
	Unit     string             `json:"objective_unit"`
	Baseline *Figure            `json:"baseline,omitempty"` // the original settings, in the pilot
	After    *Figure            `json:"after,omitempty"`    // the kept set, in the last confirmation
	Findings []evidence.Finding `json:"findings"`           // the diagnosis before, most important first
	Plan     *TunePlan          `json:"plan,omitempty"`     // absent: there was nothing to try
	tune.Outcome
	Changes []journal.Change `json:"changes"` // what the run left in force, as the journals of both hosts know it
	Seconds float64          `json:"duration_seconds,omitempty"`
	// Unfinished is the reason why the experiment did not complete: an interrupt, an error, or a
	// killed process.
	Unfinished string `json:"unfinished,omitempty"`
	// when undo took back, from this host, what the run changed at the far end
	FarUndone *time.Time `json:"far_undone_at,omitempty"`
}

// Figure is the median of one arm over several segments. It has the rate of the goal beside the
// objective, so that a script for one goal finds it under a key with the unit in its name.
type Figure struct {
	ThroughputBitsPerSec float64            `json:"throughput_bits_per_second,omitempty"`
	TransactionsPerSec   float64            `json:"transactions_per_second,omitempty"`
	PacketsPerSec        float64            `json:"packets_per_second,omitempty"`
	BytesPerSec          float64            `json:"throughput_bytes_per_second,omitempty"` // of a disk
	OperationsPerSec     float64            `json:"operations_per_second,omitempty"`       // of a disk
	Objective            float64            `json:"objective"`                             // the same for all goals
	Guards               map[string]float64 `json:"guards,omitempty"`
	Segments             int                `json:"segments_total"`
}

// TuneRun is what a tune document is made of.
type TuneRun struct {
	ID       string // empty: not stored
	Target   string
	Goal     string             // throughput, latency or packets
	Unit     string             // of the objective; empty: that of a network's goal
	Findings []evidence.Finding // before
	Outcome  *tune.Outcome      // nil: nothing was tried
	Changes  []journal.Change   // of both hosts
	Duration time.Duration

	Unfinished string // why it did not complete; empty: it did
}

// NewTune makes a tune document. It copies what it completes of the outcome, and shares the
// segments.
//
// A nil outcome becomes one without trials and changes, so that the document always has the same
// shape.
func NewTune(e Envelope, r TuneRun) *TuneDocument {
	d := &TuneDocument{
		Envelope: e.Of(SchemaTune), Run: r.ID, Target: r.Target, Goal: r.Goal, Unit: "bits_per_second",
		Findings: CleanFindings(r.Findings), Changes: slices.Clone(r.Changes), Seconds: r.Duration.Seconds(),
		Unfinished: r.Unfinished,
	}
	switch r.Goal {
	case "latency":
		d.Unit = "transactions_per_second"
	case "packets":
		d.Unit = "packets_per_second"
	}
	d.Unit = cmp.Or(r.Unit, d.Unit)
	d.Outcome.State = tune.StateUndone
	if r.Outcome != nil {
		d.Outcome = *r.Outcome
		d.Outcome.Segments = cleanSegments(r.Outcome.Segments)
	}
	if b := d.Outcome.Baseline; b != nil {
		d.Baseline = d.figure(b.Objective, b.Guards, b.Segments)
	}
	// encoding/json writes the outer field; the inner one is cleared to avoid doubt.
	d.Outcome.Baseline = nil
	d.After = d.confirmed()
	FillSlices(d)
	return d
}

// Uncertain returns the changes that may be in force, as the journals of their hosts have them
// then: a host was asked to commit them, and no outcome is known.
func (d *TuneDocument) Uncertain() []journal.Change {
	var all []journal.Change
	for _, c := range d.PossiblyCommitted {
		all = append(all, journal.Change{ID: c.ID, Time: d.Time, Knob: c.Knob, Side: string(c.Side), From: c.From,
			To: c.To, State: journal.Committed})
	}
	return all
}

// The results of [TuneDocument.Result]. Unreadable is for lists: a stored run that cannot be read.
const (
	Proved        = "proved"
	NotProved     = "not proved"
	NothingToTune = "nothing to tune"
	NotFinished   = "not finished"
	Unreadable    = "unreadable"
)

// Result returns the result of a tune.
//
// Proved needs a confirmed set and figures for both sides. A run that had something to try is
// otherwise "not proved", even when the time ran out before the first trial. "Nothing to tune"
// means that no finding has a remedy, so the reader should look elsewhere.
func (d *TuneDocument) Result() string {
	switch {
	case d.Unfinished != "":
		return NotFinished
	case len(d.Kept) > 0 && d.Final != nil && d.Baseline != nil && d.After != nil:
		return Proved
	case len(d.Trials) == 0 && !d.Unreliable && !d.Partial:
		return NothingToTune
	}
	return NotProved
}

func (d *TuneDocument) figure(objective float64, guards map[string]float64, segments int) *Figure {
	f := &Figure{Objective: objective, Guards: guards, Segments: segments}
	switch d.Unit {
	case "bits_per_second":
		f.ThroughputBitsPerSec = objective
	case "packets_per_second":
		f.PacketsPerSec = objective
	case "bytes_per_second":
		f.BytesPerSec = objective
	case "operations_per_second":
		f.OperationsPerSec = objective
	default:
		f.TransactionsPerSec = objective
	}
	return f
}

// confirmed returns the figure of arm B in the confirmation that Final describes: medians, as in
// the baseline. The effect in Final comes from the pairs and not from these two figures.
func (d *TuneDocument) confirmed() *Figure {
	attempt := d.FinalAttempt()
	var objectives []float64
	guards := map[string][]float64{}
	for _, s := range d.Segments {
		if s.Phase != tune.PhaseConfirmation || s.Trial != attempt || s.Arm != "B" || s.Discard != "" {
			continue
		}
		objectives = append(objectives, s.Objective)
		for name, v := range s.Guards {
			guards[name] = append(guards[name], v)
		}
	}
	if len(objectives) == 0 {
		return nil
	}
	medians := map[string]float64{}
	for name, values := range guards {
		medians[name] = stats.Median(values)
	}
	return d.figure(stats.Median(objectives), medians, len(objectives))
}

// cleanSegments returns segments without the guard-rails that JSON cannot carry.
func cleanSegments(in []tune.Segment) []tune.Segment {
	out := slices.Clone(in)
	for i := range out {
		clean := map[string]float64{}
		for name, v := range out[i].Guards {
			if known(v) != nil {
				clean[name] = v
			}
		}
		out[i].Guards = clean
		if known(out[i].Objective) == nil {
			out[i].Objective = 0
		}
	}
	return out
}
