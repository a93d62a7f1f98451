package diagnose

import "github.com/linerate/linerate/internal/diagnose/evidence"

// The words of package evidence that whoever asks for a verdict needs.
type (
	// Case is everything a verdict may rest on.
	Case = evidence.Case
	// Finding is one verdict with its evidence.
	Finding = evidence.Finding
	// Code names a finding.
	Code = evidence.Code
	// Severity orders findings.
	Severity = evidence.Severity
	// Evidence is one fact behind a finding.
	Evidence = evidence.Evidence
	// Remedy is what to do.
	Remedy = evidence.Remedy
	// Candidate is one setting worth trying.
	Candidate = evidence.Candidate
	// Entry is what the registry knows of one code.
	Entry = evidence.Entry
	// Probe names a further run that a rule may ask for.
	Probe = evidence.Probe
)

// The severities.
const (
	Info     = evidence.Info
	Notice   = evidence.Notice
	Warning  = evidence.Warning
	Critical = evidence.Critical
)

// Registry lists every code.
func Registry() []Entry { return evidence.Registry() }

// Explain finds one code; false: no such code.
func Explain(code Code) (Entry, bool) { return evidence.Explain(code) }

// Page writes the documentation page of a code as Markdown.
func Page(e Entry) string { return evidence.Page(e) }
