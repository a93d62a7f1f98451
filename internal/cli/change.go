package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// setCommand changes settings. A change is a trial by default, because the usual way to lose a
// remote host is a setting that cuts the connection it was typed over. A minute is long enough to
// notice and short enough to wait.
func (a *app) setCommand() *cobra.Command {
	var (
		trial  time.Duration
		yes    bool
		dryRun bool
	)
	c := &cobra.Command{
		Use:   "set KNOB=VALUE...",
		Short: "Change settings on trial: unconfirmed changes are undone",
		Long: `Change one or more settings of this host. set records every change in the journal first, and
reads it back. Each change is a trial: a guard process restores the old values when the time is
over, unless ` + "`linerate confirm`" + ` lets them stay. --yes confirms at once. On a remote host,
confirm over a new connection: an open one may survive a change that blocks every new one.

Values are in the unit that ` + "`linerate knobs NAME`" + ` shows (bytes, microseconds, packets), without
a suffix. A value of several numbers is quoted, with blanks between them.`,
		Example: "  linerate set 'sysctl:net.ipv4.tcp_rmem=4096 131072 33554432'\n" +
			"  linerate set --dry-run ethtool:eth0/ring.rx=4096\n" +
			"  linerate set --for 5m link:eth0/mtu=9000\n  linerate confirm",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := parseSettings(args)
			if err != nil {
				return err
			}
			if trial <= 0 {
				return usagef("--for %v: must be longer than 0s", trial)
			}
			if dryRun {
				return a.dryRun(cmd.Context(), settings)
			}
			j, err := a.openJournal(journal.Deadline, "near")
			if err != nil {
				return err
			}
			defer j.Close()
			// The guard watches a deadline and not a lease: this process ends at once, and the
			// trial has to outlive it.
			changes, err := j.Apply(cmd.Context(), journal.Request{Reason: "linerate set", For: trial}, settings...)
			if err != nil {
				return err
			}
			if yes {
				if err := j.Commit(cmd.Context(), ids(changes)...); err != nil {
					return err
				}
				changes = byID(j.Changes(), ids(changes))
			}
			return a.printHistory(changes)
		},
	}
	c.Flags().DurationVar(&trial, "for", time.Minute, "how long the trial lasts unless confirmed")
	c.Flags().BoolVar(&yes, "yes", false, "confirm at once: the change stays until undo or reboot")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change; write nothing")
	return c
}

// parseSettings reads KNOB=VALUE. The first '=' separates, because a value may contain one and a
// knob may not. All arguments are read before the first is applied, so that a mistake in the third
// does not leave two changes behind.
func parseSettings(args []string) ([]knob.Setting, error) {
	var settings []knob.Setting
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, usagef("%q: want KNOB=VALUE, like sysctl:net.ipv4.tcp_rmem='4096 131072 33554432'", arg)
		}
		id, err := knob.ParseID(name)
		if err != nil {
			return nil, usageError{flagError{err, nearest(name)}}
		}
		v, err := normalize(id, knob.Value(value))
		if err != nil {
			return nil, err
		}
		settings = append(settings, knob.Setting{Knob: id, Value: v})
	}
	return settings, nil
}

// normalize checks a value against the catalogue and returns its canonical form. It refuses a knob
// that the catalogue does not have, because the effect of changing it is not known.
//
// The journal uses it too (journalOptions), to compare what was written with what is read back.
func normalize(id knob.ID, v knob.Value) (knob.Value, error) {
	d, ok := knob.Catalogue().Lookup(id)
	if !ok {
		return "", flagError{&knob.Error{Op: "set", Knob: id, Err: knob.ErrUnknown}, nearest(string(id))}
	}
	normal, err := d.Normalize(v)
	if err != nil {
		return "", &knob.Error{Op: "set", Knob: id, Err: err}
	}
	return normal, nil
}

// dryRun prints what set would change. It does not open the journal: it writes nothing, and must
// work while a tune holds the lock.
func (a *app) dryRun(ctx context.Context, settings []knob.Setting) error {
	system := live.New()
	dry := knob.NewDryRun(system)
	var changes []journal.Change
	for _, s := range settings {
		from, err := system.Read(ctx, s.Knob)
		if err != nil {
			return err
		}
		if err := dry.Write(ctx, s.Knob, s.Value); err != nil {
			return err
		}
		to, err := dry.Read(ctx, s.Knob)
		if err != nil {
			return err
		}
		changes = append(changes, journal.Change{Time: time.Now(), Knob: s.Knob, Side: "near", From: from, To: to,
			State: "dry-run"})
	}
	return a.printHistory(changes)
}

func (a *app) confirmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm [ID...]",
		Short: "Let trial changes stay: all of them, or those named",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := a.openJournal(journal.Deadline, "near")
			if err != nil {
				return err
			}
			defer j.Close()
			if len(args) == 0 {
				for _, c := range j.Changes() {
					if c.State == journal.Trial {
						args = append(args, c.ID)
					}
				}
				if len(args) == 0 {
					// Not a success: the user believes that a change is on trial, and it may have
					// been undone a second ago.
					return statusError{status: exitFailed, message: "confirm: no change is on trial",
						hint: "linerate history shows what happened to it"}
				}
			}
			if err := j.Commit(cmd.Context(), args...); err != nil {
				if errors.Is(err, journal.ErrForeign) {
					err = flagError{err,
						"linerate undo ID ends that trial and keeps the other value; then confirm the rest"}
				}
				return err
			}
			return a.printHistory(byID(j.Changes(), args))
		},
	}
}

func (a *app) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history",
		Short: "Show every change that linerate made to this host, and its state",
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.stateDir()
			if err != nil {
				return err
			}
			a.printNotices(dir)
			changes, err := a.history()
			if err != nil {
				return err
			}
			return a.printHistory(changes)
		},
	}
}

func (a *app) printHistory(changes []journal.Change) error {
	doc := report.NewHistory(a.envelope(""), changes)
	return a.print(doc, func(s text.Style) error { return text.History(a.out, doc, s) })
}

// finishUndo prints what was restored before it returns the error: the user who repairs the rest
// needs both.
func (a *app) finishUndo(none string, outcomes []journal.Outcome, err error) error {
	if err != nil && len(outcomes) == 0 {
		return err
	}
	if printErr := a.printOutcomes(none, outcomes); err == nil {
		err = printErr
	}
	return err
}

// printOutcomes prints what was restored. The exit status is 3 when undo had to leave something
// alone or could not restore it; the document is printed before, for scripts that stop on a status.
func (a *app) printOutcomes(none string, outcomes []journal.Outcome) error {
	doc := report.NewUndo(a.envelope(""), outcomes)
	err := a.print(doc, func(s text.Style) error {
		if len(outcomes) == 0 {
			_, err := fmt.Fprintln(a.out, none)
			return err
		}
		return text.Undo(a.out, doc, s)
	})
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if !o.Restored && !o.Stays || len(o.FilesLeft) > 0 {
			return statusError{status: exitPartial}
		}
	}
	return nil
}

func ids(changes []journal.Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.ID)
	}
	return all
}

// byID returns the changes with the wanted ids, in the order of these.
func byID(changes []journal.Change, want []string) []journal.Change {
	var found []journal.Change
	for _, id := range want {
		for _, c := range changes {
			if c.ID == id {
				found = append(found, c)
			}
		}
	}
	return found
}
