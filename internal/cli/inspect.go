package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// inspectFlags say where a host is read from and whether it is kept.
type inspectFlags struct {
	root, from string // at most one is set; neither: this host
	capture    string
	force      bool
	interval   time.Duration // for which interrupts are watched; 0: they are not
}

// inspectCommand shows this host. --from and --root show a remote one, or an earlier state: they
// read a capture, a sosreport, or a copy of /proc and /sys.
func (a *app) inspectCommand() *cobra.Command {
	var f inspectFlags
	c := &cobra.Command{
		Use:         "inspect [IFACE...]",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Short:       "Show what this host has, and the ceilings that follow",
		Long: `Show the interfaces with driver, bus, link, rings, coalescing, features and queues; the TCP and
core settings; the processors; and the ceilings: the highest rates that these allow.

With names of interfaces, show each of them on one screen: speed, driver, firmware, rings, channels,
offloads, coalescing, pause and the pluggable module with its readings and limits. Only root may ask
a module, on Linux 5.13 or later; a sosreport has what ethtool -m showed. --json then has these
interfaces alone.

inspect only reads, and takes some milliseconds. --from reads a file from another host instead
of this one: a capture, or a sosreport as a directory or a tar file (unpack one that is packed
with xz first: tar -xJf FILE). --root reads an unpacked copy of /proc and /sys. Interrupts are
counts since boot; --interval watches them for that long and shows their rates, by CPU.

--capture writes what was read into one text file that can be sent to a stranger. It replaces
addresses, names, serial numbers and identifiers by pseudonyms; the key is random and not kept.
Settings, counters and sizes stay as they are. The output then shows what the reader of the file
will see. --capture does not overwrite an existing file unless --force is given.`,
		Example: "  linerate inspect\n  linerate inspect eth0\n  linerate inspect --json | jq .ceilings\n" +
			"  linerate inspect --capture slow.capture\n  linerate inspect --from slow.capture\n" +
			"  linerate inspect --from sosreport-web1-2024-06-11",
		RunE: func(cmd *cobra.Command, names []string) error {
			snapshot, err := a.inspected(cmd.Context(), f)
			if err != nil {
				return err
			}
			if f.interval > 0 {
				if err := watch.Interrupts(cmd.Context(), host.Root{}, snapshot, f.interval); err != nil {
					return err
				}
			}
			doc := report.NewInspect(a.envelope(snapshot.Name), snapshot)
			if len(names) > 0 {
				if err := f.only(doc, names); err != nil {
					return err
				}
				return a.print(doc, func(s text.Style) error { return text.Interfaces(a.out, doc, s) })
			}
			return a.print(doc, func(s text.Style) error { return text.Inspect(a.out, doc, s) })
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.root, "root", "",
		"read the copies of /proc and /sys in `DIR` instead of this host")
	flags.StringVar(&f.from, "from", "", fromUsage)
	flags.StringVar(&f.capture, "capture", "",
		"write what was read, with names and addresses replaced, to a new `FILE`")
	flags.DurationVar(&f.interval, "interval", 0, "watch interrupts for this long, 10ms to 1h, and show their rates")
	flags.BoolVar(&f.force, "force", false, "let --capture replace a file")
	return c
}

// inspected reads the host that the flags name, and writes a capture if they ask for one.
func (a *app) inspected(ctx context.Context, f inspectFlags) (*host.Snapshot, error) {
	switch {
	case f.root != "" && f.from != "":
		return nil, usagef("--from and --root: give only one of them")
	case f.interval != 0 && (f.interval < 10*time.Millisecond || f.interval > time.Hour):
		return nil, usagef("--interval %s: must be from 10ms to 1h", f.interval)
	case f.interval != 0 && (f.root != "" || f.from != "" || f.capture != ""):
		return nil, usagef("--interval: only the running system has rates; --root, --from and --capture show " +
			"one moment")
	case f.force && f.capture == "":
		return nil, usagef("--force: needs --capture")
	case f.capture == "-":
		return nil, usagef("--capture -: standard output carries the document; name a file")
	}
	progress, err := a.newProgress()
	if err != nil {
		return nil, err
	}
	// An existing file is reported before the work is done.
	if f.capture != "" {
		if err := saved(capture.Free(f.capture, f.force)); err != nil {
			return nil, err
		}
	}
	if f.from == "" && f.capture == "" {
		return host.Root{Dir: f.root}.Snapshot(ctx)
	}
	var taken *capture.Capture
	take := func(root host.Root) error {
		var err error
		taken, err = capture.Take(ctx, root)
		return err
	}
	if f.from != "" {
		read, err := a.openSnapshot(ctx, f.from)
		if err != nil {
			return nil, err
		}
		if f.capture == "" {
			return read.Snapshot(ctx)
		}
		if err := take(read.Root()); err != nil {
			return nil, err
		}
	} else if err := take(host.Root{Dir: f.root}); err != nil {
		return nil, err
	}
	snapshot, err := taken.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if err := saved(taken.Save(f.capture, f.force)); err != nil {
		return nil, err
	}
	progress.Step("%s: %d files and links; look through it before you send it", f.capture, taken.Len())
	return snapshot, nil
}

// only leaves the named interfaces in a document, in the order of the names, and asks their modules
// when the document is about this host.
func (f inspectFlags) only(d *report.InspectDocument, names []string) error {
	var chosen []host.Interface
	here := f.from == "" && f.root == "" && f.capture == ""
	for _, name := range names {
		if here {
			name = ownName(name)
		}
		n := slices.IndexFunc(d.Interfaces, func(i host.Interface) bool { return i.Name == name })
		if n < 0 {
			return flagError{fmt.Errorf("inspect %s: no such interface", name), "linerate inspect lists the interfaces"}
		}
		i := d.Interfaces[n]
		if here && i.Card != nil && !i.Asleep {
			module, err := host.ReadOptic(name)
			switch {
			case err == nil:
				card := *i.Card
				card.Optic = module
				i.Card = &card
			case errors.Is(err, fs.ErrPermission):
				d.Warnings = append(d.Warnings, "the module of "+name+": only root may ask it")
			case !errors.Is(err, nl.ErrNotSupported):
				d.Warnings = append(d.Warnings, "the module of "+name+": "+oneSentence(err))
			}
		}
		chosen = append(chosen, i)
	}
	d.Interfaces = chosen
	return nil
}

// existsError reports that a file exists already, and what to do.
type existsError struct{ error }

func (e existsError) Unwrap() error { return e.error }

// Hint returns what the user can do next.
func (existsError) Hint() string { return "another name, or --force to replace the file" }
