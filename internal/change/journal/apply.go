package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// Request says why settings are applied and for how long.
type Request struct {
	Reason string
	// For is how long the trial lasts, on a clock that goes on while the host is suspended. In
	// Deadline mode 0 means DefaultTrial. In Lease mode it is how long the writer may go on without
	// another Apply or Extend before the guard ends it; 0: no limit.
	For time.Duration
}

// Apply writes settings as trials, in order, and returns the changes made. A knob that holds its
// value already is left out. All or nothing: when one fails, those before it are put back and the
// error says what failed. Errors of the backend stay visible to errors.Is and errors.As.
//
// Before the first knob is touched the guard process runs and has answered, and each intent is on
// disk.
func (j *Journal) Apply(ctx context.Context, request Request, settings ...knob.Setting) ([]Change, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.ready(); err != nil {
		return nil, fmt.Errorf("apply: nothing changed: %w", err)
	}
	if j.options.Mode == Deadline && request.For <= 0 {
		request.For = DefaultTrial
	}
	// The order of what follows is the promise of this package: refuse, then guard, then intent,
	// then knob. A guard that is started after the first write would leave a moment in which kill
	// -9 leaves a changed host and nobody who knows. First everything that can be refused without
	// touching anything.
	todo, err := j.plan(ctx, settings)
	if err != nil {
		return nil, err
	}
	if len(todo) == 0 {
		return nil, nil
	}
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
		// Newest first, because two settings of one request may depend on each other (a ring that
		// is only as large as the channels allow). The caller's context may be what failed, so it
		// does not stop this.
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

// plan checks settings and leaves out those in force already.
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
		// A backend that can foresee a refusal is asked before the guard is started and before
		// anything is read: a setting of the whole host may not even be visible in a container
		// (net.core.rmem_max: absent in Linux 6.1, read-only in 6.18), and "belongs to the host" is
		// the better answer.
		if checker, ok := j.options.Backend.(knob.Checker); ok {
			if err := checker.CheckWrite(ctx, setting.Knob, value); err != nil {
				return nil, fmt.Errorf("apply %s: nothing changed: %w", setting.Knob, err)
			}
		}
		// Reading also shows now, while nothing is changed, that the knob is there and may be read:
		// what cannot be read cannot be put back.
		present, err := j.read(ctx, setting.Knob)
		if err != nil {
			return nil, fmt.Errorf("apply %s: nothing changed: %w", setting.Knob, err)
		}
		// An interrupted change of this knob leaves open which value is the old one. A new change
		// on top would record the tuned one as From.
		if e := j.history.unsettled(j.object(setting.Knob)); e != nil {
			return nil, fmt.Errorf("apply %s: nothing changed: change %s: %w", setting.Knob, e.ID, ErrNeedsRecovery)
		}
		if present != value {
			todo = append(todo, knob.Setting{Knob: setting.Knob, Value: value})
		}
	}
	return todo, nil
}

// applyOne changes one knob. The entry is nil when the knob came to hold the value since it was
// planned.
func (j *Journal) applyOne(ctx context.Context, request Request, setting knob.Setting) (*entry, error) {
	id, to := setting.Knob, setting.Value
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("apply %s: nothing changed: %w", id, err)
	}
	// Read anew: the guard may have taken a second to start, and From has to be the value that the
	// next write replaces.
	from, err := j.read(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("apply %s: nothing changed: %w", id, err)
	}
	if from == to {
		return nil, nil
	}
	if err := j.write(record{Kind: kindIntent, Entry: j.newEntry(request, id, from, to)}); err != nil {
		return nil, fmt.Errorf("apply %s: nothing changed: %w", id, err)
	}
	// The intent is on disk. A kill from here on leaves it as the last word on this knob, and From
	// with it.
	e := j.history.entries[len(j.history.entries)-1]

	// From here to the end of the step an interrupt would only make matters worse.
	ctx = context.WithoutCancel(ctx)
	// The read-back decides, not the error: drivers round, clamp, accept without doing anything,
	// and report failure after doing it.
	writeErr := j.options.Backend.Write(ctx, id, to)
	present, readErr := j.read(ctx, id)
	switch {
	// What the knob holds is not known, so the old value is written blindly: better the old value
	// twice than a new one that nobody noted.
	case readErr != nil:
		return nil, j.abandon(ctx, e, errors.Join(writeErr, readErr))
	case writeErr != nil && present != from:
		// A driver may do half of what it was asked and then fail.
		return nil, j.abandon(ctx, e, writeErr)
	case writeErr != nil:
		return nil, j.failed(e, writeErr)
	case present == from:
		return nil, j.failed(e, fmt.Errorf("%w: requested %s, still %s", ErrNoEffect, to, from))
	}
	note := ""
	if present != to {
		note = fmt.Sprintf("requested %s, the system set %s", to, present)
	}
	if err := j.write(record{Kind: kindApplied, ID: e.ID, To: present, Note: note}); err != nil {
		// Undo by hand and a later Recover compare with To, which has to be what the knob really
		// held even though the log could not take it.
		e.holds(present)
		return nil, j.abandon(ctx, e, err)
	}
	return e, nil
}

func (j *Journal) newEntry(request Request, id knob.ID, from, to knob.Value) *entry {
	// The deadline counts from the intent, not from the end of the write: a slow driver shortens
	// the trial, never lengthens it.
	now, this := j.options.Now().UTC(), j.object(id)
	e := &entry{
		Change: Change{
			ID: formatID(j.history.next), Time: now, Knob: id, Side: j.options.Side, From: from, To: to, Original: from,
			State: Trial, Reason: request.Reason, BootID: this.BootID,
		},
		Session: j.session, Lease: j.options.Mode == Lease, Began: j.options.Boottime(),
		Identity: this.Identity, Phase: phaseIntent,
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

// object returns what the name of a knob stands for here and now.
func (j *Journal) object(id knob.ID) object {
	return object{j.options.BootID, id, j.options.Identify(id)}
}

// failed notes that a change never came into force.
func (j *Journal) failed(e *entry, cause error) error {
	err := fmt.Errorf("apply %s: nothing changed: %w", e.Knob, cause)
	note := "never in force: " + cause.Error()
	return errors.Join(err, j.writeOrRemember(record{Kind: kindFailed, ID: e.ID, Note: note}))
}

// abandon puts the old value back at once, because the change cannot be finished, and notes it if
// it can.
func (j *Journal) abandon(ctx context.Context, e *entry, cause error) error {
	// This write compares nothing: it follows our own failed write within microseconds, or within
	// as long as one fsync takes to fail, and a value that somebody else could have set in that
	// time cannot be told from what a driver made half of ours.
	err := j.options.Backend.Write(ctx, e.Knob, e.From)
	present, readErr := j.read(ctx, e.Knob)
	if readErr != nil || !j.same(e.Knob, present, e.From) {
		// The intent stays open: the guard and the next Recover try again.
		return fmt.Errorf("apply %s: %w; putting back %s did not work: %w", e.Knob, cause, e.From,
			errors.Join(err, readErr, fmt.Errorf("it holds %q", present)))
	}
	note := "put back at once: " + cause.Error()
	noteErr := j.writeOrRemember(record{Kind: kindFailed, ID: e.ID, Note: note})
	if errors.Is(cause, ErrUnwritable) {
		noteErr = nil // That is the cause already.
	}
	return errors.Join(fmt.Errorf("apply %s: the old value %s was put back: %w", e.Knob, e.From, cause), noteErr)
}
