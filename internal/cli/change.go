package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/rows"
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
		allow  string
		accept bool
	)
	c := &cobra.Command{
		Use:         "set KNOB=VALUE...",
		Annotations: exits(exitNotPermitted, exitLocked, exitInterrupted),
		Short:       "Change settings on trial: unconfirmed changes are undone",
		Long: `Change one or more settings of this host. set records every change in the journal first, and
reads it back. Each change is a trial: a guard process restores the old values when the time is
over, unless ` + "`linerate confirm`" + ` lets them stay. --yes confirms at once. On a remote host,
confirm over a new connection: an open one may survive a change that blocks every new one.

A change may disturb what runs: d0 nothing, d1 new connections, d2 a short loss (rings, MTU), d3 the
link goes down, d4 a module is loaded anew. --allow sets the highest class; linerate knobs NAME
shows that of a knob, and what its undo takes. Where the old value does not come back at once, set
says so before it changes anything. A change that takes down the link of your own ssh session
cannot be confirmed at once, and the driver of its card cannot be loaded anew.
A value that is known to stop the card is refused, with the reason; one that check-advice calls
harmful gets a warning.

Values are in the unit that ` + "`linerate knobs NAME`" + ` shows (bytes, microseconds, packets), without
a suffix. A value of several numbers is quoted, with blanks between them. A sysctl may be written
as sysctl(8) takes it, without the kind in front.`,
		Example: "  linerate set 'net.ipv4.tcp_rmem=4096 131072 33554432'\n" +
			"  linerate set --dry-run --allow d2 ethtool:eth0/ring.rx=4096\n" +
			"  linerate set --for 5m --allow d2 link:eth0/mtu=9000\n  linerate confirm",
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := parseSettings(args)
			if err != nil {
				return err
			}
			if trial <= 0 {
				return usagef("--for %v: must be longer than 0s", trial)
			}
			class, err := newClassCheck(allow, yes)
			if err == nil {
				err = class.check(settings)
			}
			if err != nil {
				return err
			}
			backend := hazard.Backend{Backend: live.New(), Accept: accept, Warn: func(h hazard.Hazard) {
				a.warn("%s", h)
			}}
			class.announce(settings, a.warn)
			a.warnUndo(cmd.Context(), backend, settings)
			if dryRun {
				err = a.dryRun(cmd.Context(), backend, settings)
			} else {
				err = a.set(cmd.Context(), backend, settings, trial, yes)
			}
			if err == nil {
				a.warnHarmful(settings)
			}
			return err
		},
	}
	c.Flags().DurationVar(&trial, "for", time.Minute, "how long the trial lasts unless confirmed")
	c.Flags().BoolVar(&yes, "yes", false, "confirm at once: the change stays until undo or reboot")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change; write nothing")
	c.Flags().StringVar(&allow, "allow", knob.DefaultClass.String(), "highest disturbance of a change: d0 to d4")
	c.Flags().BoolVar(&accept, "accept-hazard", false, "also write a value that is known to stop a card")
	return c
}

// set changes settings on trial, or for good at once.
func (a *app) set(ctx context.Context, backend hazard.Backend, settings []knob.Setting, trial time.Duration,
	yes bool) error {
	j, err := a.openJournalWith(backend, journal.Deadline, "near")
	if err != nil {
		return err
	}
	defer j.Close()
	// The guard watches a deadline and not a lease: this process ends at once, and the trial has to
	// outlive it.
	changes, err := j.Apply(ctx, journal.Request{Reason: "linerate set", For: trial}, settings...)
	if err != nil {
		return err
	}
	if yes {
		changes = append(changes, onTrialAlready(settings, changes, j.Changes())...)
	}
	if yes && len(changes) > 0 {
		if err := j.Commit(ctx, ids(changes)...); err != nil {
			return err
		}
		changes = byID(j.Changes(), ids(changes))
	}
	doc := report.NewHistory(a.envelope(""), changes)
	for _, s := range settings {
		if !slices.ContainsFunc(changes, func(c journal.Change) bool { return c.Knob == s.Knob }) {
			doc.Unchanged = append(doc.Unchanged, unchanged(s, j.Changes()))
		}
	}
	return a.print(doc, func(s text.Style) error { return text.Set(a.out, doc, s) })
}

// onTrialAlready returns the trials that hold settings which made no change: --yes says that these
// values stay, and without it they would go back at their deadline.
func onTrialAlready(settings []knob.Setting, made, history []journal.Change) (all []journal.Change) {
	for _, s := range settings {
		if slices.ContainsFunc(made, func(c journal.Change) bool { return c.Knob == s.Knob }) {
			continue
		}
		for _, c := range slices.Backward(history) {
			if c.Knob == s.Knob && c.State != journal.Undone {
				if c.State == journal.Trial && c.To == s.Value {
					all = append(all, c)
				}
				break
			}
		}
	}
	return all
}

// unchanged returns a setting that the host held already, with the trial that will end it.
func unchanged(s knob.Setting, history []journal.Change) report.Unchanged {
	u := report.Unchanged{Setting: s}
	for _, c := range history {
		if c.Knob == s.Knob && c.State == journal.Trial {
			u.Trial, u.Deadline = c.ID, c.Deadline
		}
	}
	return u
}

// warnHarmful prints what check-advice says about settings that make things worse on this system.
// The user may have a reason, so set does not refuse them.
func (a *app) warnHarmful(settings []knob.Setting) {
	own := ownSystem()
	target, _, err := adviceTarget(own, "")
	if err != nil || own == "" {
		return // a release that is not understood, or a system without advice: nothing is known
	}
	for _, text := range harmful(target, settings) {
		a.warn("%s", text)
	}
}

// harmful returns a sentence for each setting that makes things worse on the system of the target.
func harmful(target advice.Target, settings []knob.Setting) (texts []string) {
	for _, s := range settings {
		asked := advice.Setting{OS: target.OS, Knob: string(s.Knob), Value: string(s.Value)}
		for _, j := range target.Judge(advice.Advice{Settings: []advice.Setting{asked}}) {
			if j.Verdict == advice.Harmful {
				texts = append(texts, fmt.Sprintf("%s=%s is harmful on this kernel: %s (%s)", s.Knob, s.Value,
					strings.TrimSuffix(j.Why, "."), j.Source))
			}
		}
	}
	return texts
}

// warnUndo prints, before anything is touched, for each setting whose undo is not a plain write
// what the undo takes. Where a knob cannot be read nothing will be set, and the refusal alone is
// shown.
func (a *app) warnUndo(ctx context.Context, backend knob.Backend, settings []knob.Setting) {
	var texts []string
	for _, s := range settings {
		if _, err := backend.Read(ctx, s.Knob); err != nil {
			return
		}
		if d, ok := knob.Catalogue().Lookup(s.Knob); ok && d.Undo != knob.UndoNow {
			texts = append(texts, fmt.Sprintf("undo of %s: %s", s.Knob, d.Undo.Says()))
		}
	}
	for _, text := range texts {
		a.warn("%s", text)
	}
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
		name, value = strings.TrimSpace(name), strings.TrimSpace(value) // a line of sysctl.conf
		id, err := knob.Catalogue().ParseTyped(name)
		if err != nil {
			return nil, usageError{flagError{err, nearest(name)}}
		}
		v, err := normalize(id, knob.Value(value))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(settings, func(s knob.Setting) bool { return s.Knob == id }) {
			return nil, usagef("set %s: given twice", id)
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
	if id.Kind() == knob.KindFirewall {
		return v, nil // the digest of rules, which firewall optimise has made
	}
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
func (a *app) dryRun(ctx context.Context, system hazard.Backend, settings []knob.Setting) error {
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
		Use:         "confirm [ID...]",
		Annotations: exits(exitNotPermitted, exitLocked, exitInterrupted),
		Short:       "Let trial changes stay: all of them, or those named",
		Long: `Let changes that are on trial stay until undo or a restart of the host: all of them, or those named
by the IDs of linerate history. linerate persist makes them survive a restart. Over a connection
that the change may cut, confirm from a new one: that it opens shows that the host is reachable.`,
		Example: "  linerate confirm\n  linerate confirm 0007",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.mindRoot("confirm"); err != nil {
				return err
			}
			none := a.noJournal()
			if none != "" && len(args) > 0 {
				return allKnown("confirm", args, nil)
			} else if none != "" {
				return nothingOnTrial(none)
			}
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
					return nothingOnTrial("")
				}
			}
			if err := j.Commit(cmd.Context(), args...); err != nil {
				if errors.Is(err, journal.ErrUnknownChange) { // the journal calls it a commit
					err = unknownChange(fmt.Errorf("confirm: %w", errors.Unwrap(err)))
				}
				if errors.Is(err, journal.ErrNotTrial) {
					_, what, _ := strings.Cut(err.Error(), " ")
					err = flagError{fmt.Errorf("confirm %s", what), "linerate history shows what became of it"}
				}
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

// nothingOnTrial is not a success: the user believes that a change is on trial, and it may have
// been undone a second ago.
func nothingOnTrial(why string) error {
	return statusError{status: exitFailed, message: "confirm: no change is on trial" + why,
		hint: "linerate history shows every change and its state"}
}

// historyCommand shows the journal. The document has every change; the text has one row for the
// trials of a tune that are over.
func (a *app) historyCommand() *cobra.Command {
	var (
		run, only string
		since     string
		all       bool
	)
	c := &cobra.Command{
		Use:         "history",
		Annotations: exits(exitNotPermitted),
		Short:       "Show every change that linerate made to this host, and its state",
		Long: `Show every change that linerate made to this host, oldest first, and its state: on trial,
committed, persisted or undone. A tune tries many changes. Those that it took back share one row;
--run shows the changes of one tune, and --all every one. --json has all of them.

--since and --knob choose changes: those since a moment (2026-11-20, 2026-11-20T12:00 in local time,
or a time ago such as 90m, 36h or 7d), and those of knobs whose name matches a pattern.`,
		Example: "  linerate history\n  linerate history --run last\n" +
			"  linerate history --since 7d --knob 'sysctl:net.ipv4.*'\n  linerate history --format csv",
		RunE: func(*cobra.Command, []string) error {
			if all && run != "" {
				return usagef("--run and --all: give one of them")
			}
			chosen, err := newChoice(since, only, time.Now())
			if err != nil {
				return err
			}
			if err := a.mindRoot("history"); err != nil {
				return err
			}
			dir, err := a.stateDir()
			if err != nil {
				return err
			}
			a.printNotices(dir)
			for _, pid := range journal.Strays(durable.OS(), dir) {
				a.warn("the journal in %s is gone, and its guard (process %d) still watches changes: linerate recover "+
					"takes them back", dir, pid)
			}
			changes, err := a.history()
			if err == nil && run != "" {
				changes, err = changesOfRun(changes, run)
			}
			if err != nil {
				return err
			}
			changes = chosen.of(changes)
			if all || run != "" {
				return a.printHistory(changes)
			}
			doc := report.NewHistory(a.envelope(""), changes)
			return a.printTable(doc, func() rows.Table { return rows.History(doc) },
				func(s text.Style) error { return text.FoldedHistory(a.out, doc, s) })
		},
	}
	c.Flags().StringVar(&run, "run", "", "show what one tune changed: its `RUN`, the beginning of one, or last")
	c.Flags().StringVar(&since, "since", "", "only changes since this `TIME`, a date or a time ago such as 36h or 7d")
	c.Flags().StringVar(&only, "knob", "", "only changes of knobs that match this `PATTERN`, as in 'sysctl:*rmem*'")
	c.Flags().BoolVar(&all, "all", false, "show each trial of every tune")
	return a.forScripts(c, true)
}

// choice says which changes of the history are shown.
type choice struct {
	since time.Time // the zero value: all
	knob  string    // a pattern, or a part of the name; empty: all
}

// newChoice reads the flags. A moment without a zone is in local time.
func newChoice(since, only string, now time.Time) (choice, error) {
	c := choice{knob: only}
	if _, err := path.Match(only, ""); err != nil {
		return c, usagef("--knob %s: not a pattern: %w", only, err)
	}
	if since == "" {
		return c, nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
		time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(form, since, now.Location()); err == nil {
			c.since = at
			return c, nil
		}
	}
	ago, err := unit.ParseSeconds(strings.TrimSuffix(since, "d"))
	if err == nil && strings.HasSuffix(since, "d") {
		ago *= 24 * 3600
	}
	if err != nil || ago < 0 || ago > 100*365*24*3600 {
		return c, usagef("--since %s: write a date, as in 2026-11-20 or 2026-11-20T12:00, or a time ago, as in 36h or 7d",
			since)
	}
	c.since = now.Add(-time.Duration(ago * float64(time.Second)))
	return c, nil
}

// of returns the chosen changes.
func (c choice) of(changes []journal.Change) []journal.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(one journal.Change) bool {
		return one.Time.Before(c.since) || !one.Knob.FitsTyped(c.knob)
	})
}

// changesOfRun returns the changes of one tune. The journal and not the store of runs has the
// names: the run of a tune from another host is stored there.
func changesOfRun(changes []journal.Change, run string) ([]journal.Change, error) {
	var names []string
	for _, c := range changes {
		switch {
		case c.Run == "" || slices.Contains(names, c.Run):
		case run == "last" && (len(names) == 0 || c.Run > names[0]):
			names = []string{c.Run} // a name begins with its time
		case run != "last" && strings.HasPrefix(c.Run, run):
			names = append(names, c.Run)
		}
	}
	switch {
	case len(names) == 0:
		return nil, flagError{fmt.Errorf("history --run %s: no change belongs to this run", run),
			"linerate history names the runs; linerate report lists what is stored"}
	case len(names) > 1:
		return nil, usagef("history --run %s: %s begin so", run, and(names))
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c journal.Change) bool { return c.Run != names[0] }), nil
}

func (a *app) printHistory(changes []journal.Change) error {
	doc := report.NewHistory(a.envelope(""), changes)
	return a.printTable(doc, func() rows.Table { return rows.History(doc) },
		func(s text.Style) error { return text.History(a.out, doc, s) })
}

// finishUndo prints what was restored, and what was not reached, before it returns the error: the
// user who repairs the rest needs both.
func (a *app) finishUndo(none string, outcomes []journal.Outcome, left []report.UndoLeft, err error) error {
	if err != nil && len(outcomes)+len(left) == 0 {
		return err
	}
	if printErr := a.printOutcomes(none, outcomes, left...); err == nil {
		err = printErr
	}
	return err
}

// printOutcomes prints what was restored. The exit status is 3 when undo had to leave something
// alone, could not restore it or did not reach it; the document is printed before, for scripts that
// stop on a status.
func (a *app) printOutcomes(none string, outcomes []journal.Outcome, left ...report.UndoLeft) error {
	doc := report.NewUndo(a.envelope(""), outcomes, left...)
	err := a.print(doc, func(s text.Style) error {
		if len(outcomes)+len(left) == 0 {
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
	if len(left) > 0 {
		return statusError{status: exitPartial}
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
			if sameID(id, c.ID) {
				found = append(found, c)
			}
		}
	}
	return found
}
