package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/wire"
)

// undoFlags are the flags of undo.
type undoFlags struct {
	all, dryRun, here bool
	run               string
	target            targetFlags
}

// undoCommand takes changes back. Without arguments it undoes the newest change only, as in an
// editor: typing it once too often does little harm.
//
// It does not ask, because it only restores what was there before. It accepts --yes nevertheless:
// scripts pass that flag to every command that changes something, and must not fail on a host that
// has to be repaired.
func (a *app) undoCommand() *cobra.Command {
	var f undoFlags
	c := &cobra.Command{
		Use:         "undo [ID...]",
		Annotations: exits(exitPartial, exitNotPermitted, exitLocked, exitInterrupted),
		Short:       "Take changes back: the newest, those named, those of a tune, or --all",
		Long: `Restore old values, newest change first, and read each one back. undo reports a setting that
another program has changed since, and does not overwrite it. It first removes the files of
linerate persist, also in a later boot; a file that was edited stays. The IDs are those of
linerate history.

--run takes back what a tune left in force, at both ends: RUN is a name that linerate report lists,
or last. The far end is reached as the tune reached it, with the key of its linerate serve
--allow-tuning or over ssh. --all does the same for every stored tune, after everything on this
host; --here leaves the far ends out. A far end that is not reached is named, with its changes, and
the exit status is 3.`,
		Example: "  linerate undo\n  linerate undo 0007\n  linerate undo --all --dry-run\n  linerate undo --all\n" +
			"  linerate undo --run last --key-file FILE",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args); err != nil {
				return err
			}
			if err := a.mindRoot("undo"); err != nil {
				return err
			}
			if f.dryRun {
				return a.dryUndo(f, args)
			}
			return a.undo(cmd.Context(), f, args)
		},
	}
	c.Flags().BoolVar(&f.all, "all", false, "take back every change that is still in force, at the far ends of tunes too")
	c.Flags().StringVar(&f.run, "run", "", "take back what a stored tune left in force at both ends: its `RUN`, or last")
	c.Flags().BoolVar(&f.here, "here", false, "with --all or --run: only on this host")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what undo would restore; write nothing")
	c.Flags().Bool("yes", false, "accepted for scripts: undo never asks")
	f.target.add(c)
	return c
}

// check refuses flags that contradict each other before anything is read.
func (f undoFlags) check(ids []string) error {
	chosen := 0
	for _, one := range []bool{f.all, f.run != "", len(ids) > 0} {
		if one {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return usagef("undo: give only one of ids, --run and --all")
	case f.here && !f.bothEnds():
		return usagef("--here: needs --all or --run; without them undo stays on this host")
	}
	return nil
}

// bothEnds reports whether changes at the far ends of tunes are asked for.
func (f undoFlags) bothEnds() bool { return f.all || f.run != "" }

// undo takes changes back, here first: this host needs no other one for that.
func (a *app) undo(ctx context.Context, f undoFlags, args []string) error {
	runs, err := a.runsOf(f)
	if err != nil {
		return err
	}
	// Before anything is undone, because a mistake with the key is a mistake in the command line.
	f.target.key.key, err = a.key(f.target.key)
	if f.target.key.file = ""; err == nil && f.target.key.key != "" {
		_, err = wire.ParseKey(f.target.key.key)
	}
	if err != nil {
		return err
	}
	none := a.noJournal()
	var outcomes []journal.Outcome
	if none == "" {
		outcomes, err = a.undoNear(ctx, f, runs, args)
	} else if len(args) > 0 {
		err = allKnown("undo", args, nil)
	}
	var left []report.UndoLeft
	switch {
	case f.here:
	case f.bothEnds():
		var there []journal.Outcome
		there, left = a.undoFar(ctx, withFarChanges(runs), f.target)
		outcomes = append(outcomes, there...)
	case len(args) == 0 && len(outcomes) == 0 && err == nil:
		// The newest change may be at the far end of a tune, so "nothing to undo" would be wrong.
		for _, r := range runs {
			left = append(left, r.left("undo without --run or --all stays on this host"))
		}
	}
	return a.finishUndo("nothing to undo"+none, outcomes, left, unknownChange(err))
}

// runsOf returns the stored tunes that an undo is about.
func (a *app) runsOf(f undoFlags) ([]storedRun, error) {
	if f.run == "" {
		return a.runsWithFarChanges()
	}
	run, err := a.runToUndo(f.run)
	return []storedRun{run}, err
}

// undoNear takes back changes of this host.
func (a *app) undoNear(ctx context.Context, f undoFlags, runs []storedRun, args []string) ([]journal.Outcome, error) {
	j, err := a.openJournal(journal.Deadline, "near")
	if err != nil {
		return nil, err
	}
	defer j.Close()
	switch {
	case f.all:
		return j.UndoAll(ctx)
	case f.run != "":
		args = nearChanges(runs[0], j.Changes())
	case len(args) == 0:
		if newest, ok := newestInForce(j.Changes()); ok {
			args = []string{newest}
		}
	}
	if len(args) == 0 {
		return nil, nil
	}
	return j.Undo(ctx, args...)
}

// dryUndo prints what undo would restore, in its order. It reads the journal without its lock, as
// history does, because a tune may hold the lock. Only the real undo finds values that another
// program has changed, and what is in force at a far end.
func (a *app) dryUndo(f undoFlags, ids []string) error {
	changes, err := a.history()
	if err != nil {
		return err
	}
	if err := allKnown("undo", ids, changes); err != nil {
		return err
	}
	var runs []storedRun
	if f.bothEnds() {
		if runs, err = a.runsOf(f); err != nil {
			return err
		}
	}
	if f.run != "" {
		ids = nearChanges(runs[0], changes)
	}
	var back []journal.Change
	for _, c := range slices.Backward(changes) {
		if c.State == journal.Undone || (len(ids) > 0 || f.run != "") && !named(ids, c) {
			continue
		}
		back = append(back, c)
		if !f.bothEnds() && len(ids) == 0 {
			break
		}
	}
	if !f.here {
		for _, r := range runs {
			back = append(back, r.changes(peer.FarSide)...)
		}
	}
	for i, c := range back {
		back[i].From, back[i].To, back[i].State, back[i].Time = c.To, c.From, "dry-run", time.Now()
	}
	return a.printHistory(back)
}

// unknownChange adds a hint to the error for an id that does not exist.
func unknownChange(err error) error {
	if errors.Is(err, journal.ErrUnknownChange) {
		return flagError{err, "linerate history lists the changes and their ids"}
	}
	return err
}

// newestInForce returns the id of the last change that is not undone. Committed changes count:
// confirm makes a change stay, but not irreversible.
func newestInForce(changes []journal.Change) (string, bool) {
	for i := len(changes) - 1; i >= 0; i-- {
		if changes[i].State != journal.Undone {
			return changes[i].ID, true
		}
	}
	return "", false
}
