package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// Near is this host as one end of an experiment: every change goes through its journal and is
// watched by its guard. Reads bypass the journal, because they change nothing and must see what
// other programs write.
type Near struct {
	Journal *journal.Journal
	Backend knob.Backend
	For     time.Duration // how long a trial may last before the guard reverts it
	Run     string        // name of the stored run, for the journal
}

// Read returns the present value of a knob.
func (n Near) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	return n.Backend.Read(ctx, id)
}

// Foresee returns, without writing, the error with which a setting would be refused, or nil. It
// cannot foresee refusals that only the kernel knows.
func (n Near) Foresee(ctx context.Context, s knob.Setting) error {
	if c, ok := n.Backend.(knob.Checker); ok {
		return c.CheckWrite(ctx, s.Knob, s.Value)
	}
	return nil
}

// Apply turns knobs as trial changes and returns their ids in the order applied. It returns ids
// beside an error as well: the caller must undo those changes.
func (n Near) Apply(ctx context.Context, reason string, settings ...knob.Setting) ([]string, error) {
	changes, err := n.Journal.Apply(ctx, journal.Request{Reason: reason, Run: n.Run, For: n.For}, settings...)
	ids := make([]string, 0, len(changes))
	for _, c := range changes {
		ids = append(ids, c.ID)
	}
	return ids, err
}

// Undo undoes changes, newest first. It leaves a value that another program changed meanwhile and
// returns an error: to an experiment that is a failure, because the host is not as it was, while to
// the journal it is a correct outcome.
func (n Near) Undo(ctx context.Context, ids ...string) error {
	outcomes, err := n.Journal.Undo(ctx, ids...)
	return errors.Join(err, outcomeError(outcomes))
}

// Commit makes trial changes stay.
func (n Near) Commit(ctx context.Context, ids ...string) error {
	return n.Journal.Commit(ctx, ids...)
}

// outcomeError returns which changes could not be undone, and why.
func outcomeError(outcomes []journal.Outcome) error {
	var errs []error
	for _, o := range outcomes {
		switch {
		case o.Error != "":
			errs = append(errs, fmt.Errorf("undo %s: %s", o.Change.Knob, o.Error))
		case o.Foreign != "":
			errs = append(errs, fmt.Errorf("undo %s: another program set it to %q meanwhile; left alone",
				o.Change.Knob, o.Foreign))
		}
	}
	return errors.Join(errs...)
}
