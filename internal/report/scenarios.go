package report

import (
	"fmt"
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

// LabListText writes one line for each scenario: its name, what is wrong in it, and what must be found.
func LabListText(w io.Writer, d *LabListDocument, s Style) error {
	for _, e := range d.Scenarios {
		if _, err := fmt.Fprintf(w, "%-20s %-62s %s\n", e.Scenario, e.Title, s.dim(e.Expected)); err != nil {
			return err
		}
	}
	return nil
}
