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

// takeAllBack takes changes back in reverse order. The end of the context stops it between two
// changes.
func (j *Journal) takeAllBack(ctx context.Context, entries []*entry, why func(*entry) string) ([]Outcome, error) {
	position := func(e *entry) int { return slices.Index(j.history.entries, e) }
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

// putBack ends one change at its knob: it reads the knob and does what remains to be done. If
// another part of the change remains, ends is false, and the change stays open.
func (j *Journal) putBack(ctx context.Context, e *entry, why string, ends bool) (Outcome, error) {
	over := func(restored bool, r record) (Outcome, error) {
		if !ends {
			return Outcome{Change: e.Change, Restored: restored}, nil
		}
		r.Kind, r.ID = kindUndone, e.ID
		err := j.writeOrRemember(r)
		return Outcome{Change: e.Change, Restored: restored}, err
	}
	stays := func(err error) (Outcome, error) { return Outcome{Change: e.Change}, err }

	if e.Phase == phaseDone {
		return stays(nil)
	}
	// The checks below start with those that need no look at the host. Each ends in one record, so
	// that after a crash between two of them the check is repeated and not skipped.
	if e.over(j.options.BootID) {
		return over(false, record{Note: noteRestarted})
	}
	// Writing From now would change the value under the change above, which would then look like
	// the work of another program.
	top := j.history.above(e)
	for ; top != nil && top.over(j.options.BootID); top = j.history.above(e) {
		if err := j.writeOrRemember(record{Kind: kindUndone, ID: top.ID, Note: noteRestarted}); err != nil {
			return stays(err)
		}
	}
	if top != nil {
		if top.Phase != phaseApplied || e.Phase != phaseApplied {
			return stays(fmt.Errorf("change %s on top of it: %w", top.ID, ErrNeedsRecovery))
		}
		return over(false, record{Heir: top.ID, Note: fmt.Sprintf("%s; change %s stands on top and now goes back to %s",
			why, top.ID, e.From)})
	}
	found := j.options.Identify(e.Knob)
	if e.BootID != j.options.BootID {
		// Numbers of namespaces and interfaces mean nothing after a restart; the files identified
		// them by name as well.
		found = e.Identity
	}
	if e.Identity.elsewhere(found) {
		if j.options.NamespaceGone(e.Identity.Namespace) {
			note := "the network namespace is gone, and the setting with it"
			if e.Identity.Device != "" {
				// The kernel moves NICs back to the first namespace unchanged, and destroys all
				// other interfaces.
				note += ", unless it is that of a card: then look at it where the card is now"
			}
			return over(false, record{Note: note})
		}
		return stays(fmt.Errorf("%w (%s, here is %s)", ErrOtherNamespace, e.Identity.Namespace, found.Namespace))
	}
	id := e.Knob
	if e.BootID == j.options.BootID {
		id = j.present(e)
	}
	if id != e.Knob {
		why += fmt.Sprintf("; its interface is called %s now", id.Interface())
		found = j.options.Identify(id)
	}
	back := e.Away != nil && e.Away.Address != "" && e.Away.Address == found.Address
	if e.Identity.differs(found) && !back {
		unseen, err := j.left(e)
		if err != nil {
			return stays(err)
		}
		return over(false, record{Note: why + "; the interface is gone" + unseen +
			" and another one has its name: left alone"})
	}
	present, err := j.read(ctx, id)
	// A driver was unloaded or an interface was removed; a device that comes back later has its own
	// defaults.
	if errors.Is(err, fs.ErrNotExist) {
		unseen := ""
		if found.Device == "" {
			if unseen, err = j.left(e); err != nil {
				return stays(err)
			}
		}
		return over(false, record{Note: why + "; the knob no longer exists" + unseen})
	}
	if err != nil {
		return stays(err)
	}
	if j.same(id, present, e.From) {
		// In force and yet holding From: another program restored it. In any other phase, an
		// interrupted step leaves this state.
		inSteps := id.Kind() == knob.KindQdisc || id.Kind() == knob.KindFirewall || id.InFile()
		if e.Phase == phaseApplied {
			why += "; the old value was there already"
			inSteps = false
		}
		// A queueing discipline goes back in two steps: it is created, then handed over to the kernel.
		// So do rules: they are put in front of others, which are then removed. The server of an
		// option in a file may be on its way to take it. Writing the same value again completes a
		// write that was interrupted between the steps. A module that is loaded again has its old
		// parameter before its interfaces have what they had, and a guard that dies in between leaves
		// no record. All other knobs consist of their value alone.
		if inSteps || knob.Reloads(id) {
			if err := j.options.Backend.Write(ctx, id, e.From); err != nil {
				return stays(err)
			}
		}
		return over(true, record{Note: why})
	}
	asked := j.same(id, present, e.To)
	if !asked && j.sure {
		// Another program's value, or a driver's rounding: a question for the journal, which keeps
		// a record of what it overwrites.
		return stays(errNotSure)
	}
	if !asked && !j.rounded(e) {
		outcome, err := over(false,
			record{Note: fmt.Sprintf("%s; changed by another program to %s and left alone", why, present)})
		outcome.Foreign = present
		return outcome, err
	}
	if !asked {
		// Most likely the driver's rounding, perhaps a value that another program set in the last
		// ten seconds. It is about to be overwritten, so the history must contain it: To keeps it
		// as well, but users read the note.
		why += fmt.Sprintf("; it held %s, neither %s nor %s, and was treated as the driver's rounding of our write",
			present, e.From, e.To)
	}
	// The intent to undo makes a later Recover finish it. If it cannot be recorded, the old value
	// is restored all the same: that is the safe side, and Recover finds it at the knob.
	var noteErr error
	if e.Phase != phaseUndoing {
		noteErr = j.writeOrRemember(record{Kind: kindUndo, ID: e.ID, To: present, Note: why})
	}
	// No kernel has a compare-and-swap for a knob. Between the read above and this line lies one
	// fsync, milliseconds on a slow disk; a value that another program sets in that time is lost.
	// The package comment lists this under Limits.
	writeErr := j.options.Backend.Write(ctx, id, e.From)
	after, err := j.read(ctx, id)
	if err != nil {
		return stays(errors.Join(writeErr, err, noteErr))
	}
	switch {
	case j.same(id, after, e.From):
		// Even if the write reported an error.
	case writeErr != nil:
		return stays(errors.Join(writeErr, noteErr))
	// The change stays open: the guard tries again, and users see that instead of a history that
	// reports the change as over.
	case after == present:
		return stays(errors.Join(fmt.Errorf("put back %s: %w", e.From, ErrNoEffect), noteErr))
	default:
		why += fmt.Sprintf("; put back %s, the system made it %s", e.From, after)
		outcome, err := over(false, record{Note: why})
		return outcome, errors.Join(fmt.Errorf("put back %s, the system made it %s", e.From, after), noteErr, err)
	}
	outcome, err := over(true, record{Note: why})
	if noteErr != nil {
		err = noteErr // The second error adds nothing.
	}
	return outcome, err
}

// errNotSure is the answer of a Journal that leaves guesses to another one.
var errNotSure = errors.New("left to the journal")

const noteRestarted = "the host was restarted, which put the old value back"

// roundingWindow is how long after an intent an unexpected value, neither the old nor the requested
// one, counts as the driver's rounding of our write.
const roundingWindow = 10 * time.Second

// rounded reports whether the unexpected value of a knob is most likely our own: the writer died
// between the write and its record, and drivers round (rings to powers of two, moderation to a
// granule of microseconds). A guard comes within milliseconds, so no other program had the time;
// later the value may be another program's choice, which is left alone. A change from the future
// was recorded in another time namespace (time_namespaces(7), Linux 5.6: CLOCK_BOOTTIME has an
// offset there); its age is unknown, so it counts as late.
func (j *Journal) rounded(e *entry) bool {
	if e.Knob.InFile() {
		return false // no program rounds what is in a file, and Began may be of another boot
	}
	age := j.options.Boottime() - e.Began
	return e.Phase == phaseIntent && age >= 0 && age < roundingWindow
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
