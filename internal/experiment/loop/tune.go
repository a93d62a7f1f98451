package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/owner"
	"github.com/linerate/linerate/internal/traffic"
)

// FarHost is the far host of a whole tune: it can be loaded, read and changed.
type FarHost interface {
	Far
	tune.Host
}

// TuneOptions configure a tune. Zero values are sensible.
type TuneOptions struct {
	Root      host.Root
	Objective goal.Objective    // default throughput, without bounds
	Direction traffic.Direction // default up
	Streams   int               // default 1
	Allow     knob.Disturbance  // highest disturbance class of a candidate
	Budget    time.Duration     // for everything, diagnoses included; 0: no bound
	MaxTrials int               // measured trials; 0: no bound
	// how long the committed set stays in force before it is tested once more, after the budget; 0:
	// no such test
	Soak    time.Duration
	Segment time.Duration      // measured part of one segment; 0: from the round trip
	WarmUp  time.Duration      // cut from the front of each segment; 0: from the round trip, and none for datagrams
	Knobs   func(knob.ID) bool // nil: every candidate of the findings; otherwise only these
	Wide    []knob.Definition  // also try these knobs without a finding
	Asked   []Asked            // try these settings, and nothing else; nil: none
	// AskFor returns Asked when the path is known; nil: Asked is known before.
	AskFor   func(Path) ([]Asked, error)
	Offered  []Offered // also try these for the goal packets, after those of the findings
	FarFixed string    // clause that says why the far end cannot be changed; empty: it can
	// clause that says why the far end must not change one knob, empty: it may; nil: it may change all
	FarRefuses func(knob.ID) string
	ForceOwned bool   // also try knobs that another program rewrites
	Thorough   bool   // try every candidate, even if the path is full before the last one
	DryRun     bool   // stop after the plan
	Seed       uint64 // of the random order
	// Samplers attach a profile of each side to each arm of a trial; nil: none.
	Samplers map[tune.Side]Sampler
	Step     func(string)
	Planned  func(*Plan) // called before the first segment, before any write
	Progress func(tune.Event)

	// Checkpoint gets everything known so far after each segment and each verdict, to read during
	// the call only.
	Checkpoint func(*Tuning)
}

func (o *TuneOptions) defaults() {
	if o.Objective.Goal == "" {
		o.Objective.Goal = goal.Throughput
	}
	if o.Direction == "" {
		o.Direction = traffic.Up
	}
	if o.Streams == 0 {
		o.Streams = 1
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.Planned == nil {
		o.Planned = func(*Plan) {}
	}
}

// Tuning is the record of a whole tune: the first verdict, the plan, the experiment, and the
// changes it left in force.
type Tuning struct {
	Before  *Verdict
	Plan    *Plan // nil: nothing to plan
	Outcome *tune.Outcome
	Changes []journal.Change
}

// Tune runs the loop: diagnose, try the remedies one at a time at both ends, keep what is proven,
// confirm the total. When it returns, either the confirmed set is committed on both hosts or both
// hosts are unchanged; an error means the latter, and says if even that failed. The result includes
// a started experiment even beside an error. For an objective that the path cannot meet it returns
// a *goal.UnreachableError and writes nothing.
//
// The candidates come from the findings, and from Wide; or from Asked alone. Trying every knob of
// the catalogue would take hours, and at any confidence some of many useless ones pass by chance.
func Tune(ctx context.Context, near tune.Host, far FarHost, o TuneOptions) (*Tuning, error) {
	o.defaults()
	r := &tuner{o: o, near: near, far: far, began: time.Now()}
	if err := r.diagnose(ctx); err != nil {
		return nil, err
	}
	if err := r.choose(ctx); err != nil {
		return nil, err
	}
	if len(r.candidates) == 0 {
		return r.nothing(), nil
	}
	r.plan(ctx)
	if o.DryRun || r.t.Plan.Open() == 0 {
		r.t.Outcome = r.t.Plan.nothingTried(o.DryRun)
		return r.t, nil
	}
	return r.t, r.experiment(ctx)
}

// tuner is one Tune in progress.
type tuner struct {
	o     TuneOptions
	near  tune.Host
	far   FarHost
	began time.Time

	judge      DiagnoseOptions // of the first verdict
	t          *Tuning
	refused    refusals
	candidates []tune.Candidate
	segments   probing
}

// readers are the two hosts as a plan reads them.
func (r *tuner) readers() map[tune.Side]reader {
	return map[tune.Side]reader{tune.Near: r.near, tune.Far: r.far}
}

// diagnose makes the first verdict. The error is a *goal.UnreachableError for an objective that the
// path cannot meet.
func (r *tuner) diagnose(ctx context.Context) error {
	r.judge = DiagnoseOptions{Root: r.o.Root, Direction: r.o.Direction, Streams: r.o.Streams, Progress: r.o.Step}
	if r.o.Budget > 0 {
		r.judge.Within = min(within, r.o.Budget/4)
	}
	before, err := Diagnose(ctx, r.far, r.judge)
	if err != nil {
		return err
	}
	r.t = &Tuning{Before: before}
	return r.o.Objective.Unreachable(reachOf(before, r.o))
}

// choose collects the candidates: what the user asked for, or what the findings and the caller
// propose, and the knobs that the user named.
func (r *tuner) choose(ctx context.Context) (err error) {
	before := r.t.Before
	if r.o.AskFor != nil {
		if r.o.Asked, err = r.o.AskFor(pathOf(before)); err != nil {
			return err
		}
	}
	r.refused = r.o.refusals(before, r.near)
	if r.o.Asked != nil {
		r.o.Step("reading the requested settings")
		r.candidates, r.refused.asked = askedFor(ctx, before, r.o.Asked, r.readers())
	} else {
		r.candidates = withOffered(r.o, candidatesOf(before.Findings, r.o.Knobs), &r.refused)
	}
	if len(r.o.Wide) > 0 {
		r.o.Step("reading the requested knobs")
		r.candidates = widen(ctx, before, r.o, r.readers(), r.candidates)
	}
	return nil
}

// nothing is the result without a candidate.
func (r *tuner) nothing() *Tuning {
	r.t.Outcome = nothingToTune(r.t.Before, r.o.Objective.Goal)
	if len(r.o.Wide) > 0 {
		r.t.Outcome.Reason = nothingOfThose
	}
	return r.t
}

// plan chooses the segments, and reads and shows what the candidates would change.
func (r *tuner) plan(ctx context.Context) {
	before := r.t.Before
	base := probing{
		objective: r.o.Objective, direction: r.o.Direction, streams: r.o.Streams, segment: r.o.Segment,
		warmUp: r.o.WarmUp, floodWarmUp: r.o.WarmUp,
		echoes: before.echoes(), cards: before.cards(),
	}
	if base.segment == 0 {
		base.segment = segmentFor(before)
	}
	if base.warmUp == 0 {
		base.warmUp = warmUpFor(before)
	}
	if r.o.Budget > 0 {
		base = base.within(r.o.Budget-time.Since(r.began), r.o)
	}
	r.segments = base
	r.t.Plan = planOf(ctx, r.o, base, r.candidates, r.refused, r.readers())
	r.t.Plan.RoundTrip = roundTrip(before)
	r.o.Planned(r.t.Plan)
}

// experiment tries the candidates.
func (r *tuner) experiment(ctx context.Context) error {
	hosts := map[tune.Side]tune.Host{tune.Near: r.near, tune.Far: r.far}
	segments := newProber(r.far, r.segments)
	segments.samplers = maps.Clone(r.o.Samplers)
	var err error
	r.t.Outcome, err = tune.Run(ctx, r.config(ctx), segments, hosts, r.candidates, r.o.Progress)
	if r.t.Outcome != nil {
		r.t.Changes = changesOf(r.t.Outcome)
		r.t.Outcome.Warnings = slices.Concat(r.t.Outcome.Warnings, segments.notes, unmet(r.o.Objective, r.t.Outcome))
	}
	return err
}

// config returns the rules of the experiment.
func (r *tuner) config(ctx context.Context) tune.Config {
	c := r.o.config(r.began)
	c.Lookup = lookup
	c.Guards = guardsFor(r.o.Objective)
	c.Refuse = func(c tune.Candidate) string { return r.refused.of(ctx, c) }
	if r.o.Checkpoint != nil {
		c.Checkpoint = func(so *tune.Outcome) {
			r.o.Checkpoint(&Tuning{Before: r.t.Before, Plan: r.t.Plan, Outcome: so})
		}
	}
	c.Refill = r.judgeAgain
	return c
}

// judgeAgain diagnoses with the kept settings in force and loads the path once more. The new
// verdict names the present limit, which may differ from the previous one.
func (r *tuner) judgeAgain(ctx context.Context, _ []tune.Change) (fresh []tune.Candidate, full bool, err error) {
	anew := r.judge.after(r.t.Before, r.o.Objective.Goal)
	if left, bounded := r.o.timeToJudge(r.began, r.t.Plan); bounded {
		if left < anew.least(r.t.Before) {
			r.o.Step("no time to diagnose again")
			return nil, false, nil
		}
		anew.Within = min(anew.Within, left)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, left, errNoTime)
		defer cancel()
	}
	again, err := Diagnose(ctx, r.far, anew)
	if err != nil && errors.Is(context.Cause(ctx), errNoTime) {
		return nil, false, nil // the waiting candidates can still be tried
	}
	if err != nil {
		return nil, false, fmt.Errorf("judge again after a keep: %w", err)
	}
	if r.o.Asked != nil {
		return nil, enough(again) && !r.o.Thorough, nil
	}
	return candidatesOf(again.Findings, r.o.Knobs), enough(again) && !r.o.Thorough, nil
}

// config returns the rules of an experiment that follow from the options.
func (o TuneOptions) config(began time.Time) tune.Config {
	c := tune.DefaultConfig()
	c.AllowedDisturbance, c.MaxTrials, c.Soak, c.Seed = o.Allow, o.MaxTrials, o.Soak, o.Seed
	if o.Budget > 0 {
		// The budget of the user includes the first diagnosis.
		c.Asked, c.Spent = o.Budget, time.Since(began)
		c.Budget = max(o.Budget-c.Spent, time.Second)
	}
	return c
}

// timeToJudge returns how long a further verdict may take, so that a trial of its proposal and the
// confirmation still fit the budget; false: there is none.
func (o TuneOptions) timeToJudge(began time.Time, p *Plan) (left time.Duration, bounded bool) {
	return o.Budget - time.Since(began) - p.afterwards(), o.Budget > 0
}

// errNoTime ends a diagnosis for which the budget has no time.
var errNoTime = errors.New("no time left in the budget")

// refusals collects the reasons against candidates that are known before any change.
func (o TuneOptions) refusals(v *Verdict, near tune.Host) refusals {
	r := refusals{allow: o.Allow, farFixed: o.FarFixed, farRefuses: o.FarRefuses, force: o.ForceOwned,
		owners: map[tune.Side][]owner.Owner{}}
	if v.Near != nil {
		r.owners[tune.Near] = v.Near.Owners
	}
	if v.Far != nil {
		r.owners[tune.Far] = v.Far.Owners
	}
	r.near, _ = near.(foreseer)
	return r
}

// enough reports whether a verdict leaves nothing to gain: the path is full, or no fault is left. A
// noisy bench is not enough: that finding says nothing about the remaining gain.
func enough(v *Verdict) bool {
	return v.Limit().Code == evidence.LinkRateReached || v.Limit().Code == evidence.Healthy
}

// nothingOfThose is the reason if the user named knobs, which may have nothing to do with the
// limit.
const nothingOfThose = "nothing to tune: neither host has one of the requested knobs with another level to try " +
	"within --allow"

// nothingToTune returns the outcome if no finding has a knob as its remedy: the link, the path or
// the peer is the limit. Its baseline is the loaded run of the diagnosis, so that the document
// still shows what the path carries; it has no pairs and therefore no interval.
func nothingToTune(v *Verdict, g goal.Goal) *tune.Outcome {
	o := &tune.Outcome{
		Trials: []tune.Trial{}, Kept: []tune.Change{}, Segments: []tune.Segment{},
		Final: &tune.Effect{Ratio: 1}, State: tune.StateUndone,
		Reason: "nothing to tune: " + v.Limit().Title,
	}
	if s := v.Stream(); s != nil && g == goal.Throughput {
		o.Baseline = &tune.Baseline{Objective: s.ThroughputBitsPerSec, Segments: 1}
	}
	return o
}

// changesOf returns what an experiment left in force, as the journals of the two hosts know it. The
// time is that of the list; the journals have the exact time of each change under these ids.
func changesOf(o *tune.Outcome) []journal.Change {
	state := map[tune.State]journal.State{tune.StateCommitted: journal.Committed,
		tune.StateTrial: journal.Trial}[o.State]
	if state == "" {
		return nil
	}
	var changes []journal.Change
	for _, k := range o.Kept {
		changes = append(changes, journal.Change{
			ID: k.ID, Time: time.Now().UTC(), Knob: k.Knob, Side: string(k.Side), From: k.From, To: k.To, State: state,
		})
	}
	return changes
}
