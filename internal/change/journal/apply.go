package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// Request is why settings are applied and for how long.
type Request struct {
	Reason string
	Run    string // name of the stored run that the changes belong to; empty: none
	// For is how long the trial lasts, on a clock that keeps running while the host is suspended.
	// In Deadline mode 0 means DefaultTrial. In Lease mode it is how long the writer may go without
	// another Apply or Extend before the guard ends it; 0 sets no limit.
	For time.Duration
}

// Apply writes settings as trials, in order, and returns the changes. It skips a knob that already
// holds its value. It applies all settings or none: when one fails, Apply restores the earlier ones
// and the error names the failure. errors.Is and errors.As find the errors of the backend.
//
// Before Apply writes the first knob, the guard process runs and has answered; each intent is on
// disk before its knob is written.
func (j *Journal) Apply(ctx context.Context, request Request, settings ...knob.Setting) ([]Change, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.ready(); err != nil {
		return nil, fmt.Errorf("apply: nothing changed: %w", err)
	}
	if j.options.Mode == Deadline && request.For <= 0 {
		request.For = DefaultTrial
	}
	// The order below is the promise of this package: refuse, then guard, then intent, then knob.
	// If the guard started after the first write, a kill -9 in between would leave a changed host
	// and no process that knows of it. Everything that can be refused without a write comes first.
	todo, err := j.plan(ctx, settings)
	if err != nil {
		return nil, err
	}
	if len(todo) == 0 {
		return nil, nil
	}
	j.lease = request.For
	if err := j.ensureGuard(ctx, request.For); err != nil {
		return nil, fmt.Errorf("apply %s: nothing changed: %w", todo[0].Knob, err)
	}
	var done []*entry
	for _, setting := range todo {
		e, err := j.applyOne(ctx, request, setting)
		if err == nil {
			if e != nil {
				done = append(done, e)
			}
			continue
		}
		// Newest first, because two settings of one request may depend on each other (a ring may be
		// only as large as the channels allow). The caller's context may be the cause of the
		// failure, so it does not stop this.
		for i := len(done) - 1; i >= 0; i-- {
			_, undoErr := j.takeBack(context.WithoutCancel(ctx), done[i], "another setting of the same request failed")
			err = errors.Join(err, undoErr)
		}
		return nil, err
	}
	changes := make([]Change, len(done))
	for i, e := range done {
		changes[i] = e.Change
	}
	return changes, nil
}

// plan checks settings and drops those already in force.
func (j *Journal) plan(ctx context.Context, settings []knob.Setting) ([]knob.Setting, error) {
	var todo []knob.Setting
	seen := map[knob.ID]bool{}
	for _, setting := range settings {
		if seen[setting.Knob] {
			return nil, fmt.Errorf("apply %s: nothing changed: given twice", setting.Knob)
		}
		seen[setting.Knob] = true
		value, err := j.options.Normalize(setting.Knob, setting.Value)
		if err != nil {
			return nil, fmt.Errorf("apply %s: nothing changed: %w", setting.Knob, err)
		}
		// A backend that can foresee a refusal is asked before the guard starts and before anything
		// is read: a setting of the whole host may not even be visible in a container
		// (net.core.rmem_max: absent in Linux 6.1, read-only in 6.18), and "belongs to the host" is
		// the better answer.
		if checker, ok := j.options.Backend.(knob.Checker); ok {
			if err := checker.CheckWrite(ctx, setting.Knob, value); err != nil {
				return nil, fmt.Errorf("apply %s: nothing changed: %w", setting.Knob, err)
			}
		}
		if err := j.displacement(setting.Knob); err != nil {
			return nil, fmt.Errorf("apply %s: nothing changed: %w", setting.Knob, err)
		}
		// Reading now, before any change, also shows that the knob exists and is readable: a value
		// that cannot be read cannot be restored.
		present, err := j.read(ctx, setting.Knob)
		if err != nil {
			return nil, fmt.Errorf("apply %s: nothing changed: %w", setting.Knob, err)
		}
		// An interrupted change of this knob leaves open which value is the old one. A new change
		// on top would record the tuned value as From.
		if e := j.history.unsettled(j.object(setting.Knob)); e != nil {
			return nil, fmt.Errorf("apply %s: nothing changed: change %s: %w", setting.Knob, e.ID, ErrNeedsRecovery)
		}
		if present != value {
			todo = append(todo, knob.Setting{Knob: setting.Knob, Value: value})
		}
	}
	return todo, nil
}

// displacement refuses a write that creates an interface anew on which a change is in force, and a
// change on an interface that the end of a trial creates anew: the journal knows an interface by
// its index, which such a write changes.
func (j *Journal) displacement(id knob.ID) error {
	displacer, ok := knob.As[knob.Displacer](j.options.Backend)
	if !ok {
		return nil
	}
	displaced := displacer.Displaces(id)
	for _, e := range j.history.entries {
		if e.Phase == phaseDone || e.BootID != j.options.BootID {
			continue
		}
		name := j.present(e).Interface()
		if name != "" && slices.Contains(displaced, name) {
			return fmt.Errorf("%w: it creates %s anew, where change %s (%s) is in force", ErrDisplaces, name, e.ID, e.Knob)
		}
		if name = id.Interface(); name != "" && e.State == Trial && slices.Contains(displacer.Displaces(e.Knob), name) {
			return fmt.Errorf("%w: the end of the trial %s (%s) creates %s anew", ErrDisplaces, e.ID, e.Knob, name)
		}
	}
	return nil
}

// applyOne changes one knob. It returns a nil entry when the knob has come to hold the value since
// plan.
func (j *Journal) applyOne(ctx context.Context, request Request, setting knob.Setting) (*entry, error) {
	id, to := setting.Knob, setting.Value
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("apply %s: nothing changed: %w", id, err)
	}
	// Read again: the guard may have taken a second to start, and From must be the value that the
	// next write replaces.
	from, err := j.read(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("apply %s: nothing changed: %w", id, err)
	}
	if from == to {
		return nil, nil
	}
	if err := j.carry(id); err != nil {
		return nil, fmt.Errorf("apply %s: nothing changed: %w", id, err)
	}
	intent := j.newEntry(request, id, from, to)
	intent.Beside = j.coupled(ctx, id)
	for _, b := range intent.Beside {
		if other := j.history.unsettled(j.object(b.Knob)); other != nil {
			return nil, fmt.Errorf("apply %s: nothing changed: change %s of %s, which this sets as well: %w",
				id, other.ID, other.Knob, ErrNeedsRecovery)
		}
	}
	err = j.write(record{Kind: kindIntent, Entry: intent})
	if err != nil && !errors.Is(err, ErrUnguarded) {
		return nil, fmt.Errorf("apply %s: nothing changed: %w", id, err)
	}
	// The intent is on disk and in the memory of the guard. If the process is killed from here on,
	// this intent and its From are the last record about the knob.
	e := j.history.entries[len(j.history.entries)-1]
	if err != nil {
		return nil, j.failed(e, err)
	}

	// From here to the end of the step, an interrupt would only make matters worse.
	ctx = context.WithoutCancel(ctx)
	// The read-back decides, not the error: drivers round, clamp, accept a value without effect,
	// and report failure after the write took effect.
	writeErr := j.options.Backend.Write(ctx, id, to)
	present, readErr := j.read(ctx, id)
	switch {
	// The content of the knob is unknown, so write the old value blindly: better the old value
	// twice than a new one without a record.
	case readErr != nil:
		return nil, j.abandon(ctx, e, errors.Join(writeErr, readErr))
	case writeErr != nil && present != from:
		// A driver may carry out half of a request and then fail.
		return nil, j.abandon(ctx, e, writeErr)
	case writeErr != nil:
		return nil, j.refused(ctx, e, writeErr)
	case present == from:
		return nil, j.refused(ctx, e, fmt.Errorf("%w: requested %s, still %s", ErrNoEffect, to, from))
	}
	note := ""
	if present != to {
		note = fmt.Sprintf("requested %s, the system set %s", to, present)
	}
	if err := j.write(record{Kind: kindApplied, ID: e.ID, To: present, Note: note,
		SideEffects: j.sideEffects(ctx, e)}); err != nil {
		// Undo by hand and a later Recover compare with To, which must be what the knob really held
		// even if the log could not record it.
		e.holds(present)
		return nil, j.abandon(ctx, e, err)
	}
	return e, nil
}

func (j *Journal) newEntry(request Request, id knob.ID, from, to knob.Value) *entry {
	// The deadline counts from the intent, not from the end of the write: a slow driver shortens
	// the trial and never lengthens it.
	now, this := j.options.Now().UTC(), j.object(id)
	e := &entry{
		Change: Change{
			ID: formatID(j.history.next), Time: now, Knob: id, Side: j.options.Side, From: from, To: to, Original: from,
			State: Trial, Reason: request.Reason, Run: request.Run, BootID: this.BootID,
		},
		Session: j.session, Lease: j.options.Mode == Lease, Began: j.options.Boottime(),
		Identity: this.Identity, Phase: phaseIntent,
	}
	if j.guard != nil {
		e.Guard = j.guard.is
	}
	// From may be a tuned value of a change below; Original never is.
	if first, ok := j.history.original(this); ok {
		e.Original = first
	}
	if !e.Lease {
		deadline := now.Add(request.For)
		e.Deadline, e.Expires = &deadline, e.Began+request.For
	}
	return e
}

// object returns the object that the name of a knob denotes here and now.
func (j *Journal) object(id knob.ID) object {
	return object{j.options.BootID, id, j.options.Identify(id)}
}

// failed records that a change never came into force.
func (j *Journal) failed(e *entry, cause error) error {
	err := fmt.Errorf("apply %s: nothing changed: %w", e.Knob, cause)
	note := "never in force: " + cause.Error()
	return errors.Join(err, j.writeOrRemember(record{Kind: kindFailed, ID: e.ID, Note: note}))
}

// refused records that the system did not accept a value. A driver that has started its NIC again
// for the attempt may have set other knobs all the same.
func (j *Journal) refused(ctx context.Context, e *entry, cause error) error {
	_, err := j.putBeside(ctx, e.Knob, e.Beside)
	return j.failed(e, errors.Join(cause, err))
}

// abandon restores the old value at once, because the change cannot be completed, and records that
// if it can.
func (j *Journal) abandon(ctx context.Context, e *entry, cause error) error {
	// This write does not compare first. It follows our own failed write within microseconds, or
	// within the time that one fsync takes to fail; a value that another program sets in that time
	// cannot be distinguished from what a driver made of half of our write.
	err := j.options.Backend.Write(ctx, e.Knob, e.From)
	_, besideErr := j.putBeside(ctx, e.Knob, e.Beside)
	err = errors.Join(err, besideErr)
	present, readErr := j.read(ctx, e.Knob)
	if readErr != nil || !j.same(e.Knob, present, e.From) {
		// The intent stays open: the guard and the next Recover try again.
		return fmt.Errorf("apply %s: %w; putting back %s did not work: %w", e.Knob, cause, e.From,
			errors.Join(err, readErr, fmt.Errorf("it holds %q", present)))
	}
	note := "put back at once: " + cause.Error()
	noteErr := j.writeOrRemember(record{Kind: kindFailed, ID: e.ID, Note: note})
	if errors.Is(cause, ErrUnwritable) {
		noteErr = nil // The cause already has this error.
	}
	return errors.Join(fmt.Errorf("apply %s: the old value %s was put back: %w", e.Knob, e.From, cause), noteErr,
		besideErr)
}
