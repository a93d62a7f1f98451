package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/change/persist"
	"github.com/linerate/linerate/internal/host/owner"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// persistOptions are the flags of persist.
type persistOptions struct {
	root                 string
	dryRun, check, force bool
}

// persistCommand writes configuration files for committed changes. It refuses trials: a trial has
// not shown that the host works with it, and a file would bring it back at every boot.
func (a *app) persistCommand() *cobra.Command {
	var o persistOptions
	c := &cobra.Command{
		Use:         "persist [ID...]",
		Annotations: exits(exitPartial, exitFinding, exitNotPermitted, exitLocked, exitInterrupted),
		Short:       "Make committed changes survive a reboot: all of them, or those named",
		Long: `Write committed changes into the configuration of this host, in the format of the program that
owns the setting: sysctl.d, modprobe.d, systemd .link files, NetworkManager, udev rules or
ifupdown. Every change gets a file of its own that names it; persist edits no other file.
` + "`linerate undo`" + ` removes the file. For a setting that no file can hold, persist prints the line
to write by hand.

persist shows a line of another file that would win at the next start, and writes nothing then;
--force writes anyway. After a restart, --check shows whether each change held, and which file
set another value.`,
		Example: "  linerate persist --dry-run\n  linerate persist 0007\n  linerate persist --check\n" +
			"  linerate persist --root /mnt/image",
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.check && (o.dryRun || o.force || len(args) > 0) {
				return usagef("persist: --check checks all persisted changes and writes nothing: " +
					"it takes no ids, no --dry-run and no --force")
			}
			if err := a.mindRoot("persist"); err != nil {
				return err
			}
			root, err := imageRoot(o.root)
			if err != nil {
				return err
			}
			if o.root = root; o.check {
				return a.persistCheck(cmd.Context(), o)
			}
			return a.persist(cmd.Context(), o, args)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.root, "root", "/", "write into this directory instead of /: an image or an unpacked root")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the files as a diff; write nothing")
	flags.BoolVar(&o.check, "check", false, "show whether persisted changes held; exit with 4 when one did not")
	flags.BoolVar(&o.force, "force", false, "also write what another file overrides at the next start")
	flags.Bool("yes", false, "accepted for scripts: persist never asks")
	return c
}

// imageRoot returns the directory that persist writes to, without links.
func imageRoot(name string) (string, error) {
	root, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("persist: --root %s: %w", name, err)
	}
	// Names of files are compared and joined below it, so it must not contain links.
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", fmt.Errorf("persist: --root %s: %w", name, err)
	}
	if info, err := os.Stat(filepath.Join(root, "etc")); err != nil || !info.IsDir() {
		return "", usagef("persist: --root %s: not the root of a system: it has no directory etc", name)
	}
	return root, nil
}

// host returns what a plan depends on. The files are those of the root; interfaces are always those
// of this host.
func (o persistOptions) host() (persist.Host, func(), error) {
	h := persist.Host{Root: os.DirFS("/")}
	done := func() {}
	if o.root != "/" {
		// Links that lead out of an image must not make persist read this host's files.
		root, err := os.OpenRoot(o.root)
		if err != nil {
			return h, nil, fmt.Errorf("persist: %w", err)
		}
		h.Root, done = root.FS(), func() { _ = root.Close() } // opened for reading only
	}
	h.Device = bootconf.LiveDevice
	h.Managers, h.Hidden = owner.Managers(h.Root, o.root == "/")
	return h, done, nil
}

// persist plans files for the wanted changes and writes them.
func (a *app) persist(ctx context.Context, o persistOptions, ids []string) error {
	host, done, err := o.host()
	if err != nil {
		return err
	}
	defer done()
	if o.dryRun {
		// Without the lock, as history does: a tune may hold it.
		changes, err := a.history()
		if err != nil {
			return err
		}
		steps, err := planPersist(host, changes, ids)
		if err != nil {
			return err
		}
		return a.printPersist(o, report.PersistPlanned, steps)
	}
	if none := a.noJournal(); none != "" {
		return statusError{status: exitFailed, message: "persist: no change is committed" + none,
			hint: "linerate set and linerate tune make changes; linerate confirm commits them"}
	}
	j, err := a.openJournal(journal.Deadline, "near")
	if err != nil {
		return err
	}
	defer j.Close()
	steps, err := planPersist(host, j.Changes(), ids)
	if err != nil {
		return err
	}
	if conflicting := slices.ContainsFunc(steps,
		func(s persist.Step) bool { return len(s.Conflicts) > 0 }); conflicting && !o.force {
		if err := a.printPersist(o, report.PersistRefused, steps); err != nil && !errors.As(err, new(statusError)) {
			return err
		}
		return statusError{status: exitFailed,
			message: "persist: nothing written: another file would win at the next start",
			hint:    "change that file, name the other changes alone, or give --force"}
	}
	var plans []journal.Plan
	for _, s := range steps {
		if s.Format != persist.ByHand {
			plans = append(plans, journal.Plan{ID: s.Change.ID, Files: s.Files})
			if err := persist.Inside(o.root, s.Files); err != nil {
				return err
			}
		}
	}
	if _, err := j.Persist(ctx, o.root, plans...); err != nil {
		return explainPersist(err)
	}
	return a.printPersist(o, report.PersistDone, steps)
}

// planPersist selects changes and plans the files of each.
func planPersist(host persist.Host, all []journal.Change, ids []string) ([]persist.Step, error) {
	boot, err := sys.BootID()
	if err != nil {
		return nil, fmt.Errorf("persist: boot id: %w", err)
	}
	chosen, err := committed(all, ids, boot)
	if err != nil {
		return nil, err
	}
	planner := persist.New(host)
	var steps []persist.Step
	for _, c := range chosen {
		steps = append(steps, planner.Plan(c))
	}
	return steps, nil
}

// orderedFiles plans the files of a change that people of a fleet order to persist. What needs a
// person at this host, a line to write by hand or another file that would win, is refused.
func orderedFiles(c journal.Change) ([]journal.File, error) {
	host, done, err := persistOptions{root: "/"}.host()
	if err != nil {
		return nil, err
	}
	defer done()
	step := persist.New(host).Plan(c)
	switch {
	case step.Format == persist.ByHand:
		return nil, fmt.Errorf("%w: by hand: %s", executor.ErrNoFile, step.Line)
	case len(step.Conflicts) > 0:
		return nil, fmt.Errorf("%w: %s would win at the next start", executor.ErrNoFile, step.Conflicts[0].File)
	}
	return step.Files, persist.Inside("/", step.Files)
}

// committed returns the changes to persist, oldest first: the named ones, or all that are
// committed. It leaves out a change that is persisted already, so that a second persist does no
// harm, and one that a restart has ended.
func committed(all []journal.Change, ids []string, boot string) ([]journal.Change, error) {
	var chosen []journal.Change
	persisted, trials := 0, 0
	for _, c := range all {
		if len(ids) > 0 && !named(ids, c) {
			continue
		}
		over := c.State == journal.Committed && c.BootID != boot && !c.Knob.InFile()
		switch {
		case over && len(ids) > 0:
			return nil, flagError{fmt.Errorf("persist change %s of %s: nothing written: a restart has ended it: %w",
				c.ID, c.Knob, journal.ErrNotCommitted),
				"linerate set" + knob.AllowFlag(c.Knob) + " " + string(c.Knob) + "='" + string(c.To) + "' makes it again"}
		case over:
		case c.State == journal.Committed:
			chosen = append(chosen, c)
		case c.State == journal.Persisted:
			persisted++
		default:
			if c.State == journal.Trial {
				trials++
			}
			if len(ids) > 0 {
				hint := "linerate history shows what became of it"
				if c.State == journal.Trial {
					hint = "linerate confirm " + c.ID + " lets it stay; then persist it"
				}
				return nil, flagError{fmt.Errorf("persist change %s of %s: nothing written: its state is %s: %w", c.ID,
					c.Knob, c.State, journal.ErrNotCommitted), hint}
			}
		}
	}
	if err := allKnown("persist", ids, all); err != nil {
		return nil, err
	}
	if len(chosen) == 0 && persisted == 0 {
		hint := "linerate set and linerate tune make changes; linerate confirm commits them"
		if trials > 0 {
			hint = "linerate confirm lets changes on trial stay; then persist them"
		}
		return nil, statusError{status: exitFailed, message: "persist: no change is committed", hint: hint}
	}
	return chosen, nil
}

// sameID reports whether two ids are the same; the typed one may lack the leading zeros.
func sameID(typed, id string) bool {
	number, err := strconv.Atoi(typed)
	return typed == id || err == nil && fmt.Sprintf("%04d", number) == id
}

// named reports whether a change is one of those that were typed.
func named(ids []string, c journal.Change) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return sameID(id, c.ID) })
}

// allKnown returns an error for a typed id that no change has.
func allKnown(command string, ids []string, all []journal.Change) error {
	for _, id := range ids {
		if len(byID(all, []string{id})) == 0 {
			return unknownChange(fmt.Errorf("%s: change %q: %w", command, id, journal.ErrUnknownChange))
		}
	}
	return nil
}

// printPersist prints the document. The exit status is 3 when a line is left to write by hand.
func (a *app) printPersist(o persistOptions, state report.PersistState, steps []persist.Step) error {
	doc := report.NewPersist(a.envelope(""), o.root, state, steps)
	err := a.print(doc, func(s text.Style) error {
		if len(steps) == 0 {
			_, err := fmt.Fprintln(a.out, "nothing to persist: every committed change is persisted already")
			return err
		}
		return text.Persist(a.out, doc, s)
	})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(steps, func(s persist.Step) bool { return s.Format == persist.ByHand }) {
		return statusError{status: exitPartial}
	}
	return nil
}

// explainPersist adds hints to the usual errors.
func explainPersist(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return statusError{status: exitNotPermitted, message: err.Error(),
			hint: "the file system is mounted read-only; --root DIR writes into an image, --dry-run shows " +
				"what to write"}
	case errors.Is(err, fs.ErrPermission):
		return statusError{status: exitNotPermitted, message: err.Error(),
			hint: "run it as root, or write into an image with --root DIR"}
	case errors.Is(err, journal.ErrInTheWay):
		return flagError{err, "move that file away; linerate overwrites only its own files"}
	case errors.Is(err, journal.ErrNeedsRecovery):
		return flagError{err, "linerate recover"}
	}
	return unknownChange(err)
}

// persistCheck prints whether persisted changes held.
func (a *app) persistCheck(ctx context.Context, o persistOptions) error {
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	changes, err := a.history()
	if err != nil {
		return err
	}
	kept, err := journal.KeptFiles(durable.OS(), dir)
	if err != nil {
		return err
	}
	boot, err := sys.BootID()
	if err != nil {
		return fmt.Errorf("persist: boot id: %w", err)
	}
	host, done, err := o.host()
	if err != nil {
		return err
	}
	defer done()
	findings := persist.Checker{Host: host, Knobs: live.New(), BootID: boot, Kept: kept}.Check(ctx, changes)
	doc := report.NewPersistCheck(a.envelope(""), o.root, findings, kept)
	err = a.print(doc, func(s text.Style) error {
		if len(findings) == 0 {
			_, err := fmt.Fprintln(a.out, "no change is persisted")
			return err
		}
		return text.PersistCheck(a.out, doc, s)
	})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f persist.Finding) bool { return f.Result == persist.Lost }) {
		return statusError{status: exitFinding}
	}
	return nil
}
