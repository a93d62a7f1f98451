package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/scratch"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/matrix"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/wire"
)

func (a *app) labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Practice worlds on this machine, with known faults",
		Long: `Make private worlds of network namespaces on this machine, joined by emulated links, plant a
fault, and let linerate find and repair it. The lab changes nothing outside the world.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.labListCommand(), a.labRunCommand(), a.labUpCommand(), a.labMatrixCommand(), a.labTuneCommand())
	return c
}

func (a *app) labListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the scenarios",
		RunE: func(*cobra.Command, []string) error {
			scenarios, err := scenario.List()
			if err != nil {
				return err
			}
			doc := report.NewLabList(a.envelope(""), labEntries(scenarios))
			return a.print(doc, func(s text.Style) error { return text.LabList(a.out, doc, s) })
		},
	}
}

func labEntries(scenarios []scenario.Scenario) []report.LabEntry {
	var entries []report.LabEntry
	for _, s := range scenarios {
		entries = append(entries, report.LabEntry{
			Scenario: s.Name, Title: s.Title, About: s.About,
			Expected: s.Expect.Finding, Tunable: s.Expect.Tunable, Knobs: s.Expect.Knobs,
		})
	}
	return entries
}

// labRunFlags are the flags of lab run.
type labRunFlags struct {
	budget time.Duration
	out    string
	inside bool
}

func (a *app) labRunCommand() *cobra.Command {
	var f labRunFlags
	c := &cobra.Command{
		Use:         "run SCENARIO|all",
		Annotations: exits(exitPartial, exitNotPermitted, exitInterrupted),
		Short:       "Play a scenario: plant the fault, let linerate find and repair it, undo, compare",
		Long: `Measure a healthy world like that of the scenario. Make the world with its fault, measure, tune,
measure again, undo on both hosts, and compare every setting with the original. --json prints
one document per line. A scenario passes when the first finding is the right one, tuning reaches
90 % of the healthy rate (or keeps nothing where nothing needs tuning), and every value is back.
A scenario that does not pass while other programs use the machine is not judged. The exit status
is 1 when a scenario does not pass, and 3 when this machine cannot play one or is too disturbed
to judge it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.budget <= 0 {
				return usagef("--budget %v: must be longer than 0s", f.budget)
			}
			scenarios, err := labScenarios(args[0])
			if err != nil {
				return err
			}
			if f.out != "" {
				if err := os.MkdirAll(f.out, 0o755); err != nil {
					return fmt.Errorf("keep documents: %w", err)
				}
			}
			return a.labRun(cmd.Context(), scenarios, f)
		},
	}
	c.Flags().DurationVar(&f.budget, "budget", 5*time.Minute, "time for the tune of one scenario")
	c.Flags().StringVar(&f.out, "out", "", "store the document of every tune in this directory")
	c.Flags().BoolVar(&f.inside, "inside", false,
		"this is the guest that the scenario needs; the tune's document goes into the output")
	_ = c.Flags().MarkHidden("inside") // fails only for a flag that does not exist
	return a.forScripts(a.streaming(c), false)
}

func labScenarios(name string) ([]scenario.Scenario, error) {
	if name == "all" {
		return scenario.List()
	}
	s, err := scenario.Load(name)
	if err != nil {
		return nil, usageError{fmt.Errorf("%w; `linerate lab list` shows the scenarios", err)}
	}
	return []scenario.Scenario{s}, nil
}

// labTune are the flags of a scenario's tune. The faults are gross, so short segments show them,
// and a scenario takes about a minute.
var labTune = []string{"--duration", "600ms", "--warm-up", "400ms"}

// labMeasure is how long healthy, before and after are measured, three times each: a second shows a
// gross fault.
const labMeasure = time.Second

// labRun plays scenarios one after the other, because two worlds on one machine would disturb each
// other's measurements. A scenario that does not pass does not end the suite; an error of the lab
// does, because it would hit the next scenario too.
func (a *app) labRun(ctx context.Context, scenarios []scenario.Scenario, f labRunFlags) error {
	p, err := a.newProgress()
	if err != nil {
		return err
	}
	defer p.Done()
	style := a.style()
	if !a.json {
		if err := text.LabHeader(a.out, style); err != nil {
			return err
		}
	}
	failed, skipped := 0, 0
	for _, s := range scenarios {
		doc, err := a.labPlay(ctx, s, f, p)
		p.Done()
		if err != nil {
			return err
		}
		if err := matrix.Keep(f.out, s.Name, "", 1, doc.Document); err != nil {
			return err
		}
		if !f.inside {
			doc.Document = nil
		}
		switch {
		case doc.Skipped, doc.Disturbed:
			skipped++
		case !doc.Pass:
			failed++
		}
		if err := a.print(doc, func(s text.Style) error { return text.Lab(a.out, doc, s) }); err != nil {
			return err
		}
	}
	if failed > 0 {
		return statusError{status: exitFailed, message: fmt.Sprintf("lab: %d of %d scenarios did not pass", failed,
			len(scenarios))}
	}
	if skipped > 0 {
		return statusError{status: exitPartial}
	}
	return nil
}

// linkFlags describe an emulated link, with the same values in both directions. An asymmetric link
// needs a scenario file.
type linkFlags struct {
	rate   string
	delay  time.Duration
	jitter time.Duration
	loss   float64
	queue  string
	mtu    int
}

func (l *linkFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&l.rate, "rate", "",
		"rate of an emulated link between the hosts, like 1Gb/s (default: a plain veth, as fast as the CPU)")
	c.Flags().DurationVar(&l.delay, "delay", 0, "one-way delay of the emulated link")
	c.Flags().DurationVar(&l.jitter, "jitter", 0, "variation of the delay, up and down")
	c.Flags().Float64Var(&l.loss, "loss", 0, "share of packets that the link loses, 0 to 1")
	c.Flags().StringVar(&l.queue, "queue", "",
		"queue in front of the link, like 256KiB (default: one bandwidth-delay product)")
	c.Flags().IntVar(&l.mtu, "mtu", 1500, "longest packet that passes, in bytes")
}

// link returns the link that the flags describe; nil when no flag was given.
//
// A link with all values at their defaults is not the same as no link: the emulated one goes
// through a process, a plain veth does not. So the presence of a flag decides, not its value.
func (l *linkFlags) link(c *cobra.Command) (*scenario.Link, error) {
	asked := false
	for _, name := range []string{"rate", "delay", "jitter", "loss", "queue", "mtu"} {
		asked = asked || c.Flags().Changed(name)
	}
	if !asked {
		return nil, nil
	}
	p := link.Params{DelaySeconds: l.delay.Seconds(), JitterSeconds: l.jitter.Seconds(), LossRatio: l.loss,
		MTUBytes: l.mtu}
	if l.rate != "" {
		rate, err := unit.ParseBitRate(l.rate)
		if err != nil {
			return nil, usagef("--rate: %w", err)
		}
		p.RateBitsPerSec = float64(rate)
	}
	if l.queue != "" {
		queue, err := unit.ParseBytes(l.queue)
		if err != nil {
			return nil, usagef("--queue: %w", err)
		}
		p.QueueBytes = int64(queue)
	}
	if err := p.Check(); err != nil {
		return nil, usageError{err}
	}
	return &scenario.Link{ToFar: p}, nil
}

func (a *app) labUpCommand() *cobra.Command {
	var l linkFlags
	c := &cobra.Command{
		Use:         "up WORLD [-- COMMAND...]",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Short:       "Make a world and wait, or run a command inside its near host",
		Long: `Make a world (pair: the hosts near and far; router: a router between them) and show how to enter
its hosts. The world ends with Ctrl-C. With a command after --, run the command inside the near
host, end the world with it and return its exit status. In that command ` + "`linerate`" + ` is this
program, and the name far is the other host.`,
		Example: "  linerate lab up pair --rate 1Gb/s --delay 10ms\n  linerate lab up pair -- ping -c 3 far",
		RunE: func(cmd *cobra.Command, args []string) error {
			between, err := l.link(cmd)
			if err != nil {
				return err
			}
			if a.json && len(args) > 1 {
				return usagef("--json prints the world, not what a command in it prints: put --json behind the command")
			}
			w := scenario.World{Topology: scenario.Topology(args[0]), Link: between}
			if err := w.Check(); err != nil {
				return usageError{err}
			}
			return a.labUp(cmd.Context(), w, args[1:])
		},
	}
	l.add(c)
	return c
}

// labUp makes a world whose far host already answers, and either waits or runs a command in the
// near host.
//
// The far host serves from the start with a key of its own. The state of both hosts is a directory
// that is removed with the world, so no journal is left behind.
func (a *app) labUp(ctx context.Context, w scenario.World, command []string) error {
	running, err := lab.Up(ctx, w)
	if err != nil {
		return err
	}
	defer running.Close()
	for _, warning := range running.Warnings {
		fmt.Fprintf(a.err, "linerate: warning: %s\n", warning)
	}
	state, err := scratch.New("lab")
	if err != nil {
		return err
	}
	defer state.Close() // journals of the world alone
	key, near := wire.NewKey().String(), filepath.Join(state.Path, "near")
	stop, err := running.Serve(ctx, key, filepath.Join(state.Path, "far"), a.err)
	if err != nil {
		return err
	}
	defer stop()
	if len(command) == 0 {
		world := report.LabUpDocument{World: string(w.Topology), Key: key, State: near}
		for _, h := range running.Hosts {
			world.Hosts = append(world.Hosts, report.LabUpHost{Name: h.Name, Address: h.Address, Enter: running.Enter(h)})
		}
		doc := report.NewLabUp(a.envelope(""), world)
		if err := a.print(doc, func(text.Style) error { return labUpText(a.out, doc) }); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	// The environment carries key and state, so that `linerate measure far` works in the command
	// without flags.
	c := running.Near().Exec(ctx, command...)
	c.Env = []string{"LINERATE_KEY=" + key, "LINERATE_STATE=" + near}
	c.Stdin, c.Stdout, c.Stderr = a.in, raw(a.out), raw(a.err) // a shell of the user
	err = c.Run()
	var exit *lab.ExitError
	if errors.As(err, &exit) && exit.Code > 0 {
		return statusError{status: exit.Code}
	}
	return err
}

// labUpText shows how to enter the hosts of a world.
func labUpText(out io.Writer, d *report.LabUpDocument) error {
	var b strings.Builder
	for _, h := range d.Hosts {
		fmt.Fprintf(&b, "%-6s  %-10s  %s\n", h.Name, h.Address, h.Enter)
	}
	_, err := fmt.Fprintf(out, "%sin the near host:\n  export LINERATE_KEY=%s LINERATE_STATE=%s\n  linerate measure far\n",
		b.String(), d.Key, d.State)
	return err
}

// labHostCommand is a host of a world: this binary, started again in namespaces of its own. It
// starts itself because a minimal image may have no ip(8), no unshare(1) and no shell.
func (a *app) labHostCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "lab-host",
		Short:  "Be a host of a practice world (started by linerate itself)",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return lab.RunHost(cmd.Context()) },
	}
}
