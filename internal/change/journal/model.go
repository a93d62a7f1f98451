package journal

import (
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// State is where a change stands (design §8).
type State string

// The states. A trial reverts by itself; a committed change stays until undone or reboot; a
// persisted one survives reboot.
const (
	Trial     State = "trial"
	Committed State = "committed"
	Persisted State = "persisted"
	Undone    State = "undone"
)

// Change is one knob written once, as the journal keeps it; changes[] of linerate.history/1.
type Change struct {
	ID        string     `json:"id"` // short, unique in the journal, ordered by time
	Time      time.Time  `json:"time"`
	Knob      knob.ID    `json:"knob"`
	Side      string     `json:"side"`               // near or far, seen from the command that asked
	From      knob.Value `json:"from"`               // what undo puts back
	To        knob.Value `json:"to"`                 // what the knob really held after the write
	Asked     knob.Value `json:"asked,omitempty"`    // only when the kernel or the driver made something else of it than To
	Original  knob.Value `json:"original,omitempty"` // first value seen on this knob since boot, whatever was changed since
	State     State      `json:"state"`
	Persisted bool       `json:"persisted"`
	Files     []string   `json:"files,omitempty"` // that give the knob its value when the host starts
	Reason    string     `json:"reason,omitempty"`
	BootID    string     `json:"boot_id,omitempty"`
	Deadline  *time.Time `json:"deadline,omitempty"` // trial only, for people; the guard counts CLOCK_BOOTTIME
	Note      string     `json:"note,omitempty"`     // why it ended: undone by guard (writer died), changed by someone else and left alone, …
}

// Outcome is what came of taking one change back.
type Outcome struct {
	Change   Change     `json:"change"`
	Restored bool       `json:"restored"`          // the old value is in place and was read back
	Foreign  knob.Value `json:"foreign,omitempty"` // present value when somebody else had changed it; then it was left alone
	Error    string     `json:"error,omitempty"`
	// FilesLeft had been written to make the change survive a reboot; somebody has edited them
	// since, so they were left alone.
	FilesLeft []string `json:"files_left,omitempty"`
	// Stays: only the files of the change were taken out; its value is in force as before.
	Stays bool `json:"stays,omitempty"`
}
