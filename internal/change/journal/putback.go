package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// putBack ends one change at its knob: it reads the knob and does what remains to be done. If
// another part of the change remains, ends is false, and the change stays open.
func (j *Journal) putBack(ctx context.Context, e *entry, why string, ends bool) (Outcome, error) {
	r := &restoration{j: j, e: e, why: why, ends: ends}
	// A step that settles the change writes one record, so that after a crash between two steps it
	// is repeated and not skipped. The steps that need no look at the host come first.
	done, err := false, error(nil)
	for _, settles := range []func(context.Context) (done bool, err error){
		r.ended, r.underneath, r.elsewhere, r.replaced, r.gone, r.restored, r.foreign, r.written,
	} {
		if done, err = settles(ctx); done {
			break
		}
	}
	r.out.Change = e.Change
	return r.out, err
}

// restoration is the end of one change at its knob. Each of its steps is done with the change, or
// leaves it to the next one. After an error the change stays open.
type restoration struct {
	j    *Journal
	e    *entry
	why  string // the note of the record so far
	ends bool   // the record of the end is written

	id      knob.ID // of the knob today: its interface may have another name now
	found   Identity
	present knob.Value // what the knob holds before the write
	out     Outcome
}

// settle records that nothing remains to be done at the knob.
func (r *restoration) settle(restored bool, end record) (done bool, err error) {
	r.out.Restored = restored
	if !r.ends {
		return true, nil
	}
	end.Kind, end.ID, end.Restored = kindUndone, r.e.ID, restored
	return true, r.j.writeOrRemember(end)
}

// ended settles changes that have ended before, also by a restart of the host.
func (r *restoration) ended(context.Context) (done bool, err error) {
	switch {
	case r.e.Phase == phaseDone:
		return true, nil
	case r.e.over(r.j.options.BootID):
		return r.settle(false, record{Note: noteRestarted})
	}
	return false, nil
}

// underneath settles a change with another one on top, which inherits the old value. Writing From
// now would change the value under that change, which would then look like the work of another
// program.
func (r *restoration) underneath(context.Context) (done bool, err error) {
	j, e := r.j, r.e
	top := j.history.above(e)
	for ; top != nil && top.over(j.options.BootID); top = j.history.above(e) {
		if err := j.writeOrRemember(record{Kind: kindUndone, ID: top.ID, Note: noteRestarted}); err != nil {
			return true, err
		}
	}
	switch {
	case top == nil:
		return false, nil
	case top.Phase != phaseApplied || e.Phase != phaseApplied:
		return true, fmt.Errorf("change %s on top of it: %w", top.ID, ErrNeedsRecovery)
	}
	return r.settle(false, record{Heir: top.ID, Note: fmt.Sprintf("%s; change %s stands on top and now goes back to %s",
		r.why, top.ID, e.From)})
}

// elsewhere leaves a change of another network namespace alone, and settles it if the namespace is
// gone.
func (r *restoration) elsewhere(context.Context) (done bool, err error) {
	j, e := r.j, r.e
	r.found = j.options.Identify(e.Knob)
	if e.BootID != j.options.BootID {
		// Numbers of namespaces and interfaces mean nothing after a restart; the files identified
		// them by name as well.
		r.found = e.Identity
	}
	switch {
	case !e.Identity.elsewhere(r.found):
		return false, nil
	case !j.options.NamespaceGone(e.Identity.Namespace):
		return true, fmt.Errorf("%w (%s, here is %s)", ErrOtherNamespace, e.Identity.Namespace, r.found.Namespace)
	}
	note := "the network namespace is gone, and the setting with it"
	if e.Identity.Device != "" {
		// The kernel moves NICs back to the first namespace unchanged, and destroys all other
		// interfaces.
		note += ", unless it is that of a card: then look at it where the card is now"
	}
	return r.settle(false, record{Note: note})
}

// replaced finds the knob under the present name of its interface, and settles a change whose
// interface is gone while another one has its name.
func (r *restoration) replaced(context.Context) (done bool, err error) {
	j, e := r.j, r.e
	r.id = e.Knob
	if e.BootID == j.options.BootID {
		r.id = j.present(e)
	}
	if r.id != e.Knob {
		r.why += fmt.Sprintf("; its interface is called %s now", r.id.Interface())
		r.found = j.options.Identify(r.id)
	}
	back := e.Away != nil && e.Away.Address != "" && e.Away.Address == r.found.Address
	if !e.Identity.differs(r.found) || back {
		return false, nil
	}
	unseen, err := j.left(e)
	if err != nil {
		return true, err
	}
	return r.settle(false, record{Note: r.why + "; the interface is gone" + unseen +
		" and another one has its name: left alone"})
}

// gone reads the knob, and settles a change whose knob no longer exists. A driver was unloaded or
// an interface was removed; a device that comes back later has its own defaults.
func (r *restoration) gone(ctx context.Context) (done bool, err error) {
	r.present, err = r.j.read(ctx, r.id)
	if !errors.Is(err, fs.ErrNotExist) {
		return err != nil, err
	}
	unseen := ""
	if r.found.Device == "" {
		if unseen, err = r.j.left(r.e); err != nil {
			return true, err
		}
	}
	return r.settle(false, record{Note: r.why + "; the knob no longer exists" + unseen})
}

// restored settles a change whose knob holds the old value.
func (r *restoration) restored(ctx context.Context) (done bool, err error) {
	if !r.j.same(r.id, r.present, r.e.From) {
		return false, nil
	}
	// In force and yet holding From: another program restored it. In any other phase, an interrupted
	// step leaves this state.
	inSteps := r.id.Kind() == knob.KindQdisc || r.id.Kind() == knob.KindFirewall || r.id.InFile()
	if r.e.Phase == phaseApplied {
		r.why += "; the old value was there already"
		inSteps = false
	}
	// A queueing discipline goes back in two steps: it is created, then handed over to the kernel. So
	// do rules: they are put in front of others, which are then removed. The server of an option in a
	// file may be on its way to take it. Writing the same value again completes a write that was
	// interrupted between the steps. A module that is loaded again has its old parameter before its
	// interfaces have what they had, and a guard that dies in between leaves no record. All other
	// knobs consist of their value alone.
	beside := r.beside(ctx)
	if inSteps || knob.Reloads(r.id) {
		if err := r.j.options.Backend.Write(ctx, r.id, r.e.From); err != nil {
			return true, err
		}
	}
	note, besideErr := r.putBeside(ctx, beside)
	if besideErr != nil && r.e.Phase != phaseUndoing { // see written
		return true, errors.Join(besideErr, r.j.writeOrRemember(
			record{Kind: kindUndo, ID: r.e.ID, To: r.e.To, Note: r.why, Beside: beside}))
	}
	done, err = r.settle(true, record{Note: r.why + note + missing(besideErr)})
	return done, errors.Join(err, besideErr)
}

// foreign leaves a value alone that another program has set.
func (r *restoration) foreign(context.Context) (done bool, err error) {
	switch {
	case r.j.same(r.id, r.present, r.e.To):
		return false, nil
	case r.j.sure:
		// Another program's value, or a driver's rounding: a question for the journal, which keeps a
		// record of what it overwrites.
		return true, errNotSure
	case !r.j.rounded(r.e):
		r.out.Foreign = r.present
		return r.settle(false,
			record{Note: fmt.Sprintf("%s; changed by another program to %s and left alone", r.why, r.present)})
	}
	// Most likely the driver's rounding, perhaps a value that another program set in the last ten
	// seconds. It is about to be overwritten, so the history must contain it: To keeps it as well, but
	// users read the note.
	r.why += fmt.Sprintf("; it held %s, neither %s nor %s, and was treated as the driver's rounding of our write",
		r.present, r.e.From, r.e.To)
	return false, nil
}

// written restores the old value, and settles the change if the knob then holds it. No step comes
// after it.
func (r *restoration) written(ctx context.Context) (done bool, err error) {
	j, e := r.j, r.e
	// The intent to undo makes a later Recover finish it. If it cannot be recorded, the old value is
	// restored all the same: that is the safe side, and Recover finds it at the knob.
	var noteErr error
	beside, again := r.beside(ctx), e.Phase == phaseUndoing
	if !again {
		noteErr = j.writeOrRemember(record{Kind: kindUndo, ID: e.ID, To: r.present, Note: r.why, Beside: beside})
	}
	// No kernel has a compare-and-swap for a knob. Between the read above and this line lies one
	// fsync, milliseconds on a slow disk; a value that another program sets in that time is lost. The
	// package comment lists this under Limits.
	writeErr := j.options.Backend.Write(ctx, r.id, e.From)
	// Before the look at the knob: a coupled knob may be the only way back. The kernel refuses 0 for
	// vm.dirty_bytes, and sets it when vm.dirty_ratio is written.
	note, besideErr := r.putBeside(ctx, beside)
	after, err := j.read(ctx, r.id)
	if err != nil {
		return true, errors.Join(writeErr, err, noteErr)
	}
	switch {
	case j.same(r.id, after, e.From):
		// Even if the write reported an error.
	case writeErr != nil:
		return true, errors.Join(writeErr, noteErr)
	// The change stays open: the guard tries again, and users see that instead of a history that
	// reports the change as over.
	case after == r.present:
		return true, errors.Join(fmt.Errorf("put back %s: %w", e.From, ErrNoEffect), noteErr)
	default:
		altered := fmt.Sprintf("put back %s, the system made it %s", e.From, after)
		_, err := r.settle(false, record{Note: r.why + "; " + altered + note + missing(besideErr)})
		return true, errors.Join(errors.New(altered), noteErr, err, besideErr)
	}
	if besideErr != nil && !again {
		return true, errors.Join(besideErr, noteErr) // Open: a NIC that starts again is busy for a moment.
	}
	_, err = r.settle(true, record{Note: r.why + note + missing(besideErr)})
	if noteErr != nil {
		err = noteErr // The second error adds nothing.
	}
	return true, errors.Join(err, besideErr)
}

// missing is what the note says of coupled knobs that could not be put back.
func missing(err error) string {
	if err == nil {
		return ""
	}
	return "; " + strings.ReplaceAll(err.Error(), "\n", "; ")
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
