package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// tunePlan is the dry run: it diagnoses and plans as a tune does, and ends there.
func (a *app) tunePlan(ctx context.Context, near tune.Host, far loop.FarHost, target string, o loop.TuneOptions,
	p *progress.Line) error {
	began := time.Now()
	t, err := loop.Tune(ctx, near, far, o)
	p.Done()
	if err != nil {
		return err
	}
	doc := report.NewTune(a.envelope(t.Before.Near.Name), report.TuneRun{
		Target: target, Goal: string(o.Objective.Goal), Findings: t.Before.Findings, Outcome: t.Outcome,
		Duration: time.Since(began),
	})
	doc.Plan = planDocument(t.Plan)
	return a.print(doc, func(s text.Style) error { return text.TunePlan(a.out, doc, doc.Plan, s) })
}

// showPlan prints which candidates will be tried and which not, before anything is written.
func showPlan(p *progress.Line, plan *loop.Plan) {
	for _, note := range plan.Notes {
		p.Step("%s", note)
	}
	for _, c := range plan.Candidates {
		if c.Refused != "" {
			p.Step("left alone: %s %s: %s", c.Side, c.Knob, c.Refused)
		}
	}
	candidates := "1 candidate"
	if n := plan.Open(); n != 1 {
		candidates = fmt.Sprintf("%d candidates", n)
	}
	p.Step("plan: %s, about %s for each segment, %s or more in all", candidates,
		unit.FormatSeconds((plan.Segment + plan.WarmUp).Seconds()), unit.FormatSeconds(plan.AtLeast.Seconds()))
}

// planDocument returns a plan in the form of documents; nil for no plan.
func planDocument(plan *loop.Plan) *report.TunePlan {
	if plan == nil {
		return nil
	}
	d := &report.TunePlan{
		Objective: plan.Objective, RoundTripSeconds: plan.RoundTrip.Seconds(), SegmentSeconds: plan.Segment.Seconds(),
		WarmUpSeconds:   plan.WarmUp.Seconds(),
		EstimateSeconds: plan.AtLeast.Seconds(), Notes: plan.Notes,
		Candidates: make([]report.PlannedCandidate, 0, len(plan.Candidates)),
	}
	for _, c := range plan.Candidates {
		d.Candidates = append(d.Candidates, report.PlannedCandidate{
			Side: c.Side, Knob: c.Knob, From: c.From, Levels: c.Levels, Disturbance: c.Disturbance, Risk: c.Risk,
			Why: c.Why, Refused: c.Refused,
			EstimateSeconds: c.AtLeast.Seconds(),
		})
	}
	return d
}
