package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	drawn "github.com/linerate/linerate/internal/report/page"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

type tuneFlags struct {
	target    targetFlags
	load      loadFlags
	goal      string
	objective string
	allow     string
	knobs     string
	html      string
	thorough  bool
	dryRun    bool
	force     bool
	budget    time.Duration
	warmUp    time.Duration
	soak      time.Duration
	trials    int
	seed      uint64
}

// d1 is the default of --allow: it may change what new connections get and leaves the traffic of
// others on the host alone. Anything above it is the decision of a person who knows what else runs
// there.
func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune TARGET",
		Short: "Try remedies one at a time at both ends; keep only what is proven",
		Long: `Diagnose the path, then try what the findings propose, one change at a time, near and far, in
randomised pairs with new connections. A change is kept only when the lower end of its interval
beats the minimum useful effect and nothing else gets worse. The kept set is confirmed as a
whole, and what is no longer needed is dropped. Everything else is taken back; Ctrl-C, a lost
peer or a killed process take all of it back.

The other side must have been started with --allow-tuning, or only this side is changed; an ssh:// target
is started so, as the user that ssh logs in. What another
program on a host will write again (TuneD, irqbalance, NetworkManager, …) is told and left alone.
The plan is told before anything is written; --dry-run ends there. A --budget that cannot prove
anything on this path ends the run before anything is changed, with exit status 3 and with what to
ask for. With --soak the changes are tested once more when they have been in force for so long;
Ctrl-C while it waits leaves them in force, untested.

--objective says what to improve and what it may not cost: GOAL where TERM<VALUE and …
A change that breaks a bound is not kept, whatever it gains. The goals are throughput, latency
and packets (small datagrams that arrive); the terms:
  ` + strings.Join(goal.Terms(), "\n  "),
		Example: "  linerate tune 192.0.2.7 --key KEY\n  linerate tune ssh://root@db2 --goal latency --budget 5m --html result.html\n" +
			"  linerate tune 192.0.2.7 --objective 'throughput where p99_rtt<5ms and cpu<80%'\n  linerate tune 192.0.2.7 --knobs 'ethtool:*/coalesce.*' --dry-run",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.tune(cmd, args[0], f) },
	}
	f.target.add(c)
	c.Flags().StringVar(&f.goal, "goal", "", "what to improve: throughput (the default), latency or packets")
	c.Flags().StringVar(&f.objective, "objective", "", "the goal with bounds, as above")
	c.Flags().StringVar(&f.allow, "allow", "d1",
		"highest disturbance of a change: d0 none, d1 new connections only, d2 short loss, d3 link down")
	c.Flags().StringVar(&f.knobs, "knobs", "",
		"try only knobs whose name matches one of these globs (with commas between), also those that no finding proposed")
	c.Flags().StringVar(&f.html, "html", "", "also write the result as one self-contained page to this file")
	c.Flags().DurationVar(&f.budget, "budget", 10*time.Minute, "time for everything, diagnoses included")
	c.Flags().IntVar(&f.trials, "max-trials", 20, "how many candidates are tried at most")
	c.Flags().DurationVar(&f.soak, "soak", 0,
		"after the commit wait so long, test the changes once more, and take them back if the gain is gone")
	c.Flags().DurationVar(&f.load.duration, "duration", 0,
		"measured part of one segment (default: from the round trip)")
	c.Flags().DurationVar(&f.warmUp, "warm-up", 0, "cut from the front of one segment (default: from the round trip)")
	c.Flags().IntVar(&f.load.parallel, "parallel", 1, "connections at the same time")
	c.Flags().BoolVar(&f.load.reverse, "reverse", false, "improve the direction in which the other side sends")
	c.Flags().BoolVar(&f.thorough, "thorough", false,
		"try every candidate, also when the path is full before the last one")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "tell the plan and end; nothing is written on either host")
	c.Flags().BoolVar(&f.force, "force-owned", false, "try also what another program on the host will write again")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the random order (default: a new one)")
	return c
}

// options checks the flags before anything is connected or opened.
//
// The budget ends at 50 minutes, because a far side grants a trial an hour at most and the lease
// must outlast the experiment (leaseFor).
func (f tuneFlags) options() (loop.TuneOptions, error) {
	o := loop.TuneOptions{
		Direction: f.load.direction(), Streams: f.load.parallel, Budget: f.budget, MaxTrials: f.trials, Soak: f.soak,
		Segment: f.load.duration, WarmUp: f.warmUp, Seed: f.seed, Thorough: f.thorough, DryRun: f.dryRun,
		ForceOwned: f.force,
	}
	var err error
	if o.Objective, err = f.wanted(); err != nil {
		return o, err
	}
	switch {
	case f.budget <= 0 || f.budget > 50*time.Minute:
		return o, usagef("--budget %v: must be longer than nothing and at most 50m", f.budget)
	case f.load.duration < 0 || f.warmUp < 0:
		return o, usagef("--duration and --warm-up must not be negative")
	case f.soak < 0 || f.soak > 24*time.Hour:
		return o, usagef("--soak %v: must be at most 24h", f.soak)
	case f.trials < 1:
		return o, usagef("--max-trials %d: must be at least 1", f.trials)
	case f.load.parallel < 1 || f.load.parallel > traffic.MaxStreams:
		return o, usagef("--parallel %d: must be from 1 to %d", f.load.parallel, traffic.MaxStreams)
	}
	allowed := map[string]knob.Disturbance{
		"d0": knob.DisturbsNothing, "d1": knob.DisturbsNewSockets, "d2": knob.DisturbsBriefLoss,
		"d3": knob.DisturbsLink,
	}
	var ok bool
	if o.Allow, ok = allowed[f.allow]; !ok {
		return o, usagef("--allow %q: not one of d0, d1, d2, d3", f.allow)
	}
	if f.knobs != "" {
		if _, err := path.Match(f.knobs, ""); err != nil {
			return o, usagef("--knobs %q: %v", f.knobs, err)
		}
		if o.Wide, o.Knobs = knob.Catalogue().Widened(f.knobs); len(o.Wide) == 0 {
			return o, usageError{flagError{fmt.Errorf("--knobs %q: no knob of the catalogue is called so", f.knobs),
				"linerate knobs PATTERN lists what there is"}}
		}
	}
	// The seed only orders the arms: by it alone a run is not repeatable, as the path is not.
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	return o, nil
}

// wanted is the objective of --goal or --objective.
func (f tuneFlags) wanted() (goal.Objective, error) {
	if f.objective == "" {
		o, err := goal.Parse(cmp.Or(f.goal, string(goal.Throughput)))
		if err != nil || len(o.Bounds) > 0 {
			return o, usagef("--goal %q: not one of throughput, latency, packets; bounds go into --objective", f.goal)
		}
		return o, nil
	}
	o, err := goal.Parse(f.objective)
	if err != nil {
		return o, usageError{err}
	}
	if f.goal != "" && f.goal != string(o.Goal) {
		return o, usagef("--goal %s and --objective %q contradict each other: give one of them", f.goal, f.objective)
	}
	return o, nil
}

func (a *app) tune(cmd *cobra.Command, target string, f tuneFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	p, err := a.newProgress()
	if err != nil {
		return err
	}
	defer p.Done()
	page, err := newPage(f.html)
	if err != nil {
		return err
	}
	defer page.discard()
	ctx := cmd.Context()

	// The near journal first: a second tune on this host must be told so before it makes any
	// traffic.
	j, err := a.openJournal(journal.Lease, "near")
	if err != nil {
		return err
	}
	defer j.Close()
	if _, err := j.Recover(ctx); err != nil {
		return err
	}
	// Far and near trials get the same time, so that neither side is left changed while the other
	// has gone back.
	f.target.trial, f.target.tuning = leaseFor(f.budget), true
	client, err := a.connect(ctx, target, f.target, p)
	if err != nil {
		return err
	}
	defer client.Close()
	var far loop.FarHost = client
	if a.path != nil {
		far = a.path(client)
	}

	if !client.Info().AllowTuning {
		o.FarFixed = fmt.Sprintf("nothing is changed on %s: its `linerate serve` runs without --allow-tuning",
			cmp.Or(client.Info().Host, "the far host"))
	}
	o.Step = func(step string) { p.Status("%s", step) }
	o.Planned = func(plan *loop.Plan) { tellPlan(p, plan) }
	o.Progress = tuneProgress(p, o.Objective.Goal)
	near := loop.Near{Journal: j, Backend: live.New(), For: leaseFor(f.budget)}
	if o.DryRun {
		return a.tunePlan(ctx, near, far, target, o, p)
	}
	record, err := a.recordRun(target, string(o.Objective.Goal))
	if err != nil {
		return err
	}
	o.Checkpoint = record.checkpoint
	t, err := loop.Tune(ctx, near, far, o)
	p.Done()
	if err != nil {
		if t != nil && t.Outcome != nil {
			record.finish(t, err)
			return lostPeer(tuneError{err, t.Outcome.State != tune.StateUndone}, j.Changes())
		}
		return err
	}
	doc := record.finish(t, nil)
	// The result is told before the page is written: whatever becomes of the page, nobody has to
	// wonder what was kept.
	if err := a.print(doc, func(s text.Style) error { return text.Tune(a.out, doc, s) }); err != nil {
		return err
	}
	if page != nil {
		if err := page.write(func(w io.Writer) error { return drawn.Tune(w, doc) }); err != nil {
			return err
		}
	}
	return tuneStatus(t.Outcome)
}

// lostPeer is err, or where the peer went away in the middle, what that means for the changes that
// were in trial at both ends. What each call to the other host met then says nothing more.
func lostPeer(err error, here []journal.Change) error {
	var gone *wire.Error
	if !errors.As(err, &gone) || !errors.Is(err, wire.ErrPeerGone) || errors.Is(err, context.Canceled) {
		return err
	}
	for _, c := range here {
		if c.State == journal.Trial {
			return err // not all is well here either, and the error names it
		}
	}
	why := gone.Cause()
	if why != "" {
		why = " (" + why + ")"
	}
	return statusError{exitUnreachable, "the other host is gone" + why +
		": what was in trial here was taken back, and that host takes its own trials back by itself",
		"is the path to it still up? `linerate history` there tells what it took back"}
}

// leaseFor is how long a guard lets an experiment go on. A writer that dies is noticed at once; the
// lease is for one that hangs, so it need only outlast the budget. A far side grants an hour at
// most, counted anew from every change there.
func leaseFor(budget time.Duration) time.Duration { return min(budget+5*time.Minute, time.Hour) }

// tuneStatus is 0 when the run came to its end, also when that end is "nothing to tune"; 3 when
// time ran out; 5 when something had been kept and did not stand confirmation.
//
// Partial comes before rolled back: a run that was out of time did not get the chance to confirm.
// One that came as far as its soak did.
func tuneStatus(o *tune.Outcome) error {
	switch {
	case o.RolledBack && o.Soak != nil:
		return statusError{status: exitRolledBack}
	case o.Partial:
		return statusError{status: exitPartial}
	case o.RolledBack:
		return statusError{status: exitRolledBack}
	}
	return nil
}

// tuneProgress shows an experiment: what is decided stays on the screen, what is under way rewrites
// one line. The line tells the last segment beside the estimate so far, so that something moves
// every second or two.
func tuneProgress(p *progress.Line, g goal.Goal) func(tune.Event) {
	estimate := ""
	return func(e tune.Event) {
		switch e.Kind {
		case tune.EventSegment:
			p.Status("%s  %s", segmentText(e, g), estimate)
		case tune.EventEstimate:
			estimate = e.Text
			p.Status("%s", estimate)
		default:
			estimate = ""
			p.Step("%s", e.Text)
		}
	}
}

// segmentText tells one segment: which arm, which pair, and what it gave.
func segmentText(e tune.Event, g goal.Goal) string {
	if e.Discard != "" {
		return e.Text
	}
	arm := map[string]string{"A": "without", "B": "with"}[e.Arm]
	if arm == "" {
		arm = e.Arm // a level in the search for the best one
	}
	figure := unit.BitRate(e.Objective).String()
	switch g {
	case goal.Latency:
		figure = unit.FormatCount(e.Objective) + " transactions/s"
	case goal.Packets:
		figure = unit.FormatCount(e.Objective) + " packets/s"
	}
	return fmt.Sprintf("%s, pair %d: %s", arm, e.Pair, figure)
}

// page is a result page that is still empty.
type page struct{ file *os.File }

// newPage opens the file of a page before the work begins: minutes later is a bad time to find that
// it cannot be written.
func newPage(name string) (*page, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, statusError{exitFailed, "write page: " + err.Error(), "--html FILE, somewhere you may write"}
	}
	return &page{f}, nil
}

// write fills the page; one that was cut short is removed.
func (p *page) write(render func(io.Writer) error) error {
	err := render(p.file)
	if closeErr := p.file.Close(); err == nil {
		err = closeErr
	}
	name := p.file.Name()
	p.file = nil
	if err != nil {
		_ = os.Remove(name) // the error in hand is the one to tell
		return fmt.Errorf("write page %s: %w", name, err)
	}
	return nil
}

// discard removes a page that was never filled.
func (p *page) discard() {
	if p == nil || p.file == nil {
		return
	}
	_ = p.file.Close() // nothing was written
	_ = os.Remove(p.file.Name())
}
