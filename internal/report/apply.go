package report

import (
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob"
)

// SchemaApply is the document of a profile before it is tried.
const SchemaApply = "linerate.apply/1"

// ApplyDocument is linerate.apply/1: what a profile would have tried on this host. A run towards a
// target is a linerate.tune/1.
type ApplyDocument struct {
	Envelope
	Profile string `json:"profile"` // as named: a role, a TuneD profile, or a file
	Goal    string `json:"goal"`    // what a run would improve
	// in the order in which they apply, included profiles first; absent: a role, whose values
	// linerate plan makes
	Files         []string       `json:"files,omitempty"`
	Missing       []string       `json:"includes_not_found,omitempty"`
	Candidates    int            `json:"candidates_total"` // settings that are not left out
	Settings      []ApplySetting `json:"settings"`         // a later one of a knob replaces an earlier one
	NotUnderstood int            `json:"not_understood_total"`
}

// ApplySetting is one setting of a profile.
type ApplySetting struct {
	Knob        knob.ID          `json:"knob"`
	Value       knob.Value       `json:"value"`
	From        knob.Value       `json:"from,omitempty"` // present value of this host; absent: not readable
	Disturbance knob.Disturbance `json:"disturbance"`    // class, 0 to 4
	Verdict     advice.Verdict   `json:"verdict"`        // of check-advice
	Why         string           `json:"why"`
	Where       string           `json:"where,omitempty"`    // "line 3 of tuned.conf"; absent: a role
	LeftOut     string           `json:"left_out,omitempty"` // why it would not be tried
}
