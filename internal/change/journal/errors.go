package journal

import (
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/base/durable"
)

// The errors that a caller may want to distinguish.
var (
	// ErrLocked reports that another process has the journal open; the error is a *LockedError,
	// which holds its pid.
	ErrLocked = durable.ErrLocked
	// ErrCorrupt reports that the journal is damaged or inconsistent. Nothing was done; the user
	// must check the knobs that it names.
	ErrCorrupt = durable.ErrCorrupt
	// ErrUnwritable reports that a write to the journal failed, so this Journal changes no more
	// knobs (but still restores old values).
	ErrUnwritable = errors.New("journal cannot be written")
	// ErrUnguarded reports that a trial needs a guard process, and none could be started or was
	// configured.
	ErrUnguarded = errors.New("no guard process")
	// ErrNeedsRecovery reports that an earlier change of the same knob was interrupted; call
	// Recover first.
	ErrNeedsRecovery = errors.New("an earlier change was interrupted and needs recovery")
	// ErrNoEffect reports that the kernel accepted a value without an error and kept the old one.
	ErrNoEffect = errors.New("accepted, but the old value stays")
	// ErrUnknownChange reports that the journal has no change with that id.
	ErrUnknownChange = errors.New("no such change")
	// ErrNotTrial reports that a change to commit is no longer a trial in force.
	ErrNotTrial = errors.New("not a trial in force")
	// ErrExpired reports that a change to commit has passed its deadline and is being taken back.
	ErrExpired = errors.New("deadline has passed")
	// ErrOnTrial reports that another command's trial is in force on this host.
	ErrOnTrial = errors.New("a change is on trial")
	// ErrForeign reports that another program has set the knob of a trial since.
	ErrForeign = errors.New("changed by another program since")
	// ErrDisplaces reports that a write creates an interface anew that another change needs as it is.
	ErrDisplaces = errors.New("undo or confirm the other change first")
	// ErrOtherNamespace reports that a change was made in another network namespace; it can be
	// taken back only there.
	ErrOtherNamespace = errors.New("made in another network namespace")
	// ErrAway reports that the interface of a change was moved to another network namespace since;
	// the value can be taken back when it is here again.
	ErrAway = errors.New("its interface was moved to network namespace")
)

// LockedError names the process that has the journal open.
type LockedError = durable.LockedError

// FormatError names the record of a journal that is inconsistent. It is an ErrCorrupt.
type FormatError struct {
	Path   string
	Record int // counted from 0
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("read %s: record %d: %s", e.Path, e.Record, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *FormatError) Is(target error) bool { return target == ErrCorrupt }
