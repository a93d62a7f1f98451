package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/experiment/tune"
)

// The documents of stored runs: the list, and one run judged again.
const (
	SchemaRuns   = "linerate.runs/1"
	SchemaReport = "linerate.report/1"
)

// ErrNotARun reports that a file is not a linerate.tune document.
var ErrNotARun = errors.New("not the document of a run")

// DecodeTune reads a linerate.tune/1 document of any host, of this version or a later one; it
// ignores unknown keys. For anything else the error is ErrNotARun, with what the file is instead.
func DecodeTune(doc []byte) (*TuneDocument, error) {
	var is struct {
		Schema string `json:"schema"`
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(doc, &is); {
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("%w: it is JSON, and no document of linerate", ErrNotARun)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotARun, err)
	case is.Schema == SchemaReport:
		// A document of `linerate report --json` contains the run.
		var r ReportDocument
		if err := json.Unmarshal(doc, &r); err != nil || r.Run == nil || r.Run.Schema != SchemaTune {
			return nil, fmt.Errorf("%w: a %s document without its run", ErrNotARun, SchemaReport)
		}
		FillSlices(r.Run)
		return r.Run, nil
	case !strings.HasPrefix(is.Schema, "linerate."):
		return nil, fmt.Errorf("%w: it is JSON, and no document of linerate", ErrNotARun)
	case is.Schema != SchemaTune:
		return nil, fmt.Errorf("%w: a %.40s document, and not %s", ErrNotARun, is.Schema, SchemaTune)
	}
	var d TuneDocument
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotARun, err)
	}
	FillSlices(&d)
	return &d, nil
}

// RunsDocument is linerate.runs/1: the runs that this host has stored, newest first.
type RunsDocument struct {
	Envelope
	Directory string     `json:"directory"`
	Runs      []RunEntry `json:"runs"`
}

// RunEntry summarises one stored run. A run that cannot be read has an entry too, with the reason.
type RunEntry struct {
	Run        string     `json:"run"`
	Time       *time.Time `json:"time,omitempty"`
	Target     string     `json:"target,omitempty"`
	Goal       string     `json:"goal,omitempty"`
	Result     string     `json:"result"` // proved, not proved, nothing to tune, not finished, unreadable
	Ratio      float64    `json:"effect_ratio,omitempty"`
	Low        float64    `json:"effect_low_ratio,omitempty"`
	High       float64    `json:"effect_high_ratio,omitempty"`
	Kept       []string   `json:"kept"` // side and knob of each kept change
	Trials     int        `json:"trials_total"`
	Segments   int        `json:"segments_total"`
	State      tune.State `json:"state,omitempty"`
	Unfinished string     `json:"unfinished,omitempty"`
	Problem    string     `json:"problem,omitempty"` // why it cannot be read
}

// NewRunEntry summarises a run.
func NewRunEntry(id string, d *TuneDocument) RunEntry {
	e := RunEntry{
		Run: id, Time: &d.Time, Target: d.Target, Goal: d.Goal, Result: d.Result(), Trials: len(d.Trials),
		Segments: len(d.Segments), State: d.State, Unfinished: d.Unfinished, Kept: []string{},
	}
	for _, c := range d.Kept {
		e.Kept = append(e.Kept, fmt.Sprintf("%s %s", c.Side, c.Knob))
	}
	if d.Final != nil && len(d.Kept) > 0 {
		e.Ratio, e.Low, e.High = d.Final.Ratio, d.Final.Low, d.Final.High
	}
	return e
}

// UnreadableRun returns the entry of a run that cannot be read.
func UnreadableRun(id string, problem error) RunEntry {
	return RunEntry{Run: id, Result: Unreadable, Problem: problem.Error(), Kept: []string{}}
}

// NewRuns makes the list of stored runs.
func NewRuns(e Envelope, directory string, runs []RunEntry) *RunsDocument {
	d := &RunsDocument{Envelope: e.Of(SchemaRuns), Directory: directory, Runs: slices.Clone(runs)}
	FillSlices(d)
	return d
}

// ReportDocument is linerate.report/1: one stored run, and the result of judging its segments
// again.
type ReportDocument struct {
	Envelope
	Source string           `json:"source"` // the file that the run was read from; - is standard input
	Run    *TuneDocument    `json:"tune"`
	Again  *tune.Reanalysis `json:"again"`
}

// NewReport judges a run again and makes a document of the run and that result.
func NewReport(e Envelope, source string, run *TuneDocument, rules tune.Rules) (*ReportDocument, error) {
	again, err := tune.Reanalyse(&run.Outcome, rules)
	if err != nil {
		return nil, err
	}
	d := &ReportDocument{Envelope: e.Of(SchemaReport), Source: source, Run: run, Again: again}
	FillSlices(d)
	return d, nil
}
