package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/report"
)

// storedRun is a tune that is stored on this host.
type storedRun struct {
	id  string
	doc *report.TuneDocument
}

// changes returns what the run committed at one end, or may have; nothing for a far end that undo
// has restored since. The journal of that end has the last word, see stillThere.
func (r storedRun) changes(side string) []journal.Change {
	if side == peer.FarSide && r.doc.FarUndone != nil {
		return nil
	}
	var at []journal.Change
	for _, c := range slices.Concat(r.doc.Changes, r.doc.Uncertain()) {
		if c.Side == side && c.State == journal.Committed {
			at = append(at, c)
		}
	}
	return at
}

// left names the changes at the far end that undo did not reach.
func (r storedRun) left(reason string) report.UndoLeft {
	return report.UndoLeft{Run: r.id, Target: r.doc.Target, Changes: r.changes(peer.FarSide), Reason: reason}
}

// runToUndo returns the run with a name.
func (a *app) runToUndo(name string) (storedRun, error) {
	store, _, err := a.runStore()
	if err != nil {
		return storedRun{}, err
	}
	id, err := store.Find(name)
	if err != nil {
		return storedRun{}, flagError{fmt.Errorf("undo: %w", err), "linerate report lists the runs"}
	}
	doc, err := store.Read(id)
	if err != nil {
		return storedRun{}, fmt.Errorf("undo: %w", err)
	}
	run, err := report.DecodeTune(doc)
	if err != nil {
		return storedRun{}, fmt.Errorf("undo run %s: %w", id, err)
	}
	return storedRun{id, run}, nil
}

// runsWithFarChanges returns the stored runs that committed changes at the far end which no undo
// has taken back, newest first. A run that cannot be read is named in a warning.
func (a *app) runsWithFarChanges() ([]storedRun, error) {
	store, _, err := a.runStore()
	if err != nil {
		return nil, err
	}
	ids, err := store.List()
	if err != nil {
		return nil, fmt.Errorf("undo: %w", err)
	}
	var runs []storedRun
	for _, id := range ids {
		run, err := a.runToUndo(id)
		if err != nil {
			a.warn("%s; what it changed at its far end is not known", oneSentence(err))
			continue
		}
		if len(run.changes(peer.FarSide)) > 0 {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// withFarChanges leaves out the runs that changed nothing at the far end, or no longer.
func withFarChanges(runs []storedRun) []storedRun {
	return slices.DeleteFunc(runs, func(r storedRun) bool { return len(r.changes(peer.FarSide)) == 0 })
}

// nearChanges returns the ids of what a run changed on this host and is still in force. The value
// is compared too, for a journal that was begun anew since.
func nearChanges(run storedRun, here []journal.Change) []string {
	return ids(stillThere(run.changes("near"), here))
}

// stillThere returns the changes of a journal that a run made and that are not undone.
func stillThere(made, history []journal.Change) []journal.Change {
	return slices.DeleteFunc(slices.Clone(history), func(c journal.Change) bool {
		return c.State == journal.Undone || !slices.ContainsFunc(made, func(m journal.Change) bool {
			return m.ID == c.ID && m.Knob == c.Knob && m.To == c.To
		})
	})
}

// undoFar takes back the changes of runs at their far ends, and returns what it could not reach.
func (a *app) undoFar(ctx context.Context, runs []storedRun, t targetFlags) ([]journal.Outcome, []report.UndoLeft) {
	if len(runs) == 0 {
		return nil, nil
	}
	p, err := a.newProgress()
	if err == nil {
		defer p.Done()
	}
	var outcomes []journal.Outcome
	var left []report.UndoLeft
	for len(runs) > 0 {
		target := runs[0].doc.Target
		at := slices.DeleteFunc(slices.Clone(runs), func(r storedRun) bool { return r.doc.Target != target })
		runs = slices.DeleteFunc(runs, func(r storedRun) bool { return r.doc.Target == target })
		if err == nil {
			done, l := a.undoAt(ctx, target, at, t, p)
			outcomes, left = append(outcomes, done...), append(left, l...)
			continue
		}
		left = append(left, notReached(at, err)...)
	}
	return outcomes, left
}

func notReached(runs []storedRun, err error) []report.UndoLeft {
	var left []report.UndoLeft
	for _, r := range runs {
		left = append(left, r.left(oneSentence(err)))
	}
	return left
}

// errNoKey and errTuningOff are reasons why a far end is not reached.
var (
	errNoKey     = errors.New("no key was given")
	errTuningOff = errors.New("its `linerate serve` runs without --allow-tuning")
)

// undoAt takes back the changes of runs at one target.
func (a *app) undoAt(ctx context.Context, target string, runs []storedRun, t targetFlags,
	p *progress.Line) ([]journal.Outcome, []report.UndoLeft) {
	if t.key.key == "" && !strings.HasPrefix(target, "ssh://") {
		return nil, notReached(runs, errNoKey)
	}
	restoring := knob.DisturbsHost // what a tune was allowed to write, undo may take back
	t.tuning = &restoring
	client, err := a.connect(ctx, target, t, p)
	if err != nil {
		return nil, notReached(runs, err)
	}
	defer client.Close()
	if !client.Info().AllowTuning {
		return nil, notReached(runs, errTuningOff)
	}
	// Undoing nothing makes the far host finish what a restart or a crash left, so that its history
	// shows what is in force now.
	err = client.Undo(ctx)
	var there []journal.Change
	if err == nil {
		there, err = client.History(ctx)
	}
	if err != nil {
		return nil, notReached(runs, err)
	}
	var outcomes []journal.Outcome
	var left []report.UndoLeft
	for _, r := range runs {
		done, err := undoThere(ctx, client, stillThere(r.changes(peer.FarSide), there))
		outcomes = append(outcomes, done...)
		if err == nil {
			err = a.markFarUndone(r)
		}
		if err != nil {
			left = append(left, r.left(oneSentence(err)))
		}
	}
	return outcomes, left
}

// undoThere undoes changes of the far host. The outcome of a change that could not be undone has
// the reason, and the error has it again.
func undoThere(ctx context.Context, client *peer.Client, changes []journal.Change) ([]journal.Outcome, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	return client.UndoOutcomes(ctx, ids(changes)...)
}

// markFarUndone records in a stored run that nothing of it is in force at its far end.
func (a *app) markFarUndone(r storedRun) error {
	store, _, err := a.runStore()
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	r.doc.FarUndone = &now
	doc, err := encoded(r.doc)
	if err == nil {
		err = store.Save(r.id, doc)
	}
	if err != nil {
		a.warn("undone at the far end, but not recorded: %v", err)
	}
	return nil
}
