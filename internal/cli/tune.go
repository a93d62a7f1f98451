package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/change/plan"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/report"
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
	advice    string
	role      string
	html      string
	thorough  bool
	dryRun    bool
	force     bool
	budget    time.Duration
	warmUp    time.Duration
	soak      time.Duration
	trials    int
	seed      uint64
	profile   bool
	asked     []loop.Asked // not a flag: the settings of the files that apply tries; nil: none
}

// tuneCommand runs an experiment. --allow defaults to d1: such a change affects new connections
// only and leaves other traffic on the host alone. A higher class needs a user who knows what else
// runs there.
func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:         "tune TARGET",
		Annotations: exits(exitPartial, exitRolledBack, exitNotPermitted, exitLocked, exitUnreachable, exitInterrupted),
		Short:       "Try remedies one at a time at both ends; keep only what is proven",
		Long: `Diagnose the path, then try the remedies that the findings propose: one change at a time, near and
far, in randomised pairs of segments with new connections. A change is kept only when the lower end
of its interval exceeds the minimum useful effect and nothing else gets worse. The kept set is
confirmed as a whole, and changes that are no longer needed are dropped. All other changes are
undone; after Ctrl-C, a lost peer or a killed process every change is.

The other side is only changed when its serve runs with --allow-tuning, and as far as that
permits: d1 unless it names another class. An ssh:// target starts it with the class of --allow,
as the user that ssh logs in. tune reports and leaves alone the settings that another program on
a host rewrites (TuneD, irqbalance, NetworkManager, …). It prints the plan before it writes
anything; --dry-run ends there. A --budget too small to prove anything on this path ends the run
before the first change, with exit status 3 and the budget to ask for. --soak tests the changes
once more after they have been in force for that time; Ctrl-C during this wait leaves them in
force.

For the goal packets, the rules of this host's packet filter are a candidate too, where firewall optimise
has shorter ones and no other program writes to their table.

--advice FILE tries the settings of a file instead of the remedies: a sysctl.conf, a TuneD profile, a
script or a page, as check-advice reads them. The experiment then shows which of them help on this
path. Settings that this kernel ignores or no longer has, and harmful ones, are left alone, with the reason.

--role ROLE tries what linerate plan would set for a host of this role: bulk, web, router,
firewall, latency, virtual, nameserver or nfs. The values follow from this host and the round trip of
this path. It also chooses the goal, unless --goal or --objective does. Values are candidates:
only what is proven to help on this path stays.

--profile samples the processors of both hosts while each segment runs (1 % of a CPU, the same in both
arms). Each trial then says what differs in the stages of the network path and in the functions of
the kernel: in time per packet, or per kilobyte where the change makes packets larger.

disk:PATH tunes the disk below a directory, a file or a block device of this host in the same way:
its read-ahead, scheduler and queue. It only reads, except that a directory gets a file without a
name, as with linerate disk. The goals are throughput (sequential reads through the cache), latency
(single random reads) and operations (random reads with many in flight).

--objective states what to improve and what it may not cost: GOAL where TERM<VALUE and …
A change that breaks a bound is not kept, however large its gain. The goals are throughput, latency
and packets (small datagrams that arrive). The terms are:
  ` + strings.Join(goal.Terms(), "\n  "),
		Example: "  linerate tune 192.0.2.7 --key-file FILE\n" +
			"  linerate tune ssh://root@db2 --goal latency --budget 5m --html result.html\n" +
			"  linerate tune 192.0.2.7 --objective 'throughput where p99_rtt<5ms and cpu<80%'\n" +
			"  linerate tune 192.0.2.7 --knobs 'ethtool:*/coalesce.*' --dry-run\n" +
			"  linerate tune 192.0.2.7 --advice /etc/sysctl.d/90-network.conf\n" +
			"  linerate tune 192.0.2.7 --role latency\n" +
			"  linerate tune disk:/srv --goal throughput",
		RunE: func(cmd *cobra.Command, args []string) error {
			if path, ok := strings.CutPrefix(args[0], diskScheme); ok {
				if strings.TrimSpace(path) == "" {
					return usagef("tune %s: after %s comes the PATH of a directory or file", args[0], diskScheme)
				}
				return a.tuneDisk(cmd, path, f)
			}
			return a.tune(cmd, args[0], f)
		},
	}
	f.add(c, "what to improve: throughput (the default), latency or packets; of a disk throughput, latency or operations")
	c.Flags().StringVar(&f.knobs, "knobs", "",
		"try only knobs that match one of these comma-separated globs, also those that no finding proposes")
	c.Flags().StringVar(&f.advice, "advice", "",
		"try only the settings of this file of tuning advice (sysctl.conf, TuneD profile, script); - is standard input")
	c.Flags().StringVar(&f.role, "role", "",
		"try only what a host of this role may need: bulk, web, router, firewall, latency, virtual, nameserver or nfs")
	c.Flags().BoolVar(&f.profile, "profile", false,
		"sample the processors of both hosts in each segment, and show where a change saves their time")
	return a.forScripts(a.streaming(c), false)
}

// add registers the flags of every experiment on a path; goals is the help of --goal.
func (f *tuneFlags) add(c *cobra.Command, goals string) {
	f.target.add(c)
	c.Flags().StringVar(&f.goal, "goal", "", goals)
	c.Flags().StringVar(&f.objective, "objective", "", "goal with bounds, as above")
	c.Flags().StringVar(&f.allow, "allow", "d1",
		"highest disturbance of a change: d0 none, d1 new connections only, d2 short loss, d3 link down")
	c.Flags().StringVar(&f.html, "html", "", "also write the result as one self-contained page to this file")
	c.Flags().DurationVar(&f.budget, "budget", 10*time.Minute,
		"time for the whole run, diagnoses included; at least "+leastBudget.String())
	c.Flags().IntVar(&f.trials, "max-trials", 20, "most candidates to try")
	c.Flags().DurationVar(&f.soak, "soak", 0,
		"wait this long after the commit, test the changes again, and undo them if the gain is gone")
	c.Flags().DurationVar(&f.load.duration, "duration", 0,
		"measured part of one segment (default: from the round trip)")
	c.Flags().DurationVar(&f.warmUp, "warm-up", 0,
		"time to leave out at the start of one segment (default: from the round trip)")
	c.Flags().IntVar(&f.load.parallel, "parallel", 1, "connections at the same time")
	c.Flags().BoolVar(&f.load.reverse, "reverse", false, "improve the direction in which the other side sends")
	c.Flags().BoolVar(&f.thorough, "thorough", false,
		"try every candidate, even when the path is full before the last one")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan and end; write nothing on either host")
	c.Flags().BoolVar(&f.force, "force-owned", false, "also try settings that another program on the host rewrites")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the random order (default: a new one)")
}

// leastBudget is the time of the first diagnosis, which names what to try: a second of echoes, one
// of transactions, three of load, and the warm-up of the load.
const leastBudget = 8 * time.Second

// options checks the flags before anything is connected or opened.
//
// The budget is at most 50 minutes, because the far side grants a trial at most an hour and the
// lease must outlast the experiment (leaseFor).
func (f tuneFlags) options() (loop.TuneOptions, error) {
	o, err := f.bounds()
	if err != nil {
		return o, err
	}
	o.Objective, err = f.wanted()
	return o, err
}

// bounds are the options without the objective.
func (f tuneFlags) bounds() (loop.TuneOptions, error) {
	o := loop.TuneOptions{
		Direction: f.load.direction(), Streams: f.load.parallel, Budget: f.budget, MaxTrials: f.trials, Soak: f.soak,
		Segment: f.load.duration, WarmUp: f.warmUp, Seed: f.seed, Thorough: f.thorough, DryRun: f.dryRun,
		ForceOwned: f.force,
	}
	var err error
	switch {
	case f.budget > 0 && f.budget < leastBudget:
		return o, usagef("--budget %v: too small: the first diagnosis alone takes up to %v, and a proof takes longer",
			f.budget, leastBudget)
	case f.budget <= 0 || f.budget > 50*time.Minute:
		return o, usagef("--budget %v: must be longer than 0s and at most 50m", f.budget)
	case f.soak < 0 || f.soak > 24*time.Hour:
		return o, usagef("--soak %v: must be at most 24h", f.soak)
	case f.trials < 1:
		return o, usagef("--max-trials %d: must be at least 1", f.trials)
	case f.load.parallel < 1 || f.load.parallel > traffic.MaxStreams:
		return o, usagef("--parallel %d: must be from 1 to %d", f.load.parallel, traffic.MaxStreams)
	}
	if o.Allow, err = knob.ParseDisturbance(f.allow); err != nil || o.Allow > knob.DisturbsLink {
		return o, usagef("--allow %q: not one of d0, d1, d2, d3", f.allow)
	}
	switch {
	case f.advice != "" && f.knobs != "":
		return o, usagef("--advice and --knobs both say what to try: give one of them")
	case f.role != "" && (f.advice != "" || f.knobs != ""):
		return o, usagef("--role, --advice and --knobs all say what to try: give one of them")
	case f.advice == "-" && f.target.key.key == "-":
		return o, usagef("--advice - and --key - both read standard input: give the key by --key-file or LINERATE_KEY")
	}
	if f.knobs != "" {
		if _, err := path.Match(f.knobs, ""); err != nil {
			return o, usagef("--knobs %q: %v", f.knobs, err)
		}
		if o.Wide, o.Knobs = knob.Catalogue().Widened(f.knobs); len(o.Wide) == 0 {
			return o, usageError{flagError{fmt.Errorf("--knobs %q: the catalogue has no knob with this name", f.knobs),
				"linerate knobs PATTERN lists the knobs"}}
		}
	}
	// The seed only orders the arms. It does not make a run repeatable, because the path is not.
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	return o, nil
}

// wanted returns the objective of --goal or --objective.
func (f tuneFlags) wanted() (goal.Objective, error) {
	if f.objective == "" {
		o, err := goal.Parse(cmp.Or(f.goal, string(goalOfRole(plan.Role(f.role)))))
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

// openForTune opens the journal, takes back what a crash has left, and takes expired trials of
// others back from then on. It refuses to tune beside a trial that is still open. The command is
// what the user typed, for its errors.
func (a *app) openForTune(ctx context.Context, command string) (*journal.Journal, error) {
	j, err := a.openJournal(journal.Lease, "near")
	if err != nil {
		return nil, err
	}
	if _, err = j.Recover(ctx); err == nil {
		err = j.OnTrial()
		if err != nil {
			err = fmt.Errorf("%s: %w", command,
				flagError{err, "linerate confirm or linerate undo ends the trial; or wait until then"})
		}
	}
	if err != nil {
		_ = j.Close() // the first error explains
		return nil, err
	}
	j.Tend(nil)
	return j, nil
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
	page, err := newPage("html", f.html)
	if err != nil {
		return err
	}
	defer page.discard()
	ctx := cmd.Context()
	if f.role != "" {
		role, err := plan.ParseRole(f.role)
		if err != nil {
			return usageError{err} // it names the flag
		}
		o.AskFor = askedByRole(ctx, cmd.Name(), role)
	}
	if f.asked != nil {
		o.Asked = f.asked
	} else if f.advice != "" {
		if o.Asked, err = a.askedByAdvice(f.advice, p); err != nil {
			return err
		}
	}

	// The near journal comes first, so that a second tune on this host is refused before it sends
	// any traffic.
	j, err := a.openForTune(ctx, cmd.Name())
	if err != nil {
		return err
	}
	defer j.Close()
	// Far and near trials get the same time, so that neither side is left changed while the other
	// has gone back.
	f.target.trial, f.target.tuning = leaseFor(f.budget), &o.Allow
	record, err := a.recordRun(target, string(o.Objective.Goal))
	if err != nil {
		return err
	}
	f.target.run = record.recorder.ID
	client, err := a.connect(ctx, target, f.target, p)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := farOnTrial(ctx, client, o.DryRun); err != nil {
		return fmt.Errorf("%s: %w", cmd.Name(), err)
	}
	release, err := a.loads(cmd.Name())
	if err != nil {
		return err
	}
	defer release()
	var far loop.FarHost = client
	if a.path != nil {
		far = a.path(client)
	}

	o.FarFixed, o.FarRefuses = farRefusals(client.Info())
	o.Step = func(step string) { p.Status("%s", step) }
	o.Planned = func(plan *loop.Plan) { showPlan(p, plan) }
	o.Progress = tuneProgress(p, func(x float64) string { return goalText(o.Objective.Goal, x) })
	if f.profile && !o.DryRun {
		if o.Samplers, err = samplers(client); err != nil {
			return profileError(err)
		}
	}
	near := loop.Near{Journal: j, Backend: hazard.Backend{Backend: live.New()}, For: leaseFor(f.budget),
		Run: record.recorder.ID}
	if o.Objective.Goal == goal.Packets && o.Asked == nil {
		if near.Backend, o.Offered, err = a.offeredRules(ctx, j, near.Backend, o.DryRun, p); err != nil {
			return err
		}
	}
	if o.DryRun {
		return a.tunePlan(ctx, near, far, target, o, p)
	}
	record.began = time.Now()
	o.Checkpoint = record.checkpoint
	t, err := loop.Tune(ctx, near, far, o)
	p.Done()
	if err != nil {
		if t != nil && t.Outcome != nil {
			d := record.finish(t, err)
			return lostPeer(tuneError{err, t.Outcome.State != tune.StateUndone}, j.Changes(), d)
		}
		return err
	}
	doc := record.finish(t, nil)
	// The result is printed before the page is written, so that the user knows what was kept even
	// if the page fails.
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

// farOnTrial refuses a far host where another command's trial is in force: tune would diagnose the
// trial, which ends in the middle of its measurements.
func farOnTrial(ctx context.Context, client *peer.Client, dryRun bool) error {
	recovered := client.Info().AllowTuning && !dryRun
	if recovered {
		// Undoing nothing makes the far host take back what has expired or lost its guard. Another
		// error than that its journal is in use comes again with the first change, if there is one.
		if err := client.Undo(ctx); errors.Is(err, journal.ErrLocked) {
			return err
		}
	}
	// A host without a journal has no trials, and a lost one shows at the next call.
	changes, _ := client.History(ctx)
	for _, c := range changes {
		// What a restart has ended is still a trial in the history of a host that may not be tuned.
		if c.State == journal.Trial && c.Deadline != nil && (recovered || c.Deadline.After(time.Now())) {
			err := fmt.Errorf("%w on %s: change %s of %s until %s", journal.ErrOnTrial,
				cmp.Or(client.Info().Host, "the far host"), c.ID, c.Knob, c.Deadline.Local().Format(time.TimeOnly))
			return flagError{err, "linerate confirm or linerate undo there ends the trial; or wait until then"}
		}
	}
	return nil
}

// farRefusals returns why nothing on the far host, or one of its settings, cannot be changed from
// here. That host decides again when a setting is written.
func farRefusals(info peer.Info) (all string, one func(knob.ID) string) {
	name := cmp.Or(info.Host, "the far host")
	if !info.AllowTuning {
		return fmt.Sprintf("nothing is changed on %s: its `linerate serve` runs without --allow-tuning", name), nil
	}
	allowed, err := knob.ParsePermission(info.Tuning)
	if err != nil {
		return "", nil // another release of linerate: the trial shows what it allows
	}
	return "", func(id knob.ID) string {
		err := allowed.Check(id)
		if err == nil {
			return ""
		}
		return fmt.Sprintf("%s runs `linerate serve --allow-tuning=%s`: %v", name, allowed, err)
	}
}

// lostPeer returns err, or, when the peer was lost in the middle, what that means for the changes
// in trial at both ends: the errors of the single calls to the other host say nothing more.
func lostPeer(err error, here []journal.Change, d *report.TuneDocument) error {
	var gone *wire.Error
	if !errors.As(err, &gone) || !errors.Is(err, wire.ErrPeerGone) || errors.Is(err, context.Canceled) {
		return err
	}
	for _, c := range here {
		if c.State == journal.Trial {
			return err // a trial is left here too, and the error names it
		}
	}
	why := gone.Cause()
	if why != "" {
		why = " (" + why + ")"
	}
	if n := len(d.PossiblyCommitted); n > 0 {
		return statusError{exitUnreachable, "the connection to the other host is lost" + why +
			" while that host committed: changes on this host were undone, and " + unit.Counted(n, "change") +
			" may stay on that host",
			"when it answers again, `linerate undo --run " + cmp.Or(d.Run, "last") + "` takes back what stayed"}
	}
	return statusError{exitUnreachable, "the connection to the other host is lost" + why +
		": trials on this host were undone, and the guard on that host undoes its own",
		"is the path to it still up? `linerate history` there shows what was undone"}
}

// leaseFor returns how long a guard lets an experiment go on. The guard notices a writer that dies
// at once; the lease is for a writer that hangs, so it need only outlast the budget. The far side
// grants at most an hour, counted anew from every change there.
func leaseFor(budget time.Duration) time.Duration { return min(budget+5*time.Minute, time.Hour) }

// tuneStatus returns status 0 when the run was completed, also with "nothing to tune"; 3 when time
// ran out, or the bench was too disturbed to judge; 5 when a change had been kept and confirmation
// failed.
//
// Partial comes before rolled back, because a run that is out of time could not confirm. A run that
// reached its soak could.
func tuneStatus(o *tune.Outcome) error {
	switch {
	case o.RolledBack && o.Soak != nil:
		return statusError{status: exitRolledBack}
	case o.Partial:
		return statusError{status: exitPartial}
	case o.RolledBack:
		return statusError{status: exitRolledBack}
	case o.Unreliable && len(o.Kept) == 0:
		return statusError{status: exitPartial}
	}
	return nil
}

// tuneProgress shows an experiment: decisions stay on the screen, the current step rewrites one
// line. That line shows the last segment beside the estimate so far, so it changes every second or
// two.
func tuneProgress(p *progress.Line, figure func(float64) string) func(tune.Event) {
	estimate := ""
	return func(e tune.Event) {
		switch e.Kind {
		case tune.EventSegment:
			p.Status("%s  %s", segmentText(e, figure), estimate)
		case tune.EventEstimate:
			estimate = e.Text
			p.Status("%s", estimate)
		default:
			estimate = ""
			p.Step("%s", e.Text)
		}
	}
}

// segmentText describes one segment: its arm, its pair and its result.
func segmentText(e tune.Event, figure func(float64) string) string {
	if e.Discard != "" {
		return e.Text
	}
	arm := map[string]string{"A": "without", "B": "with"}[e.Arm]
	if arm == "" {
		arm = e.Arm // a level in the search for the best one
	}
	return fmt.Sprintf("%s, pair %d: %s", arm, e.Pair, figure(e.Objective))
}

// goalText writes a figure of a goal.
func goalText(g goal.Goal, x float64) string {
	switch g {
	case goal.Latency:
		return unit.FormatCount(x) + " transactions/s"
	case goal.Packets:
		return unit.FormatCount(x) + " packets/s"
	}
	return unit.BitRate(x).String()
}
