package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/atboot"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

type recoverFlags struct {
	install, uninstall, show bool
	salvage, yes             bool
	removal                  bool
	init, program, root      string
}

// recoverCommand cleans up after a crash. A tune and a remote change also recover first, because
// they need a clean start. The other commands do not, so that the operator sees what a crash has
// left.
func (a *app) recoverCommand() *cobra.Command {
	var f recoverFlags
	c := &cobra.Command{
		Use:         "recover",
		Annotations: exits(exitPartial, exitNotPermitted, exitLocked, exitInterrupted),
		Short:       "Finish what a crash interrupted: undo trials that no guard watches any more",
		Long: `Bring the journal and the host into agreement after a crash, a kill or a power cut. recover is
safe at any time and at every boot: when the two agree it changes nothing. It takes back a trial
whose guard was killed, and leaves one that a guard watches.

--salvage reads a journal that is damaged and lists the changes it still shows; it writes nothing.
With --yes it keeps the damaged journal under another name, starts a new one with these changes, and
recovers.

--install runs recover at every start, before the network comes up: with a systemd unit, an init
script or an OpenRC service, as the host needs. The values of trials end with the old kernel; a
start has to clean up the files that persist was writing when the power failed. --print shows
the file and writes nothing, --uninstall removes it. recover does not touch a file that was
edited.

--before-removal also takes back trials that a guard still watches, and then names the changes that
stay in force. The packages of linerate run it before they remove the program. The journal stays.`,
		Example: "  linerate recover\n  linerate recover --print\n  linerate recover --install\n" +
			"  linerate recover --install --root /mnt/image --program /usr/local/bin/linerate",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.install || f.uninstall || f.show {
				return a.recoverAtBoot(f)
			}
			if err := a.mindRoot("recover"); err != nil {
				return err
			}
			if f.removal {
				return a.beforeRemoval(cmd.Context())
			}
			if f.salvage {
				if err := a.salvage(f.yes); err != nil || !f.yes {
					return err
				}
			}
			return a.recover(cmd.Context())
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.install, "install", false, "run recover at every start from now on")
	flags.BoolVar(&f.uninstall, "uninstall", false, "no longer run recover at every start")
	flags.BoolVar(&f.show, "print", false, "show the file that --install would write; write nothing")
	flags.BoolVar(&f.salvage, "salvage", false, "show what a damaged journal still knows; write nothing")
	flags.BoolVar(&f.yes, "yes", false, "with --salvage: start a new journal with what is known, and recover")
	flags.BoolVar(&f.removal, "before-removal", false, "end every trial, and name the changes that stay in force")
	flags.StringVar(&f.init, "init", "", "init system: systemd, sysvinit or openrc (default: what the host has)")
	flags.StringVar(&f.program, "program", "", "`PATH` of linerate at the start (default: this one)")
	flags.StringVar(&f.root, "root", "/", "write into the image or unpacked host in this `DIR`")
	return c
}

// noJournal returns the end of a sentence where the state directory does not exist, and otherwise
// nothing. To open a journal there would make the directory, and a mistyped one would look like a
// host without changes. A guard may still watch what a removed journal had.
func (a *app) noJournal() string {
	dir, err := a.stateDir()
	if err != nil {
		return ""
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || len(journal.Strays(durable.OS(), dir)) > 0 {
		return ""
	}
	return ": there is no journal in " + dir
}

// recover finishes what a crash left, and reports it.
func (a *app) recover(ctx context.Context) error {
	if none := a.noJournal(); none != "" {
		return a.printOutcomes("nothing to recover"+none, nil)
	}
	j, err := a.openJournal(journal.Deadline, "near")
	if err != nil {
		return err
	}
	defer j.Close()
	outcomes, err := j.Recover(ctx)
	return recovered(outcomes, a.finishUndo("nothing to recover", outcomes, nil, err))
}

// beforeRemoval leaves nothing that needs the program: it ends the trials, whose guards are this
// program, and names the changes that stay. These go to standard error where the outcome is a
// document.
func (a *app) beforeRemoval(ctx context.Context) error {
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	if none := a.noJournal(); none != "" {
		return a.printOutcomes("nothing was changed"+none, nil)
	}
	j, err := a.openJournal(journal.Deadline, "near")
	if err != nil {
		return err
	}
	defer j.Close()
	outcomes, err := j.Recover(ctx)
	if err == nil {
		var trials []string
		for _, c := range j.Changes() {
			if c.State == journal.Trial {
				trials = append(trials, c.ID)
			}
		}
		var ended []journal.Outcome
		ended, err = j.Undo(ctx, trials...)
		outcomes = append(outcomes, ended...)
	}
	if err := recovered(outcomes, a.finishUndo("no change was on trial", outcomes, nil, err)); err != nil {
		return err
	}
	stay := slices.DeleteFunc(j.Changes(), func(c journal.Change) bool { return c.State == journal.Undone })
	if len(stay) == 0 {
		return nil
	}
	said := a.out
	if a.json {
		said = a.err
	}
	changes := "1 change is"
	if len(stay) > 1 {
		changes = fmt.Sprintf("%d changes are", len(stay))
	}
	if _, err := fmt.Fprintf(said, "%s still in force; `linerate undo --all` takes them back while linerate is "+
		"installed. The journal stays in %s.\n", changes, dir); err != nil {
		return err
	}
	return text.History(said, report.NewHistory(a.envelope(""), stay), text.Style{})
}

// salvage shows what a damaged journal still knows. With repair it then starts a new journal.
func (a *app) salvage(repair bool) error {
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	sound, damage := journal.History(durable.OS(), dir)
	if !errors.Is(damage, journal.ErrCorrupt) {
		if damage == nil && !repair {
			a.warn("the journal is sound: linerate history shows all of it")
			if a.json { // which promises a document
				return a.printHistory(sound)
			}
		}
		return damage
	}
	known, err := journal.Salvage(durable.OS(), dir)
	if err != nil {
		return err
	}
	lost := "the number of lost records is not known"
	if known.MissingRecords > 0 {
		lost = fmt.Sprintf("%d records or more are lost", known.MissingRecords) // a mark may count too few
	}
	a.warn("%v; %d changes can be read, %s", damage, len(known.Changes), lost)
	if !repair {
		if err := a.printHistory(known.Changes); err != nil {
			return err
		}
		return statusError{status: exitPartial}
	}
	options := journalOptions(dir, live.New(), journal.Deadline, "near")
	aside, err := journal.Repair(options)
	if err == nil {
		a.warn("the damaged journal is kept as %s", aside)
	}
	return err
}

// recovered drops the status of a partial result where nothing is left to do: the values that were
// not restored belong to an earlier boot and ended with its kernel.
func recovered(outcomes []journal.Outcome, err error) error {
	var status statusError
	if !errors.As(err, &status) || status.status != exitPartial {
		return err
	}
	boot, bootErr := sys.BootID()
	for _, o := range outcomes {
		if !o.Restored && (bootErr != nil || o.Change.BootID == boot || o.Error != "" || o.Foreign != "") {
			return err
		}
	}
	return nil
}

// check refuses flags that contradict each other before anything is changed.
func (f recoverFlags) check(cmd *cobra.Command) error {
	asked := 0
	for _, set := range []bool{f.install, f.uninstall, f.show, f.salvage, f.removal} {
		if set {
			asked++
		}
	}
	switch {
	case asked > 1:
		return usagef("recover: --install, --uninstall, --print, --salvage and --before-removal exclude one another")
	case f.yes && !f.salvage:
		return usagef("--yes: needs --salvage")
	case f.init != "" && f.init != string(atboot.Systemd) && f.init != string(atboot.SysV) &&
		f.init != string(atboot.OpenRC):
		return usagef("--init %q: not one of systemd, sysvinit, openrc", f.init)
	}
	for _, name := range []string{"init", "program", "root"} {
		if (asked == 0 || f.salvage || f.removal) && cmd.Flags().Changed(name) {
			return usagef("--%s: needs --install, --uninstall or --print", name)
		}
	}
	return nil
}

// recoverAtBoot installs, removes or shows what runs recover at every start.
func (a *app) recoverAtBoot(f recoverFlags) error {
	// A mistyped one would be made, and recover would seem to be installed.
	if _, err := os.ReadDir(f.root); err != nil {
		return flagError{fmt.Errorf("recover: --root: %w", err), "--root DIR is an image or an unpacked host"}
	}
	o, err := a.atBoot(f)
	if err != nil {
		return err
	}
	if o.Init == "" {
		if o.Init, err = atboot.Detect(o.Root); err != nil {
			return bootHint(err)
		}
	}
	content, err := atboot.Text(o)
	if err != nil {
		return err
	}
	doc := report.NewBootRecovery(a.envelope(""), content)
	switch {
	case f.show:
		return a.print(doc, func(text.Style) error {
			_, err := io.WriteString(a.out, content)
			return err
		})
	case f.install:
		doc.Result, err = atboot.Install(o)
		doc.Installed = true
	default:
		doc.Result, err = atboot.Uninstall(o)
	}
	if err != nil {
		return bootHint(err)
	}
	return a.print(doc, func(text.Style) error {
		said := map[bool]map[bool]string{
			true: {true: "installed", false: "already installed"}, false: {true: "removed", false: "was not installed"},
		}[f.install][doc.Changed]
		if _, err := fmt.Fprintf(a.out, "%s %s\n", said, doc.Path); err != nil {
			return err
		}
		if f.uninstall && doc.Changed && doc.Init == atboot.Systemd && filepath.Clean(o.Root) == "/" {
			// Nothing starts the unit any more, but `systemctl status` still shows it.
			_, err := fmt.Fprintln(a.out, "systemd forgets it at the next start, or now by: systemctl daemon-reload")
			return err
		}
		return nil
	})
}

// atBoot returns what runs at a start. It names the state directory only where that is not root's
// default.
func (a *app) atBoot(f recoverFlags) (atboot.Options, error) {
	o := atboot.Options{Root: f.root, Init: atboot.Init(f.init), Program: f.program}
	if a.state != "" || a.env("LINERATE_STATE") != "" {
		dir, err := a.stateDir()
		if err != nil {
			return o, err
		}
		o.State = dir
	}
	if o.Program != "" {
		return o, nil
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return o, fmt.Errorf("find this program: %w; give --program PATH", err)
	}
	o.Program = self
	return o, nil
}

func bootHint(err error) error {
	switch {
	case errors.Is(err, atboot.ErrNoInit):
		return flagError{err, "--init systemd, sysvinit or openrc selects one, --print shows a file to install by hand"}
	case errors.Is(err, atboot.ErrNotOurs):
		return flagError{err, "move the file away, or compare it with `linerate recover --print`"}
	}
	return err
}
