package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/resolver/load"
	"github.com/linerate/linerate/internal/resolver/names"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// The exit statuses are a contract: scripts act on them.
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

// exitMeanings are what the help says of each status.
var exitMeanings = map[int]string{
	exitOK: "ok", exitFailed: "failed", exitUsage: "usage", exitPartial: "partial result",
	exitFinding: "finding at or above --fail-on", exitRolledBack: "rolled back", exitNotPermitted: "not permitted",
	exitLocked: "locked by another linerate", exitUnreachable: "peer unreachable", exitInterrupted: "interrupted",
}

// exitsOf is the annotation of a command with the statuses that it can end with.
const exitsOf = "exits"

// exits returns the annotation of a command that can end with these statuses, besides ok, failed
// and usage, which are possible everywhere.
func exits(statuses ...int) map[string]string {
	words := make([]string, len(statuses))
	for i, status := range statuses {
		words[i] = strconv.Itoa(status)
	}
	return map[string]string{exitsOf: strings.Join(words, " ")}
}

// exitsHelp returns the table of the statuses that a command can end with; the program's own help
// has all of them.
func exitsHelp(c *cobra.Command) string {
	statuses := []int{exitOK, exitFailed, exitUsage}
	if !c.HasParent() {
		statuses = slices.Sorted(maps.Keys(exitMeanings))
	}
	for word := range strings.FieldsSeq(c.Annotations[exitsOf]) {
		status, _ := strconv.Atoi(word) // exits wrote it
		statuses = append(statuses, status)
	}
	const width = 78
	text, used := " ", 1
	for i, status := range statuses {
		entry := fmt.Sprintf("%d %s", status, meaningFor(c, status))
		if i+1 < len(statuses) {
			entry += " ·"
		}
		if n := utf8.RuneCountInString(entry); used+1+n > width {
			text, used = text+"\n  "+entry, 2+n
		} else {
			text, used = text+" "+entry, used+1+n
		}
	}
	return text
}

// meaningFor returns what a status means for a command.
func meaningFor(c *cobra.Command, status int) string {
	switch {
	case status != exitFinding || !c.HasParent() || c.Flags().Lookup("fail-on") != nil:
		return exitMeanings[status]
	case c.Flags().Lookup("fail-below") != nil:
		return "below --fail-below, or proven worse than --baseline"
	}
	return "--check found a fault"
}

var errInterrupted = errors.New("interrupted")

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// statusError ends the command with a given status after its document was printed. An empty message
// prints nothing more: a command whose result is the bad news (a partial run, a finding) has said
// everything in its document.
type statusError struct {
	status  int
	message string
	hint    string
}

func (e statusError) Error() string { return e.message }

// Hint returns what the user can do next.
func (e statusError) Hint() string { return e.hint }

// tuneError is the error that ended an experiment after it had begun. Left reports that some trial
// change could not be undone, or a file not be removed.
type tuneError struct {
	error
	left bool
}

func (e tuneError) Unwrap() error { return e.error }

// exitStatus maps an error to its status; no other code does.
//
// The cases are in order of precedence. An interruption explains any error that came with it, even
// a statusError. A status that a command has chosen beats that of its cause. Usage comes before
// permission, because a mistyped name may also not be permitted.
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
		errors.Is(err, traffic.ErrBadSpec), errors.Is(err, load.ErrOptions), errors.Is(err, names.ErrNames):
		return exitUsage
	case errors.Is(err, journal.ErrLocked), errors.Is(err, journal.ErrOnTrial):
		return exitLocked
	case errors.Is(err, wire.ErrUnreachable), errors.Is(err, wire.ErrPeerGone), errors.Is(err, wire.ErrNotLinerate),
		errors.Is(err, load.ErrNoServer):
		return exitUnreachable
	case errors.Is(err, fs.ErrPermission), errors.Is(err, wire.ErrWrongKey), errors.Is(err, knob.ErrReadOnly),
		errors.Is(err, lab.ErrNoNamespaces):
		return exitNotPermitted
	default:
		return exitFailed
	}
}

// finish prints the error, if there is one, and returns the status.
func (a *app) finish(err error) int {
	status := exitStatus(err)
	if err == nil || err.Error() == "" {
		a.showNotices()
		return status
	}
	a.errorDocument(err).Print(a.err, "linerate", a.json)
	return status
}

// errorDocument returns what --json prints of an error, with the sentences that wait for the end.
func (a *app) errorDocument(err error) *report.ErrorDocument {
	err = a.forbidden(err)
	doc := report.NewError(oneSentence(err), hintOf(err), exitStatus(err))
	doc.Notices = a.notices
	return doc
}

// interruption marks the error of a command that a signal ended. An interruption is an error only
// when it made the command fail: Ctrl-C is the normal end of `serve` and `lab up`. One that another
// process of linerate has printed stays as it is.
func interruption(ctx context.Context, err error) error {
	if ctx.Err() == nil || err == nil || errors.Is(err, errInterrupted) || err == (statusError{status: exitInterrupted}) {
		return err
	}
	return errors.Join(errInterrupted, err)
}

// oneSentence returns the text of an error on one line: errors.Join puts its parts on several, and
// logs and JSON need one.
func oneSentence(err error) string {
	if errors.Is(err, errInterrupted) {
		// Only a tune knows what its interruption left behind: an undo or a set that was cut short
		// must not claim that changes were undone, and a tune that could not undo them says which.
		var t tuneError
		switch {
		case !errors.As(err, &t):
			return "interrupted"
		case !t.left:
			return "interrupted; trial changes were undone"
		}
		return "interrupted: " + oneSentence(t.error)
	}
	// The mark of an impossible test is for errors.Is; the user needs only the reason.
	text := strings.Replace(err.Error(), traffic.ErrBadSpec.Error()+": ", "", 1)
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// hintOf returns what to do next, from the chain of an error. The outermost hint wins: the
// outermost code knows most about what the user was doing.
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	switch {
	case errors.Is(err, journal.ErrCorrupt):
		return "linerate recover --salvage shows what it still knows"
	case errors.Is(err, journal.ErrLocked):
		return "wait until that process ends, or end it: a tune takes its trials back then"
	}
	return ""
}
