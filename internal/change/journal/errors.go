package journal

import (
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/base/durable"
)

// The answers a caller may want to tell apart.
var (
	// ErrLocked says that another process has the journal open; the error in hand is a
	// *LockedError, which holds its pid.
	ErrLocked = durable.ErrLocked
	// ErrCorrupt says that the journal is damaged, or does not make sense. Nothing was done; a
	// person has to look at the knobs it names.
	ErrCorrupt = durable.ErrCorrupt
	// ErrUnwritable says that a write to the journal failed, so this Journal changes no more knobs
	// (but still puts old values back).
	ErrUnwritable = errors.New("journal cannot be written")
	// ErrUnguarded says that a trial was asked for and no guard process could be started, or none
	// was set up.
	ErrUnguarded = errors.New("no guard process")
	// ErrNeedsRecovery says that an earlier change of the same knob was interrupted; call Recover
	// first.
	ErrNeedsRecovery = errors.New("an earlier change was interrupted and needs recovery")
	// ErrNoEffect says that the kernel took a value without complaint and kept the old one.
	ErrNoEffect = errors.New("accepted, but the old value stays")
	// ErrUnknownChange says that the journal has no change with that id.
	ErrUnknownChange = errors.New("no such change")
	// ErrNotTrial says that a change to commit is not a trial in force any more.
	ErrNotTrial = errors.New("not a trial in force")
	// ErrExpired says that a change to commit has passed its deadline and is being taken back.
	ErrExpired = errors.New("deadline has passed")
	// ErrForeign says that somebody else has set the knob of a trial since.
	ErrForeign = errors.New("changed by another program since")
	// ErrOtherNamespace says that a change was made in another network namespace, where alone it
	// can be taken back.
	ErrOtherNamespace = errors.New("made in another network namespace")
)

// LockedError says which process has the journal open.
type LockedError = durable.LockedError

// FormatError says which record of a journal makes no sense. It is an ErrCorrupt.
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
