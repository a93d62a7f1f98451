package timeline

import "time"

// Kind is the sort of an event.
type Kind string

// The kinds, as the page has them.
const (
	Change      Kind = "change"      // of a knob, by the journal of a host
	Run         Kind = "run"         // a whole tune
	Measurement Kind = "measurement" // a test against another host
	Reboot      Kind = "reboot"
	Link        Kind = "link"    // came, went, changed its speed or name
	Finding     Kind = "finding" // from when to when a verdict held
	Alert       Kind = "alert"   // from when to when a rule held
	Gap         Kind = "gap"     // from when to when nothing was recorded, and why
)

// Severity is that of findings: info, notice, warning, critical.
type Severity string

// Event is what happened.
type Event struct {
	ID        string    `json:"id"` // stable: the id of the change, the run, …; letters, digits, '.', '_' and '-'
	Kind      Kind      `json:"kind"`
	Time      time.Time `json:"time"`
	End       time.Time `json:"end,omitzero"` // of what lasts; absent: a moment, or not over
	Open      bool      `json:"open,omitempty"`
	Host      string    `json:"host"`
	Subject   string    `json:"subject,omitempty"`   // the interface, knob, target or code of a finding
	Interface string    `json:"interface,omitempty"` // on whose graphs it belongs, where it is about one
	Title     string    `json:"title"`               // one line for people
	Severity  Severity  `json:"severity,omitempty"`
	State     string    `json:"state,omitempty"`        // of a change: trial, committed, persisted, undone; of a run: its state
	Undo      string    `json:"undo,omitempty"`         // the command that takes it back, as typed
	Document  bool      `json:"has_document,omitempty"` // there is one under its id
}
