package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/knob"
)

// Commit makes trials stay until they are undone or the host restarts. It commits all of them or
// none.
//
// It returns ErrForeign for a trial whose knob now holds another value: that value is not the one
// that was measured or looked at.
func (j *Journal) Commit(ctx context.Context, ids ...string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.ready(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	entries, err := j.lookUp(ids)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	var trials []string
	for _, e := range entries {
		switch {
		// A client that lost the answer repeats its request.
		case e.State == Committed || e.State == Persisted:
			continue // Committing twice does no harm.
		case e.State != Trial || e.Phase != phaseApplied || e.BootID != j.options.BootID:
			return fmt.Errorf("commit change %s of %s: %w", e.ID, e.Knob, ErrNotTrial)
		case j.expired(e):
			// The guard may be acting on it right now, waiting for our lock. It has precedence.
			return fmt.Errorf("commit change %s of %s: %w", e.ID, e.Knob, ErrExpired)
		}
		if err := j.holds(ctx, e); err != nil {
			return fmt.Errorf("commit change %s of %s: nothing was committed: %w", e.ID, e.Knob, err)
		}
		trials = append(trials, e.ID)
	}
	if len(trials) == 0 {
		return nil
	}
	deadlines := make([]time.Duration, len(entries))
	for i, e := range entries {
		deadlines[i] = e.Expires // add clears it
	}
	// One record for all changes: after a crash either every trial of a tune stays or none, never
	// half a set that was never measured.
	if err := j.write(record{Kind: kindCommit, IDs: trials}); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	now := j.options.Boottime()
	if !slices.ContainsFunc(deadlines, func(d time.Duration) bool { return d != 0 && now >= d }) {
		return nil
	}
	// The storage took longer than the trial had left, and the guard does not wait for it: it may
	// have put the old values back before it could see this record.
	_, err = j.takeAllBack(context.WithoutCancel(ctx), entries,
		func(*entry) string { return "undone: its deadline passed while the commit was being written" })
	return errors.Join(fmt.Errorf("commit: %w while it was being written", ErrExpired), err)
}

// holds returns nil if the knob of a trial still holds what the change wrote. It cannot check a
// change with another one on top, nor one of another network namespace.
func (j *Journal) holds(ctx context.Context, e *entry) error {
	if j.history.above(e) != nil || e.Identity.elsewhere(j.options.Identify(e.Knob)) {
		return nil
	}
	id := j.present(e)
	if e.Identity.differs(j.options.Identify(id)) {
		return fmt.Errorf("%w: its interface is gone and another one has the name", ErrForeign)
	}
	present, err := j.read(ctx, id)
	if err != nil {
		return err
	}
	if !j.same(id, present, e.To) {
		return fmt.Errorf("%w: it holds %s, not %s", ErrForeign, present, e.To)
	}
	return nil
}

// Undo takes changes back, newest first regardless of the given order. It restores an old value
// only if the knob still holds what the change wrote; it leaves a value that another program has
// set since, and reports it in Outcome.Foreign. When a later change of the same knob stands on top,
// Undo writes nothing: that change then goes back to the older value. A change that is already over
// is returned unchanged.
//
// The error includes the Error of each outcome; the other changes are taken back all the same. A
// journal that cannot be written does not stop Undo from restoring old values; the error then
// reports that the journal lacks them.
func (j *Journal) Undo(ctx context.Context, ids ...string) ([]Outcome, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, fmt.Errorf("undo: %w", fs.ErrClosed)
	}
	entries, err := j.lookUp(ids)
	if err != nil {
		return nil, fmt.Errorf("undo: %w", err)
	}
	return j.takeAllBack(ctx, entries, func(*entry) string { return "undone" })
}

// UndoAll takes back every trial and every committed change.
func (j *Journal) UndoAll(ctx context.Context) ([]Outcome, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, fmt.Errorf("undo: %w", fs.ErrClosed)
	}
	var entries []*entry
	for _, e := range j.history.entries {
		if e.Phase != phaseDone {
			entries = append(entries, e)
		}
	}
	return j.takeAllBack(ctx, entries, func(*entry) string { return "undone" })
}

// UndoTrials takes back every remaining trial of this Journal; an interrupted command calls it
// before it closes.
func (j *Journal) UndoTrials(ctx context.Context) ([]Outcome, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, fmt.Errorf("undo: %w", fs.ErrClosed)
	}
	var entries []*entry
	for _, e := range j.history.entries {
		if e.Phase != phaseDone && e.State == Trial && e.Session == j.session {
			entries = append(entries, e)
		}
	}
	return j.takeAllBack(ctx, entries, func(*entry) string { return "undone" })
}

// lookUp finds changes by id, each once.
func (j *Journal) lookUp(ids []string) ([]*entry, error) {
	var entries []*entry
	for _, id := range ids {
		e := j.history.find(id)
		if e == nil {
			return nil, fmt.Errorf("change %q: %w", id, ErrUnknownChange)
		}
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// takeAllBack takes changes back in reverse order, after what was interrupted. The end of the
// context stops it between two changes.
func (j *Journal) takeAllBack(ctx context.Context, entries []*entry, why func(*entry) string) ([]Outcome, error) {
	// An undo that was interrupted may have moved knobs of later changes, and brings them back when
	// it is finished: first, so that they hold what these changes left.
	entries = j.withInterrupted(entries)
	position := func(e *entry) int {
		if e.Phase == phaseUndoing && len(e.Beside) > 0 {
			return len(j.history.entries) + slices.Index(j.history.entries, e)
		}
		return slices.Index(j.history.entries, e)
	}
	sorting.Func(entries, func(a, b *entry) int { return position(b) - position(a) })
	var outcomes []Outcome
	var errs []error
	for _, e := range entries {
		// Between two changes only: the end of a context never leaves one half done.
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		outcome, err := j.takeBack(context.WithoutCancel(ctx), e, why(e))
		if err != nil {
			err = fmt.Errorf("undo change %s of %s: %w", e.ID, e.Knob, err)
			outcome.Error = err.Error()
			outcome.later = errors.Is(err, errNotSure) || errors.Is(err, ErrOtherNamespace) || errors.Is(err, ErrAway)
			errs = append(errs, err)
		}
		outcomes = append(outcomes, outcome)
	}
	if j.silent != nil && len(outcomes) > 0 {
		errs = append(errs, fmt.Errorf("%w: %w", ErrUnwritable, *j.silent))
	}
	return outcomes, errors.Join(errs...)
}

// takeBack ends one change. Its files go first, so that a host that restarts in between comes up
// without the change. It can be repeated after any crash.
func (j *Journal) takeBack(ctx context.Context, e *entry, why string) (Outcome, error) {
	outOfReach := e.BootID == j.options.BootID && e.Identity.elsewhere(j.options.Identify(e.Knob)) &&
		!j.options.NamespaceGone(e.Identity.Namespace)
	if e.Phase == phaseDone || e.Saved == nil || e.Saved.Phase == savedGone || outOfReach {
		return j.putBack(ctx, e, why, true)
	}
	if j.silent != nil {
		// Its files may be on the same storage. The change stays open because of them.
		outcome, err := j.putBack(ctx, e, why, false)
		outcome.FilesLeft = e.Saved.paths()
		return outcome, err
	}
	left, err := j.removeFiles(e, why)
	if err != nil && !errors.Is(err, ErrUnwritable) {
		// The value in force does not wait for files that cannot be removed. The change stays open
		// because of them; the next attempt finds the old value at the knob.
		outcome, backErr := j.putBack(ctx, e, why, false)
		outcome.FilesLeft = left
		return outcome, errors.Join(err, backErr)
	}
	if len(left) > 0 {
		why += "; edited outside linerate and left alone: " + strings.Join(left, ", ")
	}
	outcome, backErr := j.putBack(ctx, e, why, true)
	outcome.FilesLeft = left
	if backErr == nil {
		backErr = err
	}
	return outcome, backErr
}

// expired reports whether the deadline of a trial has passed.
func (j *Journal) expired(e *entry) bool {
	return e.Expires != 0 && j.options.Boottime() >= e.Expires
}

// Recover finishes what a crash left half done and takes back trials without an owner: those of a
// lease whose journal is closed, and those past their deadline. It marks changes of an earlier boot
// as gone without touching anything, except trials of options in files, which no restart takes
// back, and leaves changes of another network namespace to processes
// inside it. It returns the outcomes; a second call finds nothing to do and returns nothing.
func (j *Journal) Recover(ctx context.Context) ([]Outcome, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, fmt.Errorf("recover: %w", fs.ErrClosed)
	}
	return j.recover(ctx, "recovery", "", "")
}

// recover does the work of Recover for an actor, which also takes back the trials of one session,
// for a cause.
func (j *Journal) recover(ctx context.Context, actor, session, cause string) ([]Outcome, error) {
	why := map[*entry]string{}
	var entries, halfSaved []*entry
	known := map[string]bool{} // checked once for each namespace, because a check reads all processes
	gone := func(namespace string) bool {
		if _, ok := known[namespace]; !ok {
			known[namespace] = j.options.NamespaceGone(namespace)
		}
		return known[namespace]
	}
	for _, e := range j.history.entries {
		var reason string
		switch {
		case e.Phase == phaseDone:
			continue
		case e.Saved != nil && e.Why != "" && (e.Saved.Phase == savedRemoving || e.Saved.Phase == savedGone):
			// All or half of its files are removed, because the change itself was being undone.
			entries = append(entries, e)
			why[e] = fmt.Sprintf("%s; finished by %s", e.Why, actor)
			continue
		case e.Saved != nil && e.Saved.Phase == savedInPlace && e.Phase == phaseApplied:
			continue // Persisted: a restart does not end it.
		case e.Saved != nil && e.BootID == j.options.BootID &&
			(e.Saved.Phase == savedWriting || e.Saved.Phase == savedRemoving):
			halfSaved = append(halfSaved, e)
			continue
		case e.BootID != j.options.BootID && e.Knob.InFile() && e.State != Trial && e.Phase == phaseApplied:
			continue // Committed: it is in its file.
		case e.BootID != j.options.BootID:
			reason = "host restarted"
		case e.Identity.elsewhere(j.options.Identify(e.Knob)):
			if !gone(e.Identity.Namespace) {
				continue
			}
			reason = "found its network namespace gone"
		// Before all questions of ownership: the decision to undo this change is already made, and
		// a committed change may be half undone too.
		case e.Phase == phaseUndoing:
			entries = append(entries, e)
			why[e] = fmt.Sprintf("%s; finished by %s", e.Why, actor)
			continue
		// Only the holder of the lock writes intents, and this process holds it now: the writer of
		// this one is gone, or gave it up.
		case e.Phase == phaseIntent:
			reason = "interrupted half way"
		// Applied and committed or persisted: it stays.
		case e.State != Trial:
			continue
		case j.expired(e):
			reason = "deadline passed"
		case j.history.unguarded(e, j.options.BootID, j.options.GuardAlive):
			reason = "its guard was killed or stopped"
		// A guard that knows of the end of its writer also takes back Deadline trials before their
		// deadline.
		case e.Session == session:
			reason = cause
		// This process holds the lock, so the Journal that leased this trial is closed, whether or
		// not its process still runs.
		case e.Lease && e.Session != j.session:
			reason = "writer died"
		default:
			continue
		}
		entries = append(entries, e)
		why[e] = fmt.Sprintf("undone by %s: %s", actor, reason)
	}
	if j.silent != nil {
		halfSaved = nil // files wait for the storage
	}
	outcomes, err := j.unsave(halfSaved)
	taken, takeErr := j.takeAllBack(ctx, entries, func(e *entry) string { return why[e] })
	return append(outcomes, taken...), errors.Join(err, takeErr)
}

// unsave removes the files of changes whose persisting a crash interrupted. The changes themselves
// stay.
func (j *Journal) unsave(entries []*entry) ([]Outcome, error) {
	var outcomes []Outcome
	var errs []error
	for _, e := range entries {
		left, err := j.removeFiles(e, "")
		outcome := Outcome{Change: e.Change, Stays: true, FilesLeft: left}
		if err != nil {
			err = fmt.Errorf("take out the files of change %s of %s: %w", e.ID, e.Knob, err)
			outcome.Error = err.Error()
			errs = append(errs, err)
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes, errors.Join(errs...)
}

// Originals returns the first value seen since boot on each changed knob of this network namespace.
func (j *Journal) Originals() map[knob.ID]knob.Value {
	j.mu.Lock()
	defer j.mu.Unlock()
	originals := map[knob.ID]knob.Value{}
	for _, o := range j.history.originals {
		if o.same(j.object(o.Knob)) {
			originals[o.Knob] = o.Value
		}
	}
	return originals
}
