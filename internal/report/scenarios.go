package report

import (
	"io"
	"slices"
)

// SchemaScenarios is the document of `lab list`.
const SchemaScenarios = "linerate.scenarios/1"

// LabEntry is one scenario that can be played.
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
	d := &LabListDocument{Envelope: e.of(SchemaScenarios), Scenarios: slices.Clone(entries)}
	fillSlices(d)
	return d
}

// LabListText writes one line for each scenario: its name, what must be found, and what is wrong in it.
func LabListText(w io.Writer, d *LabListDocument, s Style) error {
	p := &printer{w: w, s: s}
	t := newTable("scenario", "finds", "what")
	t.wrap = true
	for _, e := range d.Scenarios {
		t.row(e.Scenario, cell{e.Expected, s.dim}, e.Title)
	}
	t.print(p, "")
	return p.err
}
