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
	began := time.Now()
	o.defaults()
	judge := DiagnoseOptions{Root: o.Root, Direction: o.Direction, Streams: o.Streams, Progress: o.Step}
	if o.Budget > 0 {
		judge.Within = min(within, o.Budget/4)
	}
	before, err := Diagnose(ctx, far, judge)
	if err != nil {
		return nil, err
	}
	t := &Tuning{Before: before}
	if err := o.Objective.Unreachable(reachOf(before, o)); err != nil {
		return nil, err
	}
	if o.AskFor != nil {
		if o.Asked, err = o.AskFor(pathOf(before)); err != nil {
			return nil, err
		}
	}
	both := map[tune.Side]reader{tune.Near: near, tune.Far: far}
	refused := o.refusals(before, near)
	var candidates []tune.Candidate
	if o.Asked != nil {
		o.Step("reading the requested settings")
		candidates, refused.asked = askedFor(ctx, before, o.Asked, both)
	} else {
		candidates = withOffered(o, candidatesOf(before.Findings, o.Knobs), &refused)
	}
	if len(o.Wide) > 0 {
		o.Step("reading the requested knobs")
		candidates = widen(ctx, before, o, both, candidates)
	}
	if len(candidates) == 0 {
		t.Outcome = nothingToTune(before, o.Objective.Goal)
		if len(o.Wide) > 0 {
			t.Outcome.Reason = nothingOfThose
		}
		return t, nil
	}
	base := probing{
		objective: o.Objective, direction: o.Direction, streams: o.Streams, segment: o.Segment, warmUp: o.WarmUp,
		floodWarmUp: o.WarmUp,
		echoes:      before.echoes(), cards: before.cards(),
	}
	if base.segment == 0 {
		base.segment = segmentFor(before)
	}
	if base.warmUp == 0 {
		base.warmUp = warmUpFor(before)
	}
	if o.Budget > 0 {
		base = base.within(o.Budget-time.Since(began), o)
	}
	t.Plan = planOf(ctx, o, base, candidates, refused, both)
	t.Plan.RoundTrip = roundTrip(before)
	o.Planned(t.Plan)
	if o.DryRun || t.Plan.Open() == 0 {
		t.Outcome = t.Plan.nothingTried(o.DryRun)
		return t, nil
	}
	config := tune.DefaultConfig()
	config.AllowedDisturbance = o.Allow
	config.MaxTrials = o.MaxTrials
	config.Soak = o.Soak
	config.Seed = o.Seed
	config.Lookup = lookup
	config.Guards = guardsFor(o.Objective)
	config.Refuse = func(c tune.Candidate) string { return refused.of(ctx, c) }
	if o.Checkpoint != nil {
		config.Checkpoint = func(so *tune.Outcome) { o.Checkpoint(&Tuning{Before: before, Plan: t.Plan, Outcome: so}) }
	}
	if o.Budget > 0 {
		// The budget of the user includes the first diagnosis.
		config.Asked, config.Spent = o.Budget, time.Since(began)
		config.Budget = max(o.Budget-config.Spent, time.Second)
	}
	// The second diagnosis runs with the kept settings in force and loads the path once more. It
	// names the present limit, which may differ from the previous one.
	config.Refill = func(ctx context.Context, _ []tune.Change) ([]tune.Candidate, bool, error) {
		anew := judge.after(before, o.Objective.Goal)
		if o.Budget > 0 {
			left := o.Budget - time.Since(began) - t.Plan.afterwards()
			if left < anew.least(before) {
				o.Step("no time to diagnose again")
				return nil, false, nil
			}
			anew.Within = min(anew.Within, left)
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, left, errNoTime)
			defer cancel()
		}
		again, err := Diagnose(ctx, far, anew)
		if err != nil && errors.Is(context.Cause(ctx), errNoTime) {
			return nil, false, nil // the waiting candidates can still be tried
		}
		if err != nil {
			return nil, false, fmt.Errorf("judge again after a keep: %w", err)
		}
		if o.Asked != nil {
			return nil, enough(again) && !o.Thorough, nil
		}
		return candidatesOf(again.Findings, o.Knobs), enough(again) && !o.Thorough, nil
	}
	hosts := map[tune.Side]tune.Host{tune.Near: near, tune.Far: far}
	segments := newProber(far, base)
	segments.samplers = maps.Clone(o.Samplers)
	t.Outcome, err = tune.Run(ctx, config, segments, hosts, candidates, o.Progress)
	if t.Outcome != nil {
		t.Changes = changesOf(t.Outcome)
		t.Outcome.Warnings = slices.Concat(t.Outcome.Warnings, segments.notes, unmet(o.Objective, t.Outcome))
	}
	return t, err
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
