package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// Plan is what a tune is going to do, known before anything is written.
type Plan struct {
	Objective  string
	RoundTrip  time.Duration // idle
	Segment    time.Duration // measured part of one
	WarmUp     time.Duration // cut off its front
	Candidates []Planned     // in the order in which they are tried
	// what it takes when every comparison is decided at its first look; the budget ends it earlier
	AtLeast time.Duration
	Notes   []string // what narrows it, one sentence each

	each time.Duration // of one segment, with all that belongs to it
}

// afterwards is what must be left of a budget for a further verdict to be of use: a trial of what
// it proposes, and the confirmation.
func (p *Plan) afterwards() time.Duration { return 2 * segmentsOfComparison * p.each }

// Planned is one candidate.
type Planned struct {
	tune.Candidate
	From        knob.Value // present value; empty: could not be read
	Disturbance knob.Disturbance
	Risk        string
	Refused     string        // why it will not be tried; empty: it will
	AtLeast     time.Duration // what trying it takes
}

// Open counts the candidates that can be tried.
func (p *Plan) Open() int {
	n := 0
	for _, c := range p.Candidates {
		if c.Refused == "" {
			n++
		}
	}
	return n
}

// What a comparison takes at least: six pairs; and a search over levels, two segments for each.
const (
	segmentsOfComparison = 12
	segmentsOfLevel      = 2
)

// planOf reads the present values and reckons the time. A knob that cannot be read is refused with
// the reason.
func planOf(ctx context.Context, o TuneOptions, base probing, candidates []tune.Candidate, refused refusals,
	hosts map[tune.Side]reader) *Plan {
	tests := newProber(nil, base).specs
	p := &Plan{Objective: o.Objective.String(), Segment: base.segment, WarmUp: tests[0].WarmUp, each: base.each()}
	segment := p.each
	fixed := 0
	for _, c := range candidates {
		one := Planned{Candidate: c, Refused: refused.of(ctx, c)}
		if d, known := knob.Catalogue().Lookup(c.Knob); known {
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
		p.Notes = append(p.Notes, fmt.Sprintf("%s; %d of %d candidates are there", refused.farFixed, fixed,
			len(candidates)))
	}
	if o.MaxTrials > 0 && p.Open() > o.MaxTrials {
		p.Notes = append(p.Notes, fmt.Sprintf("%d candidates, of which the first %d are tried (--max-trials)", p.Open(),
			o.MaxTrials))
	}
	if o.Budget > 0 && p.Open() > 0 && p.AtLeast > o.Budget {
		p.Notes = append(p.Notes,
			fmt.Sprintf("all of it takes %v or more, and the budget is %v: what does not fit is left out",
				p.AtLeast.Round(time.Second), o.Budget))
	}
	return p
}

// nothingTried is the outcome of a plan that is not carried out.
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
		o.Trials = append(o.Trials, tune.Trial{
			Knob: c.Knob, From: c.From, To: c.Levels[len(c.Levels)-1], Side: c.Side, Verdict: tune.Refused,
			Reason: c.Refused, Why: c.Why,
		})
	}
	return o
}
