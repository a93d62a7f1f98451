package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// The exit statuses are a contract (design §4): scripts act on them.
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2
	exitPartial      = 3
	exitFinding      = 4
	exitRolledBack   = 5
	exitNotPermitted = 10
	exitLocked       = 11
	exitUnreachable  = 12
	exitInterrupted  = 130
)

const exitStatusHelp = `  0 ok · 1 failed · 2 usage · 3 partial result · 4 finding at or above --fail-on ·
  5 rolled back · 10 not permitted · 11 locked by another linerate ·
  12 peer unreachable · 130 interrupted`

var errInterrupted = errors.New("interrupted")

// usageError is a mistake in what was typed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// statusError ends the command with a given status after its document was printed; an empty message
// prints nothing more.
//
// A command whose result is itself the bad news (a partial run, a finding) has said everything in
// its document; repeating it as an error would put a second text on the screen.
type statusError struct {
	status  int
	message string
	hint    string
}

func (e statusError) Error() string { return e.message }

// Hint is what to do next.
func (e statusError) Hint() string { return e.hint }

// tuneError is what broke an experiment off after it had begun. Left says that not every trial
// change could be taken back.
type tuneError struct {
	error
	left bool
}

func (e tuneError) Unwrap() error { return e.error }

// exitStatus maps an error to its status; this switch is the only place that does.
//
// The cases are in order of precedence: an interruption explains any error that came with it, a
// status that a command has chosen beats what its cause would say, and usage comes before
// permission, because a mistyped name may also not be permitted. A statusError in a chain that was
// interrupted is an interruption.
func exitStatus(err error) int {
	var usage usageError
	var unreachable *goal.UnreachableError
	var status statusError
	var outOfRange *knob.RangeError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &status):
		return status.status
	case errors.As(err, &usage), errors.As(err, &unreachable), errors.Is(err, knob.ErrUnknown),
		errors.As(err, &outOfRange),
		errors.Is(err, peer.ErrTarget), errors.Is(err, peer.ErrNoKey), errors.Is(err, wire.ErrBadKey),
		errors.Is(err, traffic.ErrBadSpec):
		return exitUsage
	case errors.Is(err, journal.ErrLocked):
		return exitLocked
	case errors.Is(err, wire.ErrUnreachable), errors.Is(err, wire.ErrPeerGone), errors.Is(err, wire.ErrNotLinerate):
		return exitUnreachable
	case errors.Is(err, fs.ErrPermission), errors.Is(err, wire.ErrWrongKey), errors.Is(err, knob.ErrReadOnly),
		errors.Is(err, lab.ErrNoNamespaces):
		return exitNotPermitted
	default:
		return exitFailed
	}
}

// finish prints the error, if any, and gives the status.
func (a *app) finish(err error) int {
	status := exitStatus(err)
	if err == nil || err.Error() == "" {
		return status
	}
	text, hint := oneSentence(err), hintOf(err)
	report.NewError(text, hint, status).Tell(a.err, "linerate", a.json)
	return status
}

// oneSentence keeps an error on one line.
//
// errors.Join puts its parts on lines of their own; log lines and the JSON text want one.
func oneSentence(err error) string {
	if errors.Is(err, errInterrupted) {
		// What an interruption left behind is said only where it is known: an undo or a set that
		// was cut short must not claim that changes were taken back, and a tune that could not take
		// them back must say which.
		var t tuneError
		switch {
		case !errors.As(err, &t):
			return "interrupted"
		case !t.left:
			return "interrupted; trial changes were taken back"
		}
		return "interrupted: " + oneSentence(t.error)
	}
	// The mark of a test that makes no sense anywhere is for errors.Is; who typed it needs the
	// reason alone.
	text := strings.Replace(err.Error(), traffic.ErrBadSpec.Error()+": ", "", 1)
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// hintOf finds what to do next in the chain of an error.
//
// The outermost hint wins: it was given by who knew most of what the user was about to do.
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
