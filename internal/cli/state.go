package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// openJournal takes this host's journal: live knobs, values compared in canonical form, trials
// watched by a guard process that is this very program.
//
// The lock is exclusive; a second process is told the holder's process id and ends with status 11.
func (a *app) openJournal(mode journal.Mode, side string) (*journal.Journal, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	a.tellNotices(dir)
	return journal.Open(journalOptions(dir, mode, side))
}

// tellNotices tells what a guard has taken back since the last command: nobody may have been there
// to see it. A program that reads JSON finds the same in the notes of the history; the notices are
// kept for a person then.
func (a *app) tellNotices(dir string) {
	if a.json {
		return
	}
	for _, line := range journal.TakeNotices(durable.OS(), dir) {
		fmt.Fprintln(a.err, "linerate:", line)
	}
}

func journalOptions(dir string, mode journal.Mode, side string) journal.Options {
	return journal.Options{
		Dir: dir, Backend: live.New(), Mode: mode, Side: side,
		Normalize: normalize, Guard: &journal.GuardOptions{},
	}
}

// history reads the journal without taking it, so that it can be looked at while a tune runs.
func (a *app) history() ([]journal.Change, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return journal.History(durable.OS(), dir)
}

// guardCommand is the process that watches trials from outside their writer; journal.StartGuard
// types this command line.
//
// It is a command of the same binary and not a thread, because a thread dies with the process whose
// death it has to watch.
func (a *app) guardCommand() *cobra.Command {
	var (
		mode, session string
		deadline      time.Duration
	)
	c := &cobra.Command{
		Use:    "guard",
		Short:  "Watch trial changes and take them back (started by linerate itself)",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.stateDir()
			if err != nil {
				return err
			}
			return journal.RunGuard(cmd.Context(), journal.GuardConfig{
				Journal: journalOptions(dir, journal.Mode(mode), ""),
				Mode:    journal.Mode(mode), Session: session, For: deadline,
			})
		},
	}
	c.Flags().StringVar(&mode, "mode", string(journal.Lease), "lease or deadline")
	c.Flags().StringVar(&session, "session", "", "the open journal to watch")
	c.Flags().DurationVar(&deadline, "deadline", 0, "when to end the trials; 0: when the writer ends")
	return c
}
