package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/export"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

type exportFlags struct {
	format, output, run, from, side string
	force                           bool
}

// exportCommand writes changes for other hosts. It needs no privilege beyond reading the journal.
func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:         "export --format FORMAT [ID...]",
		Annotations: exits(exitPartial, exitNotPermitted, exitInterrupted),
		Short:       "Write proven changes for other hosts: Ansible, TuneD, shell, NixOS",
		Long: `Write the committed changes of this host, or the named ones, for other hosts. export leaves out
trials and undone changes: confirm a change first. Instead of the journal, --run takes what a
stored run kept: an id, the beginning of one, or last. --from takes a file that linerate tune
--json has written, and --side selects the end of its path.

  ansible  one playbook: ansible.posix.sysctl, and a program with a unit for the rest
  tuned    the directory of a TuneD profile; needs --output
  shell    one POSIX script with apply, check and undo, which saves the previous values
  nixos    one module

The files state the proof: on which host, what gain, and that no other host has confirmed it.
Interfaces become variables (if1, if2). export leaves out what only makes sense on one machine,
such as an interrupt by its number, and prints the reason; the exit status is then 3.`,
		Example: "  linerate export --format shell > tuned-host.sh\n" +
			"  linerate export --format ansible --output site/linerate.yml 0003 0004\n" +
			"  linerate export --format nixos --run last\n" +
			"  linerate export --format tuned --output /etc/tuned/linerate-export",
		RunE: func(cmd *cobra.Command, ids []string) error { return a.export(cmd, ids, f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.format, "format", "", "ansible, tuned, shell or nixos")
	flags.StringVar(&f.output, "output", "",
		"write to this new `PATH` instead of standard output; for tuned a directory")
	flags.StringVar(&f.run, "run", "", "export what a stored run kept: its `ID`, or last")
	flags.StringVar(&f.from, "from", "",
		"export what a tune kept, from its JSON document in `FILE`; - is standard input")
	flags.StringVar(&f.side, "side", "",
		"with --run or --from: near (where tune ran; the default) or far (its target)")
	flags.BoolVar(&f.force, "force", false, "let --output replace files")
	return c
}

// check refuses flags that contradict each other before anything is read.
func (f exportFlags) check(ids []string) error {
	var names []string
	for _, known := range export.Formats() {
		names = append(names, string(known))
	}
	switch {
	case f.format == "":
		return usagef("export: give --format %s", strings.Join(names, "|"))
	case !slices.Contains(names, f.format):
		return usagef("--format %q: not one of %s", f.format, strings.Join(names, ", "))
	case f.run != "" && f.from != "":
		return usagef("--run and --from: give only one of them")
	case (f.run != "" || f.from != "") && len(ids) > 0:
		return usagef("export: ids are changes of this host's journal; leave them out with --run and --from")
	case f.side != "" && f.run == "" && f.from == "":
		return usagef("--side: needs --run or --from; the journal has only the changes of this host")
	case f.side != "" && f.side != string(export.Near) && f.side != string(export.Far):
		return usagef("--side %q: not one of near, far", f.side)
	case f.force && f.output == "":
		return usagef("--force: needs --output")
	}
	return nil
}

func (a *app) export(cmd *cobra.Command, ids []string, f exportFlags) error {
	if err := f.check(ids); err != nil {
		return err
	}
	set, err := a.exportSet(cmd.Context(), ids, f)
	if err != nil {
		return nothingToExport(err)
	}
	bundle, err := export.Write(export.Format(f.format), set)
	for _, l := range bundle.LeftOut {
		fmt.Fprintf(a.err, "left out %s: %s%s\n", l.Knob, l.Why, byHand(l))
	}
	if err != nil {
		return nothingToExport(err)
	}
	if err := a.exportTo(f, bundle, set); err != nil {
		return err
	}
	if len(bundle.LeftOut) > 0 {
		return statusError{status: exitPartial}
	}
	return nil
}

func byHand(l export.LeftOut) string {
	if l.ByHand == "" {
		return ""
	}
	return "; by hand: " + l.ByHand
}

// exportTo writes the files, or prints the only file or the document.
func (a *app) exportTo(f exportFlags, b export.Bundle, set export.Set) error {
	if f.output != "" {
		if err := saved(b.Save(f.output, f.force)); err != nil {
			return err
		}
	} else if !a.json && len(b.Files) > 1 {
		return usagef("export: a TuneD profile of this set has %d files; give --output DIR", len(b.Files))
	}
	doc := report.NewExport(a.envelope(""), set, b)
	return a.print(doc, func(text.Style) error {
		if f.output == "" {
			_, err := io.WriteString(a.out, b.Files[0].Content)
			return err
		}
		for _, file := range b.Files {
			if _, err := fmt.Fprintf(a.out, "wrote %s\n", b.Place(f.output, file)); err != nil {
				return err
			}
		}
		return nil
	})
}

// saved adds a hint to the error for a file that exists already.
func saved(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return existsError{err}
	}
	return err
}

// nothingToExport adds a hint to the error for an empty set.
func nothingToExport(err error) error {
	switch {
	case hintOf(err) != "":
		return err // the inner hint is more specific
	case errors.Is(err, export.ErrNothing):
		return flagError{err,
			"linerate tune TARGET finds and proves changes, linerate confirm lets a trial stay, linerate " +
				"history lists both"}
	case errors.Is(err, runs.ErrNoRun), errors.Is(err, runs.ErrAmbiguous):
		return flagError{err, "linerate report lists the runs"}
	}
	return unknownChange(err)
}

// exportSet returns the changes to write.
func (a *app) exportSet(ctx context.Context, ids []string, f exportFlags) (export.Set, error) {
	side := export.Near
	if f.side != "" {
		side = export.Side(f.side)
	}
	switch {
	case f.from == "-" || f.from != "" && waits(f.from):
		name := f.from
		if name == "-" {
			name = "standard input"
		}
		in, err := a.openInput(f.from)
		if err != nil {
			return export.Set{}, err
		}
		defer in.Close() // opened for reading
		doc, err := io.ReadAll(io.LimitReader(in, runs.MaxBytes))
		if err != nil {
			return export.Set{}, fmt.Errorf("read %s: %w", name, err)
		}
		return otherSide(readTune(name, doc, side))
	case f.from != "":
		store, err := a.storedRuns()
		if err != nil {
			return export.Set{}, err
		}
		doc, err := store.ReadFile(f.from)
		if err != nil {
			return export.Set{}, err
		}
		return otherSide(readTune(f.from, doc, side))
	case f.run != "":
		store, err := a.storedRuns()
		if err != nil {
			return export.Set{}, err
		}
		id, err := store.Find(f.run)
		if err != nil {
			return export.Set{}, err
		}
		doc, err := store.Read(id)
		if err != nil {
			return export.Set{}, err
		}
		set, err := readTune("run "+id, doc, side)
		if set.Proof != nil {
			set.Proof.Run = id
		}
		return otherSide(set, err)
	}
	return a.exportJournal(ctx, ids)
}

// reason returns why a change was made; empty where the journal only names the command.
func reason(c journal.Change) string {
	if strings.HasPrefix(c.Reason, "linerate ") {
		return ""
	}
	return c.Reason
}

func readTune(name string, doc []byte, side export.Side) (export.Set, error) {
	set, err := export.ReadTune(doc, side)
	if err != nil {
		return set, fmt.Errorf("export %s: %w", name, err)
	}
	return set, nil
}

// otherSide adds a hint where a run kept changes at the other end only.
func otherSide(set export.Set, err error) (export.Set, error) {
	if errors.Is(err, export.ErrNothing) && set.Proof != nil && set.Proof.OtherEnd > 0 {
		return set, flagError{err, "this run kept changes at the other end: --side far, or --side near if you gave far"}
	}
	return set, err
}

// storedRuns returns the stored tunes of this user.
func (a *app) storedRuns() (runs.Store, error) {
	dir, err := a.stateDir()
	if err != nil {
		return runs.Store{}, err
	}
	return runs.In(durable.OS(), dir, runs.Tunes, 0), nil
}

// exportJournal returns the changes in force on this host, with the proof of the stored runs.
func (a *app) exportJournal(ctx context.Context, ids []string) (export.Set, error) {
	if err := a.mindRoot("export"); err != nil {
		return export.Set{}, err
	}
	changes, err := a.history()
	if err != nil {
		return export.Set{}, err
	}
	boot, err := sys.BootID()
	if err != nil {
		return export.Set{}, fmt.Errorf("export: boot id: %w", err)
	}
	set := export.Set{}
	if err := allKnown("export", ids, changes); err != nil {
		return set, err
	}
	for _, c := range changes {
		named := named(ids, c)
		// A committed change of an earlier boot is over, even before a command has recorded that.
		stays := c.State == journal.Persisted || c.State == journal.Committed && (c.BootID == boot || c.Knob.InFile())
		switch {
		case named && !stays && c.State == journal.Trial:
			return set, flagError{fmt.Errorf("export change %s of %s: it is a trial", c.ID, c.Knob),
				"linerate confirm " + c.ID}
		case named && !stays:
			return set, fmt.Errorf("export change %s of %s: it is no longer in force", c.ID, c.Knob)
		case !stays || len(ids) > 0 && !named:
			continue
		}
		set.Changes = append(set.Changes, export.Change{ID: c.ID, Knob: c.Knob, From: c.From, To: c.To,
			State: string(c.State), Why: reason(c)})
		set.Origin.Time = c.Time
	}
	if len(set.Changes) == 0 {
		return set, fmt.Errorf("%w: nothing is committed on this host", export.ErrNothing)
	}
	set.Origin.Linerate = version
	envelope := a.envelope("")
	set.Origin.Host, set.Origin.OS, set.Origin.Arch = envelope.Host.Name, envelope.Host.OS, envelope.Host.Arch
	set.Origin.Describe(ctx)
	store, err := a.storedRuns()
	if err != nil {
		return set, err
	}
	return set, set.ProveBy(store)
}
