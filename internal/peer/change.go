package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/wire"
)

// Read returns the current value of a knob of the far host.
func (c *Client) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	var a readAnswer
	err := c.call(ctx, msgRead, readCall{Knob: id}, &a, readBound)
	return a.Value, err
}

// Apply sets knobs of the far host as trials in its journal and returns their ids in order. A knob
// that already has its value gets no id. Either all changes take effect or none, as in package
// journal. Where the far host does not allow tuning, the error is ErrTuningOff, which is also an
// fs.ErrPermission.
func (c *Client) Apply(ctx context.Context, reason string, settings ...knob.Setting) ([]string, error) {
	// If the answer comes too late, the client does not know the ids of the changes. They are
	// trials, so the far lease or the end of the connection undoes them.
	var a applyAnswer
	err := c.call(ctx, msgApply, applyCall{Reason: reason, Run: c.options.Run, For: c.options.TrialFor,
		Settings: settings}, &a, changeBound)
	return a.IDs, err
}

// Undo undoes changes of the far host, newest first, and the far host verifies each by reading it
// back. Undo reports a value that another program changed as an error, and does not overwrite it.
func (c *Client) Undo(ctx context.Context, ids ...string) error {
	outcomes, err := c.UndoOutcomes(ctx, ids...)
	return errors.Join(err, c.outcomeError(outcomes))
}

// UndoOutcomes is Undo, and returns the outcome of each change.
func (c *Client) UndoOutcomes(ctx context.Context, ids ...string) ([]journal.Outcome, error) {
	var a undoAnswer
	err := c.call(ctx, msgUndo, changesCall{IDs: ids}, &a, changeBound)
	return a.Outcomes, err
}

// Commit makes trials of the far host permanent until they are undone there or that host restarts.
// It opens a new connection to confirm them, which shows that the changes do not lock everyone out
// who is not connected already. If it cannot, the far host undoes all trials of this client, and
// the error is ErrUnconfirmed.
func (c *Client) Commit(ctx context.Context, ids ...string) error {
	var a commitAnswer
	if err := c.call(ctx, msgCommit, changesCall{IDs: ids}, &a, changeBound); err != nil || a.Token == nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var met chan error
	// A refused connection can fail before the far side has heard of the confirmation. The call must
	// be there to be cancelled then: a commit that nothing confirms waits until its time is up.
	err := c.callThen(ctx, msgConfirm, nil, nil, changeBound, func() {
		met = make(chan error, 1)
		go func() {
			err := c.meet(ctx, *a.Token)
			met <- err
			if err != nil {
				cancel() // the far side waits in vain
			}
		}()
	})
	if err == nil {
		return nil // the far side has seen the connection, whatever happened to its end
	}
	cancel()
	if met == nil {
		return err
	}
	if failed := <-met; failed != nil && !errors.Is(failed, context.Canceled) {
		return fmt.Errorf("commit on %s: %w: %w", c.target, ErrUnconfirmed, failed)
	}
	return err
}

// meet opens the connection that confirms a commit.
func (c *Client) meet(ctx context.Context, token wire.Token) error {
	conn, err := wire.DialData(ctx, c.dataAddr, token, 0, wire.DataOptions{})
	if err != nil {
		return err
	}
	return exchange(ctx, conn)
}

// History returns the changes in the far host's journal, oldest first.
func (c *Client) History(ctx context.Context) ([]journal.Change, error) {
	var a historyAnswer
	err := c.call(ctx, msgHistory, nil, &a, readBound)
	return a.Changes, err
}

// outcomeError names the values that another program had changed. Values that could not be restored
// are in the far side's own error.
func (c *Client) outcomeError(outcomes []journal.Outcome) error {
	var errs []error
	for _, o := range outcomes {
		if o.Foreign != "" {
			errs = append(errs, fmt.Errorf("%s: undo %s: another program changed it to %q; left unchanged", c.info.Host,
				o.Change.Knob, o.Foreign))
		}
	}
	return errors.Join(errs...)
}
