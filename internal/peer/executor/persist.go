package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
)

// ErrNoFile reports a change that no file of this host can hold, or that another file would
// override at the next start.
var ErrNoFile = errors.New("no file of this host makes the change survive a restart")

// persist makes a kept change survive a restart. A change whose value another program has replaced
// is left as it is: its file would replace the value of that program at the next start.
func (e *Executor) persist(ctx context.Context, j *journal.Journal, o order.Order, c journal.Change) order.Answer {
	done := order.Answer{Order: o.ID, Code: order.Persisted, Change: c.ID, Value: c.To}
	switch {
	case c.State == journal.Persisted:
		return done
	case c.State == journal.Undone:
		return answer(o.ID, order.Reverted, fmt.Errorf("the change %s is over: %s", c.ID, c.Note))
	case c.State != journal.Committed:
		return answer(o.ID, order.NoTrial, fmt.Errorf("the change %s is a trial: a commit comes first", c.ID))
	case e.Files == nil:
		return answer(o.ID, order.NoFile, ErrNoFile)
	}
	value, err := e.Read(ctx, c.Knob)
	if err != nil {
		return answer(o.ID, order.Failed, err)
	}
	if d, _ := knob.Catalogue().Lookup(c.Knob); !d.Equal(value, c.To) {
		a := answer(o.ID, order.Foreign, fmt.Errorf("another program set %s to %q; its value is left alone", c.Knob, value))
		a.Value = value
		return a
	}
	files, err := e.Files(c)
	if err == nil {
		_, err = j.Persist(ctx, e.Root, journal.Plan{ID: c.ID, Files: files})
	}
	switch {
	case err == nil:
		return done
	case errors.Is(err, ErrNoFile), errors.Is(err, journal.ErrInTheWay):
		return answer(o.ID, order.NoFile, err)
	}
	return answer(o.ID, order.Failed, err)
}
