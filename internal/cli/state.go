package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/shell"
	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/firewall/apply"
)

// openJournal opens this host's journal: live knobs, values compared in canonical form, trials
// watched by a guard process of this program.
//
// The lock is exclusive. A second process that does not get it soon reports the process id of the
// holder and ends with status 11.
func (a *app) openJournal(mode journal.Mode, side string) (*journal.Journal, error) {
	return a.openJournalWith(hazard.Backend{Backend: live.New()}, mode, side)
}

// storagePatience is how long a command waits for the storage of its journal. A slow disk that
// answers is no reason to give up.
const storagePatience = 20 * time.Second

// Who finds the journal locked tries again, lockTries times in all. A guard that takes a trial back
// has the lock for milliseconds, and a command that is typed at that moment should not fail. A
// holder that keeps it, as tune does for minutes, is reported after two seconds.
const (
	lockTries = 40
	lockPause = 50 * time.Millisecond
	// Where the storage is frozen too, each try takes a second to find that out.
	silentTries = 3
)

// openJournalWith is openJournal over another backend.
func (a *app) openJournalWith(backend knob.Backend, mode journal.Mode, side string) (*journal.Journal, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	options := journalOptions(dir, backend, mode, side)
	j, err := openSoon(options)
	a.printNotices(dir) // also of a guard whose journal was gone, and that Open has ended
	return j, err
}

// openSoon opens a journal as soon as its holder is done. An agent does not wait: it answers that
// it is busy, and the hub sends its order again.
func openSoon(options journal.Options) (*journal.Journal, error) {
	options.Patience = storagePatience
	j, err := journal.Open(options)
	for try := 1; try < lockTries && errors.Is(err, journal.ErrLocked); try++ {
		if try == silentTries && errors.Is(err, journal.ErrSilent) {
			break
		}
		time.Sleep(lockPause)
		j, err = journal.Open(options)
	}
	return j, err
}

// forbidden adds what to do next to an error of a state directory that this user may not use. One
// that is not trusted has a hint of its own, and sudo would not help there.
func (a *app) forbidden(err error) error {
	var at *fs.PathError
	if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &at) || hintOf(err) != "" || os.Geteuid() == 0 {
		return err
	}
	dir, noDir := a.stateDir()
	if noDir != nil {
		return err
	}
	// mkdir names the first directory on the way that is not there.
	if missing := at.Op == "mkdir" && inside(at.Path, dir); !missing && !inside(dir, at.Path) {
		return err
	}
	again := shell.Join(a.args)
	switch {
	case a.state != "":
	case a.env("LINERATE_STATE") != "":
		again = "--state " + shell.Quote(dir) + " " + again // sudo does not pass the variable on
	default:
		return flagError{err, "--state DIR names a directory of your own; to change the host: sudo linerate " + again}
	}
	return flagError{err, "if " + dir + " is root's: sudo linerate " + again}
}

// inside reports whether a path is a directory or below it.
func inside(dir, path string) bool {
	way, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(way)
}

// takeOverdue takes back what the guard of a trial should have taken back, before a command does
// anything else. Undo and recover do that themselves: what they find first is what they are about.
// Where this fails, the trial is still there, and its own commands report it.
func (a *app) takeOverdue(ctx context.Context, command string) {
	switch command {
	case "undo", "recover", "guard", "completion", "help", "version", "fleet":
		return
	}
	dir, err := a.stateDir()
	if err != nil {
		return
	}
	outcomes, err := overdue(ctx, dir)
	if err != nil {
		a.warn("%s", oneSentence(err))
	}
	if len(outcomes) > 0 {
		a.printNotices(dir)
	}
}

func overdue(ctx context.Context, dir string) ([]journal.Outcome, error) {
	options := journalOptions(dir, nil, journal.Deadline, "near")
	options.Patience = storagePatience
	return journal.TakeOverdue(ctx, options, func() knob.Backend {
		return journalOptions(dir, live.New(), journal.Deadline, "near").Backend
	})
}

// overdueStep is how often a server that may change its host looks for overdue trials: where no
// systemd runs, it is the only process that stays.
const overdueStep = 10 * time.Second

// watchOverdue takes back overdue trials until the context ends.
func (a *app) watchOverdue(ctx context.Context, log func(string)) error {
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	every := time.NewTicker(overdueStep)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		outcomes, err := overdue(ctx, dir)
		for _, o := range outcomes {
			log(fmt.Sprintf("change %s of %s: %s", o.Change.ID, o.Change.Knob, o.Change.Note))
		}
		if err != nil {
			log(oneSentence(err))
		}
	}
}

// printNotices prints what a guard has undone since the last command, when no user may have been
// there to see it. With --json the notices are kept for the next user: a program finds the same in
// the notes of the history.
func (a *app) printNotices(dir string) {
	// The notices are taken by a rename, and one on storage that hangs would not end.
	if a.json || !journal.HasNotices(durable.OS(), dir) || journal.AwaitStorage(journal.GuardOptions{}, dir) != nil {
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
		second, probe bool
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
			if probe {
				return journal.Probe(a.out, dir)
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
	c.Flags().BoolVar(&probe, "probe", false, "write once to the state directory (started by linerate itself)")
	c.Flags().StringVar(&session, "session", "", "the open journal to watch")
	c.Flags().DurationVar(&deadline, "deadline", 0, "when to end the trials; 0: when the writer ends")
	return c
}
