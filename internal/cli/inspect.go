package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// inspectFlags say where a host is read from and whether it is kept.
type inspectFlags struct {
	root, from string // at most one of them; neither: this host
	capture    string
	force      bool
	interval   time.Duration // how long interrupts are watched; 0: not at all
}

// --from and --root are how a host is looked at from afar and later: somebody sends a capture, a
// sosreport, or a tarball of /proc and /sys.
func (a *app) inspectCommand() *cobra.Command {
	var f inspectFlags
	c := &cobra.Command{
		Use:   "inspect",
		Short: "Show what this host has, and the ceilings that follow",
		Long: `Show interfaces with driver, bus, link, rings, coalescing, features and queues; the TCP and
core settings; the processors; and the rates that none of them lets you pass.

Reads only, and takes some milliseconds. With --from it reads what somebody sent instead of
this host: a capture, or a sosreport as a directory or as a tar file (one that is packed with xz
has to be unpacked first: tar -xJf FILE). --root reads an unpacked copy of /proc and /sys.
Interrupts are counts since boot; --interval watches them for that long and tells their rates,
by CPU.

--capture writes what was read into one text file that can be sent to a stranger: addresses,
names, serial numbers and identifiers are replaced, the same one by the same, by a key that is
random and not kept; settings, counters and sizes are as they are. What is printed is then what
the reader of the file will see. A file that exists is left alone unless --force is given.`,
		Example: "  linerate inspect\n  linerate inspect --json | jq .ceilings\n" +
			"  linerate inspect --capture slow.capture\n  linerate inspect --from slow.capture\n" +
			"  linerate inspect --from sosreport-web1-2024-06-11",
		Args: wholeHost,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// An empty name is a shell's variable that was not set: reading this host instead would
			// be another answer to another question.
			for _, name := range []string{"from", "capture", "root"} {
				if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
					return usagef("--%s: name what to read or to write", name)
				}
			}
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
			return a.print(doc, func(s text.Style) error { return text.Inspect(a.out, doc, s) })
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.root, "root", "",
		"directory `DIR` that holds copies of /proc and /sys to read instead of this host")
	flags.StringVar(&f.from, "from", "", fromUsage)
	flags.StringVar(&f.capture, "capture", "", "write what was read, scrubbed, into this new `FILE`")
	flags.DurationVar(&f.interval, "interval", 0, "watch interrupts for this long and tell their rates, 10ms to 1h")
	flags.BoolVar(&f.force, "force", false, "let --capture replace a file")
	return c
}

// inspected reads what the flags say, and keeps it if they say so.
func (a *app) inspected(ctx context.Context, f inspectFlags) (*host.Snapshot, error) {
	switch {
	case f.root != "" && f.from != "":
		return nil, usagef("--from and --root: one of them says what is read")
	case f.interval != 0 && (f.interval < 10*time.Millisecond || f.interval > time.Hour):
		return nil, usagef("--interval %s: 10ms to 1h", f.interval)
	case f.interval != 0 && (f.root != "" || f.from != "" || f.capture != ""):
		return nil, usagef("--interval: rates are of the running system; --root, --from and --capture are about one moment")
	case f.force && f.capture == "":
		return nil, usagef("--force: it is for --capture, which is not there")
	case f.capture == "-":
		return nil, usagef("--capture -: standard output has the document; name a file")
	}
	progress, err := a.newProgress()
	if err != nil {
		return nil, err
	}
	// A file that is in the way is found before the work is done.
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

// wholeHost refuses a name behind inspect, which people type to see one interface.
func wholeHost(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return flagError{fmt.Errorf("inspect %s: it shows the whole host and takes no name", args[0]),
		fmt.Sprintf("linerate knobs --current 'ethtool:%s/*', or linerate inspect --json", args[0])}
}

// existsError says that a file is in the way, and what to do.
type existsError struct{ error }

func (e existsError) Unwrap() error { return e.error }

// Hint is what to do next.
func (existsError) Hint() string { return "another name, or --force to replace the file" }
