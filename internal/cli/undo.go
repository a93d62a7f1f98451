package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/journal"
)

// undoCommand takes changes back. Without arguments it undoes the newest change only, as in an
// editor: typing it once too often does little harm.
//
// It does not ask, because it only restores what was there before. It accepts --yes nevertheless:
// scripts pass that flag to every command that changes something, and must not fail on a host that
// has to be repaired.
func (a *app) undoCommand() *cobra.Command {
	var all, dryRun bool
	c := &cobra.Command{
		Use:   "undo [ID...]",
		Short: "Take changes back: the newest, those named, or --all",
		Long: `Restore old values, newest change first, and read each one back. undo reports a setting that
another program has changed since, and does not overwrite it. It first removes the files of
linerate persist, also in a later boot; a file that was edited stays. The IDs are those of
linerate history.`,
		Example: "  linerate undo\n  linerate undo 0007\n  linerate undo --all --dry-run\n  linerate undo --all",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return usagef("undo: give ids or --all, not both")
			}
			if dryRun {
				return a.dryUndo(all, args)
			}
			j, err := a.openJournal(journal.Deadline, "near")
			if err != nil {
				return err
			}
			defer j.Close()
			var outcomes []journal.Outcome
			switch {
			case all:
				outcomes, err = j.UndoAll(cmd.Context())
			case len(args) == 0:
				newest, ok := newestInForce(j.Changes())
				if !ok {
					return a.printOutcomes("nothing to undo", nil)
				}
				outcomes, err = j.Undo(cmd.Context(), newest)
			default:
				outcomes, err = j.Undo(cmd.Context(), args...)
			}
			return a.finishUndo("nothing to undo", outcomes, unknownChange(err))
		},
	}
	c.Flags().BoolVar(&all, "all", false, "take back every change that is still in force")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what undo would restore; write nothing")
	c.Flags().Bool("yes", false, "accepted for scripts: undo never asks")
	return c
}

// dryUndo prints what undo would restore, in its order. It reads the journal without its lock, as
// history does, because a tune may hold the lock. Only the real undo finds values that another
// program has changed.
func (a *app) dryUndo(all bool, ids []string) error {
	changes, err := a.history()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(changes, func(c journal.Change) bool { return c.ID == id }) {
			return unknownChange(fmt.Errorf("undo: change %q: %w", id, journal.ErrUnknownChange))
		}
	}
	var back []journal.Change
	for _, c := range slices.Backward(changes) {
		if c.State == journal.Undone || len(ids) > 0 && !slices.Contains(ids, c.ID) {
			continue
		}
		c.From, c.To, c.State, c.Time = c.To, c.From, "dry-run", time.Now()
		back = append(back, c)
		if !all && len(ids) == 0 {
			break
		}
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
