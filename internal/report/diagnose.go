package report

import (
	"maps"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/processors"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/traffic"
)

// DiagnoseDocument is linerate.diagnose/1: what limits the path or the host, most important first.
//
// Limit repeats the first code for scripts that need one word. It is empty only in a document
// without findings, and diagnose.Examine always returns at least one.
type DiagnoseDocument struct {
	Envelope
	Target   string             `json:"target,omitempty"` // absent: this host alone
	Limit    evidence.Code      `json:"limit"`            // code of the first finding
	Findings []evidence.Finding `json:"findings"`
	// what could not be seen; the confidence of the findings is already lowered for it
	Blind    []diagnose.Blind   `json:"blind,omitempty"`
	Copy     *storage.Copy      `json:"copy,omitempty"`    // which of disk and network holds a copy, where requested
	CPU      *processors.Triage `json:"cpu,omitempty"`     // where CPU time went, where requested
	Watched  []Watched          `json:"watched,omitempty"` // the hosts that were watched without a run
	Tests    []DiagnoseTest     `json:"tests,omitempty"`   // the runs that the verdict rests on
	Refused  []RefusedTest      `json:"refused,omitempty"` // runs that a rule needed and that were not possible
	Warnings []string           `json:"warnings,omitempty"`
}

// DiagnoseTest is one run that a verdict rests on.
type DiagnoseTest struct {
	traffic.Result
	Probe evidence.Probe `json:"probe,omitempty"` // the rule that needed it; absent: every verdict has this run
}

// RefusedTest is a run that a rule needed and that was not possible.
type RefusedTest struct {
	Probe evidence.Probe `json:"probe"`
	Why   string         `json:"why"`
}

// Watched is one host that was watched without a run.
type Watched struct {
	Side string `json:"side"` // near or far
	// Seconds is the duration; absent: not known.
	Seconds float64 `json:"interval_seconds,omitempty"`
	// not watched: everything that the host counted since its start, Seconds ago
	SinceBoot bool `json:"since_boot,omitempty"`
}

// NewDiagnose makes a diagnose document of a case and its verdict. Findings are in order of
// importance, as diagnose.Examine returns them.
func NewDiagnose(e Envelope, target string, c evidence.Case, findings []evidence.Finding,
	blind []diagnose.Blind) *DiagnoseDocument {
	d := &DiagnoseDocument{Envelope: e.Of(SchemaDiagnose), Target: target, Findings: CleanFindings(findings),
		Blind: slices.Clone(blind)}
	if c.Near != nil && c.Near.OS != "" {
		d.Envelope = d.describe(c.Near) // the host of an archive is not this one
	}
	if len(findings) > 0 {
		d.Limit = findings[0].Code
	}
	for _, r := range c.Runs {
		d.Tests = append(d.Tests, DiagnoseTest{Result: r})
	}
	// In the order of the runs.
	probes := slices.Collect(maps.Keys(c.Probes))
	sorting.Func(probes, func(a, b evidence.Probe) int {
		return c.Probes[a].StartTime.Compare(c.Probes[b].StartTime)
	})
	for _, p := range probes {
		d.Tests = append(d.Tests, DiagnoseTest{Result: c.Probes[p], Probe: p})
	}
	for _, p := range slices.Sorted(maps.Keys(c.Refused)) {
		d.Refused = append(d.Refused, RefusedTest{Probe: p, Why: c.Refused[p]})
	}
	for _, s := range c.Watched {
		d.Watched = append(d.Watched, Watched{Side: s.Side, Seconds: s.Seconds, SinceBoot: s.SinceBoot})
	}
	FillSlices(d)
	return d
}
