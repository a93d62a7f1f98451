package journal

import (
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// State is the stage of a change.
type State string

// The states. A trial reverts automatically; a committed change stays until undone or reboot; a
// persisted one survives reboot.
const (
	Trial     State = "trial"
	Committed State = "committed"
	Persisted State = "persisted"
	Undone    State = "undone"
)

// Change is one write of one knob, as the journal records it; changes[] of linerate.history/1.
type Change struct {
	ID   string     `json:"id"` // short, unique in the journal, ordered by time
	Time time.Time  `json:"time"`
	Knob knob.ID    `json:"knob"`
	Side string     `json:"side"` // near or far, seen from the requesting command
	From knob.Value `json:"from"` // the value that undo restores
	To   knob.Value `json:"to"`   // the value that the knob really held after the write
	// Other knobs that the kernel or the driver set with this write. Undo brings them back as well,
	// unless another program has changed them since.
	SideEffects []SideEffect `json:"side_effects,omitempty"`
	// Only when the kernel or the driver did not accept exactly this value.
	Asked knob.Value `json:"asked,omitempty"`
	// First value seen on this knob since boot, regardless of later changes.
	Original  knob.Value `json:"original,omitempty"`
	State     State      `json:"state"`
	Persisted bool       `json:"persisted"`
	Files     []string   `json:"files,omitempty"` // files that set the knob when the host starts
	Reason    string     `json:"reason,omitempty"`
	Run       string     `json:"run,omitempty"` // the stored run of the tune that made it; absent: no tune did
	BootID    string     `json:"boot_id,omitempty"`
	Deadline  *time.Time `json:"deadline,omitempty"` // trial only, for display; the guard counts CLOCK_BOOTTIME
	// Unguarded reports that the guard of a trial was killed or stopped: nothing ends the trial until
	// recover.
	Unguarded bool   `json:"unguarded,omitempty"`
	Note      string `json:"note,omitempty"` // why it ended: undone by guard (writer died), left alone, …
}

// SideEffect is another knob that a write set as well. A knob that is not there, such as one of a
// queue that a NIC no longer has, holds [knob.Absent].
type SideEffect struct {
	Knob knob.ID    `json:"knob"`
	From knob.Value `json:"from"` // before the write
	To   knob.Value `json:"to"`   // right after it
}

// Outcome is the result of taking one change back.
type Outcome struct {
	Change   Change     `json:"change"`
	Restored bool       `json:"restored"`          // the old value is in place and was read back
	Foreign  knob.Value `json:"foreign,omitempty"` // present value when another program had changed it; it was left alone
	Error    string     `json:"error,omitempty"`
	// FilesLeft were written to make the change survive a reboot; they were edited since, so they
	// were left alone.
	FilesLeft []string `json:"files_left,omitempty"`
	// Stays reports that only the files of the change were removed; its value is in force as
	// before.
	Stays bool `json:"stays,omitempty"`

	later bool // another attempt of this process cannot change the error
}
