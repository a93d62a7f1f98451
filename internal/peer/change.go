package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// Read gives the present value of a knob of the far host.
func (c *Client) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	var a readAnswer
	err := c.call(ctx, msgRead, readCall{Knob: id}, &a, readBound)
	return a.Value, err
}

// Apply turns knobs of the far host as trials in its journal and gives their ids in order; a knob
// that has its value already gets none. All or nothing, as in package journal. ErrTuningOff, an
// fs.ErrPermission, where that host does not let it be tuned.
func (c *Client) Apply(ctx context.Context, reason string, settings ...knob.Setting) ([]string, error) {
	// An answer that comes too late to be heard leaves changes whose ids nobody here knows. They
	// are trials, so the far lease or the end of the connection takes them back.
	var a applyAnswer
	err := c.call(ctx, msgApply, applyCall{Reason: reason, For: c.options.TrialFor, Settings: settings}, &a,
		changeBound)
	return a.IDs, err
}

// Undo takes changes of the far host back, newest first, verified there by reading back. A value
// that somebody else set meanwhile is left alone and told as an error.
func (c *Client) Undo(ctx context.Context, ids ...string) error {
	outcomes, err := c.UndoOutcomes(ctx, ids...)
	return errors.Join(err, c.outcomeError(outcomes))
}

// UndoOutcomes is Undo that tells what became of each change.
func (c *Client) UndoOutcomes(ctx context.Context, ids ...string) ([]journal.Outcome, error) {
	var a undoAnswer
	err := c.call(ctx, msgUndo, changesCall{IDs: ids}, &a, changeBound)
	return a.Outcomes, err
}

// Commit makes trials of the far host stay until they are undone there or that host restarts.
func (c *Client) Commit(ctx context.Context, ids ...string) error {
	return c.call(ctx, msgCommit, changesCall{IDs: ids}, nil, changeBound)
}

// History gives the changes in the far host's journal, oldest first.
func (c *Client) History(ctx context.Context) ([]journal.Change, error) {
	var a historyAnswer
	err := c.call(ctx, msgHistory, nil, &a, readBound)
	return a.Changes, err
}

// outcomeError tells which values somebody else had set; what could not be put back at all is in
// the far side's own error.
func (c *Client) outcomeError(outcomes []journal.Outcome) error {
	var errs []error
	for _, o := range outcomes {
		if o.Foreign != "" {
			errs = append(errs, fmt.Errorf("%s: undo %s: somebody else set it to %q meanwhile; left alone", c.info.Host,
				o.Change.Knob, o.Foreign))
		}
	}
	return errors.Join(errs...)
}
