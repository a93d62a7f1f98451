package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// Plan is what a tune is going to do, known before any write.
type Plan struct {
	Objective  string
	RoundTrip  time.Duration // idle
	Segment    time.Duration // measured part of one
	WarmUp     time.Duration // cut off its front
	Candidates []Planned     // in the order in which they are tried
	// the time if every comparison is decided at its first look; the budget ends it earlier
	AtLeast time.Duration
	Notes   []string // restrictions, one sentence each

	each time.Duration // time of one segment with its overhead
}

// afterwards returns the time that a further verdict needs after it to be useful: a trial of its
// proposal, and the confirmation.
func (p *Plan) afterwards() time.Duration { return 2 * segmentsOfComparison * p.each }

// Planned is one candidate.
type Planned struct {
	tune.Candidate
	From        knob.Value // present value; empty: unreadable
	Disturbance knob.Disturbance
	Risk        string
	Refused     string        // why it is not tried; empty: it is
	AtLeast     time.Duration // time of its trial
}

// Open returns the number of candidates that can be tried.
func (p *Plan) Open() int {
	n := 0
	for _, c := range p.Candidates {
		if c.Refused == "" {
			n++
		}
	}
	return n
}

// The least segments of a comparison, six pairs; and of a search over levels, two per level.
const (
	segmentsOfComparison = 12
	segmentsOfLevel      = 2
)

// planOf reads the present values and estimates the time. It refuses a knob that it cannot read,
// with the reason.
func planOf(ctx context.Context, o TuneOptions, base probing, candidates []tune.Candidate, refused refusals,
	hosts map[tune.Side]reader) *Plan {
	tests := newProber(nil, base).specs
	p := &Plan{Objective: o.Objective.String(), Segment: base.segment, WarmUp: tests[0].WarmUp, each: base.each()}
	p.fill(ctx, o, candidates, refused, hosts)
	return p
}

// fill completes a plan whose segments are known.
func (p *Plan) fill(ctx context.Context, o TuneOptions, candidates []tune.Candidate, refused refusals,
	hosts map[tune.Side]reader) {
	segment := p.each
	fixed := 0
	for _, c := range candidates {
		one := Planned{Candidate: c, Refused: refused.of(ctx, c)}
		if d, known := lookup(c.Knob); known {
			one.Disturbance, one.Risk = d.Disturbance, d.Risk
		}
		if c.Side == tune.Far && refused.farFixed != "" {
			fixed++
		}
		if v, err := hosts[c.Side].Read(ctx, c.Knob); err == nil {
			one.From = v
		} else if one.Refused == "" {
			one.Refused = err.Error()
		}
		if one.Refused == "" {
			n := segmentsOfComparison
			if len(c.Levels) > 1 {
				n += segmentsOfLevel * len(c.Levels)
			}
			one.AtLeast = time.Duration(n) * segment
			p.AtLeast += one.AtLeast
		}
		p.Candidates = append(p.Candidates, one)
	}
	p.AtLeast += 2 * segmentsOfComparison * segment // pilot and confirmation
	if fixed > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s; %d of %d candidates belong to it", refused.farFixed, fixed,
			len(candidates)))
	}
	if o.MaxTrials > 0 && p.Open() > o.MaxTrials {
		p.Notes = append(p.Notes, fmt.Sprintf("%d candidates, of which the first %d are tried (--max-trials)", p.Open(),
			o.MaxTrials))
	}
	if o.Budget > 0 && p.Open() > 0 && p.AtLeast > o.Budget {
		p.Notes = append(p.Notes,
			fmt.Sprintf("the whole plan takes %v or more, but the budget is %v: what does not fit is left out",
				p.AtLeast.Round(time.Second), o.Budget))
	}
}

// nothingTried returns the outcome of a plan that is not carried out.
func (p *Plan) nothingTried(dryRun bool) *tune.Outcome {
	o := &tune.Outcome{
		Trials: []tune.Trial{}, Kept: []tune.Change{}, Segments: []tune.Segment{}, Final: &tune.Effect{Ratio: 1},
		State:  tune.StateUndone,
		Reason: "dry run: nothing was tried and nothing was changed",
	}
	if dryRun {
		return o
	}
	o.Reason = "no candidate can be tried here"
	for _, c := range p.Candidates {
		t := tune.Trial{Knob: c.Knob, From: c.From, Side: c.Side, Verdict: tune.Refused, Reason: c.Refused, Why: c.Why}
		if n := len(c.Levels); n > 0 {
			t.To = c.Levels[n-1]
		}
		o.Trials = append(o.Trials, t)
	}
	return o
}
