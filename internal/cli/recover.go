package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/atboot"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

type recoverFlags struct {
	install, uninstall, show bool
	init, program, root      string
}

// A tune and a change from afar recover first as well, since they need a clean start. The other
// commands do not: what a crash has left is for the operator to see.
func (a *app) recoverCommand() *cobra.Command {
	var f recoverFlags
	c := &cobra.Command{
		Use:   "recover",
		Short: "Finish what a crash interrupted: take back trials that nobody watches any more",
		Long: `Bring the journal and the host into agreement after a crash, a kill or a power cut. Safe to run at
any time and at every boot: when there is nothing to do it changes nothing.

--install makes it run at every start, before the network comes up: by a systemd unit, an init
script or an OpenRC service, whichever the host has. Values of trials go with the old kernel by
themselves; what matters at a start are files that a change was being made to survive it with.
--print shows the file and writes nothing, --uninstall takes it away. A file that somebody has
edited is left alone.`,
		Example: "  linerate recover\n  linerate recover --print\n  linerate recover --install\n  linerate recover --install --root /mnt/image --program /usr/bin/linerate",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.install || f.uninstall || f.show {
				return a.recoverAtBoot(f)
			}
			j, err := a.openJournal(journal.Deadline, "near")
			if err != nil {
				return err
			}
			defer j.Close()
			outcomes, err := j.Recover(cmd.Context())
			return recovered(outcomes, a.finishUndo("nothing to recover", outcomes, err))
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.install, "install", false, "run it at every start from now on")
	flags.BoolVar(&f.uninstall, "uninstall", false, "do not run it at every start any more")
	flags.BoolVar(&f.show, "print", false, "show the file that --install would write; write nothing")
	flags.StringVar(&f.init, "init", "", "init system: systemd, sysvinit or openrc (default: what the host has)")
	flags.StringVar(&f.program, "program", "", "`PATH` of linerate at the start (default: this one)")
	flags.StringVar(&f.root, "root", "/", "write into the image or unpacked host in this `DIR`")
	return c
}

// recovered takes the status of a partial result away where nothing is left to do: what was not put
// back was of an earlier boot, which ended with its kernel.
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

// check refuses what makes no sense before anything is touched.
func (f recoverFlags) check(cmd *cobra.Command) error {
	asked := 0
	for _, set := range []bool{f.install, f.uninstall, f.show} {
		if set {
			asked++
		}
	}
	switch {
	case asked > 1:
		return usagef("recover: --install, --uninstall and --print exclude one another")
	case f.init != "" && f.init != string(atboot.Systemd) && f.init != string(atboot.SysV) &&
		f.init != string(atboot.OpenRC):
		return usagef("--init %q: not one of systemd, sysvinit, openrc", f.init)
	}
	for _, name := range []string{"init", "program", "root"} {
		if asked == 0 && cmd.Flags().Changed(name) {
			return usagef("--%s: it is for --install, --uninstall and --print", name)
		}
	}
	return nil
}

// recoverAtBoot installs, removes or shows what runs recover at every start.
func (a *app) recoverAtBoot(f recoverFlags) error {
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
			// Nothing starts it any more. Who wonders about `systemctl status` shall not have to.
			_, err := fmt.Fprintln(a.out, "systemd forgets it at the next start, or now by: systemctl daemon-reload")
			return err
		}
		return nil
	})
}

// atBoot says what is to run at a start. The state directory is named only where it is not the
// default of root.
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
		return o, fmt.Errorf("find this program: %w; say --program PATH", err)
	}
	o.Program = self
	return o, nil
}

func bootHint(err error) error {
	switch {
	case errors.Is(err, atboot.ErrNoInit):
		return flagError{err, "--init systemd, sysvinit or openrc says which, --print shows a file to install by hand"}
	case errors.Is(err, atboot.ErrNotOurs):
		return flagError{err, "move it away, or look at the difference to `linerate recover --print`"}
	}
	return err
}
