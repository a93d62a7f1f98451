package report

import "slices"

// SchemaScenarios is the document of `lab list`.
const SchemaScenarios = "linerate.scenarios/1"

// LabEntry is one scenario.
type LabEntry struct {
	Scenario string   `json:"scenario"`
	Title    string   `json:"title"`
	About    string   `json:"about"`
	Expected string   `json:"expected"` // code of the finding
	Tunable  bool     `json:"tunable"`
	Knobs    []string `json:"knobs,omitempty"`
}

// LabListDocument is linerate.scenarios/1.
type LabListDocument struct {
	Envelope
	Scenarios []LabEntry `json:"scenarios"`
}

// NewLabList makes a document of the scenarios.
func NewLabList(e Envelope, entries []LabEntry) *LabListDocument {
	d := &LabListDocument{Envelope: e.Of(SchemaScenarios), Scenarios: slices.Clone(entries)}
	FillSlices(d)
	return d
}
