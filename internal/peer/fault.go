package peer

import (
	"context"
	"errors"
	"io/fs"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// Errors of the far side, beside those of packages knob and journal.
var (
	// ErrTuningOff: serve was started without --allow-tuning. It is an fs.ErrPermission.
	ErrTuningOff error = tuningOff{}
	// ErrBusy: too many clients are connected, or another test was running for longer than a client
	// waits.
	ErrBusy error = busy{}
	// ErrVersion: the other end's linerate speaks another version of the protocol.
	ErrVersion = errors.New("versions do not fit")
)

type busy struct{}

func (busy) Error() string { return "far end is busy" }
func (busy) Hint() string {
	return "try again later, or let more in where it runs: serve takes --max-clients and --at-once"
}

// ErrPeerMeasures: the key of this client allows tests only. It is an ErrTuningOff.
var ErrPeerMeasures error = peerMeasures{}

type peerMeasures struct{}

func (peerMeasures) Error() string { return "this key allows measuring, not changing settings" }
func (peerMeasures) Is(target error) bool {
	return target == fs.ErrPermission || target == ErrTuningOff
}
func (peerMeasures) Hint() string {
	return "on that host, `linerate peers add NAME --allow-tuning` makes a key that does"
}

type tuningOff struct{}

func (tuningOff) Error() string        { return "changing settings remotely is not permitted" }
func (tuningOff) Is(target error) bool { return target == fs.ErrPermission }
func (tuningOff) Hint() string {
	return "start serve on that host with --allow-tuning"
}

// faultKinds lists the errors that keep their identity between hosts. The meaning of a name never
// changes; the receiver ignores a name that its version does not know.
var faultKinds = []struct {
	name string
	err  error
}{
	{"not-exist", fs.ErrNotExist},
	{"permission", fs.ErrPermission},
	{"not-supported", knob.ErrNotSupported},
	{"unknown-knob", knob.ErrUnknown},
	{"read-only", knob.ErrReadOnly},
	{"global", knob.ErrGlobal},
	{"not-allowed", knob.ErrNotAllowed},
	{"invalid", knob.ErrInvalid},
	{"locked", journal.ErrLocked},
	{"on-trial", journal.ErrOnTrial},
	{"corrupt", journal.ErrCorrupt},
	{"unwritable", journal.ErrUnwritable},
	{"unguarded", journal.ErrUnguarded},
	{"needs-recovery", journal.ErrNeedsRecovery},
	{"no-effect", journal.ErrNoEffect},
	{"unknown-change", journal.ErrUnknownChange},
	{"not-trial", journal.ErrNotTrial},
	{"expired", journal.ErrExpired},
	{"other-namespace", journal.ErrOtherNamespace},
	{"tuning-off", ErrTuningOff},
	{"busy", ErrBusy},
	{"version", ErrVersion},
	{"unconfirmed", ErrUnconfirmed},
	{"key-expired", ErrKeyExpired},
	{"key-bound", ErrKeyBound},
	{"protocol", wire.ErrProtocol},
	{"refused", traffic.ErrRefused},
	{"bad-spec", traffic.ErrBadSpec},
	{"deadline", context.DeadlineExceeded},
	{"canceled", context.Canceled},
}

// fault is an error in the form in which it travels to the client.
type fault struct {
	Kinds []string `json:"kinds,omitempty"`
	Text  string   `json:"text"`
	Hint  string   `json:"hint,omitempty"`
}

// newFault encodes an error.
func newFault(err error) *fault {
	f := &fault{Text: err.Error()}
	// All that apply, not only the first: ErrTuningOff is also a permission error, and a caller may
	// know only the wider one.
	for _, k := range faultKinds {
		if errors.Is(err, k.err) {
			f.Kinds = append(f.Kinds, k.name)
		}
	}
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		f.Hint = h.Hint()
	}
	return f
}

// RemoteError is an error that happened on the far host. errors.Is finds the sentinels of fs, knob,
// journal and this package that the error wrapped there.
type RemoteError struct {
	Host   string // the far host's name
	Text   string // as it reads on the far host
	Advice string // what the user can do; may be empty
	kinds  []error
}

// newRemoteError decodes a fault. Text and hint come from another host: they are shown to users and
// never parsed.
func newRemoteError(host string, f *fault) *RemoteError {
	e := &RemoteError{Host: host, Text: f.Text, Advice: f.Hint}
	for _, name := range f.Kinds {
		for _, k := range faultKinds {
			if k.name == name {
				e.kinds = append(e.kinds, k.err)
			}
		}
	}
	return e
}

// Error returns "host: text".
func (e *RemoteError) Error() string { return e.Host + ": " + e.Text }

// Unwrap returns the sentinels.
func (e *RemoteError) Unwrap() []error { return e.kinds }

// Hint returns what the user can do; empty if unknown.
func (e *RemoteError) Hint() string { return e.Advice }
