package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/firewall/apply"
)

// openJournal opens this host's journal: live knobs, values compared in canonical form, trials
// watched by a guard process of this program.
//
// The lock is exclusive. A second process reports the process id of the holder and ends with status
// 11.
func (a *app) openJournal(mode journal.Mode, side string) (*journal.Journal, error) {
	return a.openJournalWith(hazard.Backend{Backend: live.New()}, mode, side)
}

// storagePatience is how long a command waits for the storage of its journal. A slow disk that
// answers is no reason to give up.
const storagePatience = 20 * time.Second

// openJournalWith is openJournal over another backend.
func (a *app) openJournalWith(backend knob.Backend, mode journal.Mode, side string) (*journal.Journal, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	a.printNotices(dir)
	options := journalOptions(dir, backend, mode, side)
	options.Patience = storagePatience
	j, err := journal.Open(options)
	if err == nil {
		a.printNotices(dir) // of a guard whose journal was gone, and that Open has ended
	}
	return j, err
}

// printNotices prints what a guard has undone since the last command, when no user may have been
// there to see it. With --json the notices are kept for the next user: a program finds the same in
// the notes of the history.
func (a *app) printNotices(dir string) {
	if a.json {
		return
	}
	for _, line := range journal.TakeNotices(durable.OS(), dir) {
		fmt.Fprintln(a.err, "linerate:", line)
	}
}

func journalOptions(dir string, backend knob.Backend, mode journal.Mode, side string) journal.Options {
	host := apply.Host{Backend: knob.Catalogued{Backend: backend}, Tables: &apply.Tables{Dir: ruleDir(dir)}}
	return journal.Options{
		Dir: dir, Backend: host, Mode: mode, Side: side,
		Normalize: normalize, Guard: &journal.GuardOptions{},
	}
}

// ruleDir is where the rules of changed tables are kept.
func ruleDir(state string) string { return filepath.Join(state, "firewall") }

// history reads the journal without its lock, so that it works while a tune runs.
func (a *app) history() ([]journal.Change, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return journal.History(durable.OS(), dir)
}

// guardCommand is the process that watches trials from outside their writer; journal.StartGuard
// starts it. It is a process and not a thread, because a thread dies with the writer that it has to
// watch.
func (a *app) guardCommand() *cobra.Command {
	var (
		mode, session string
		deadline      time.Duration
		second        bool
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
			if second {
				return journal.SecondLine(cmd.Context(), journalOptions(dir, live.New(), journal.Deadline, ""), session)
			}
			return journal.RunGuard(cmd.Context(), journal.GuardConfig{
				Journal: journalOptions(dir, live.New(), journal.Mode(mode), ""),
				Mode:    journal.Mode(mode), Session: session, For: deadline,
			})
		},
	}
	c.Flags().StringVar(&mode, "mode", string(journal.Lease), "lease or deadline")
	c.Flags().BoolVar(&second, "second", false, "recover once, in place of a guard that was killed (started by systemd)")
	c.Flags().StringVar(&session, "session", "", "the open journal to watch")
	c.Flags().DurationVar(&deadline, "deadline", 0, "when to end the trials; 0: when the writer ends")
	return c
}
