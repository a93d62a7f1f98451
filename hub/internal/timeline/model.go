package timeline

import "time"

// Kind is the kind of an event.
type Kind string

// The kinds, as the page names them.
const (
	Change      Kind = "change"      // of a knob, from the journal of a host
	Run         Kind = "run"         // a whole tune
	Measurement Kind = "measurement" // a test against another host
	Reboot      Kind = "reboot"
	Link        Kind = "link"    // appeared, disappeared, changed its speed or name
	Finding     Kind = "finding" // the time during which a verdict held
	Alert       Kind = "alert"   // the time during which a rule held
	Gap         Kind = "gap"     // a time without samples, and why
)

// Severity is as in findings: info, notice, warning, critical.
type Severity string

// Event is something that happened.
type Event struct {
	ID        string    `json:"id"` // stable: the id of the change, the run, …; letters, digits, '.', '_' and '-'
	Kind      Kind      `json:"kind"`
	Time      time.Time `json:"time"`
	End       time.Time `json:"end,omitzero"` // absent for a moment, and while the event is open
	Open      bool      `json:"open,omitempty"`
	Host      string    `json:"host"`
	Subject   string    `json:"subject,omitempty"`   // the interface, knob, target or code of a finding
	Interface string    `json:"interface,omitempty"` // the interface on whose graphs the event belongs, if any
	Title     string    `json:"title"`               // one line for people
	Severity  Severity  `json:"severity,omitempty"`
	// of a change: trial, committed, persisted, undone; of a run: its state
	State    string `json:"state,omitempty"`
	Undo     string `json:"undo,omitempty"`         // the command that undoes it, as typed
	Document bool   `json:"has_document,omitempty"` // the store has a document with its id
}
