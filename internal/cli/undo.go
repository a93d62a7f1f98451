package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/journal"
)

// Without arguments it takes back one change, the newest, as undo does in an editor: typed once too
// often it does no harm that --all would do.
//
// It asks nothing, since what it does is put back what was there before. --yes is taken all the
// same: scripts give it to every command that changes something (design §4, the same word
// everywhere), and must not fail where the host is to be repaired.
func (a *app) undoCommand() *cobra.Command {
	var all, dryRun bool
	c := &cobra.Command{
		Use:   "undo [ID...]",
		Short: "Take changes back: the newest, those named, or --all",
		Long: `Put old values back, newest change first, each verified by reading it back. A setting that
somebody else has changed meanwhile is left alone and reported. Files of linerate persist are taken
out first, in a later boot too; one that somebody has edited stays. IDs are those of linerate history.`,
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
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would go back; write nothing")
	c.Flags().Bool("yes", false, "taken for scripts: undo asks nothing")
	return c
}

// dryUndo shows what undo would put back, in its order. It reads the journal as history does,
// without its lock: looking must be possible while a tune holds it. Whether somebody else has
// changed a value meanwhile is found when it is put back.
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

// unknownChange tells where the ids are, to who typed one that there is not.
func unknownChange(err error) error {
	if errors.Is(err, journal.ErrUnknownChange) {
		return flagError{err, "linerate history lists the changes and their ids"}
	}
	return err
}

// newestInForce finds the last change whose value is still ours to take back.
//
// Committed changes count too: confirm makes a change stay, not become irreversible.
func newestInForce(changes []journal.Change) (string, bool) {
	for i := len(changes) - 1; i >= 0; i-- {
		if changes[i].State != journal.Undone {
			return changes[i].ID, true
		}
	}
	return "", false
}
