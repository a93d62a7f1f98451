package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/firewall/apply"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// mostTuned is the number of rules up to which tune looks for shorter ones: their proof takes some
// seconds of the budget. linerate firewall optimise takes its time.
const mostTuned = 3000

// offeredRules returns the shorter rules of this host as candidates of an experiment, and a backend
// that has them as knobs. Rules that cannot be read or have no shorter form are no candidates;
// those that another program would rewrite are refused ones.
func (a *app) offeredRules(ctx context.Context, j *journal.Journal, backend knob.Backend, dryRun bool,
	p *progress.Line) (knob.Backend, []loop.Offered, error) {
	p.Status("looking for shorter rules of the packet filter")
	all, err := read.Live(ctx)
	switch {
	case errors.Is(err, read.ErrNone), errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		return backend, nil, nil
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case err != nil:
		p.Step("the rules of the packet filter are no candidate: %s", oneSentence(err))
		return backend, nil, nil
	}
	rules := 0
	for _, r := range all {
		rules += countRules(r)
	}
	if rules > mostTuned {
		p.Step("the packet filter has %d rules, more than the %d that tune rewrites: linerate firewall optimise does", rules,
			mostTuned)
		return backend, nil, nil
	}
	prices, err := a.rulePrices(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	_, offers, err := a.optimised(ctx, "", all, prices)
	if err != nil {
		p.Step("the rules of the packet filter are no candidate: %s", oneSentence(err))
		return backend, nil, nil
	}
	dir, err := a.stateDir()
	if err != nil {
		return nil, nil, err
	}
	tables := &apply.Tables{Dir: ruleDir(dir)}
	var out []loop.Offered
	for _, o := range offers {
		if len(o.result.Changed) == 0 || o.before.Program == ruleset.IPFW || o.before.Program == ruleset.PF {
			continue
		}
		some, err := offeredTables(ctx, o, tables, j.Changes(), dryRun)
		if err != nil {
			p.Step("the rules of the packet filter are no candidate: %s", oneSentence(err))
			continue
		}
		out = append(out, some...)
	}
	return apply.Host{Backend: backend, Tables: tables}, out, nil
}

// offeredTables returns a candidate for each table of an offer. The journal finds what it needs to
// change one in the state directory, unless nothing is written.
func offeredTables(ctx context.Context, o offer, tables *apply.Tables, changes []journal.Change,
	dryRun bool) ([]loop.Offered, error) {
	plans, left, err := planned(ctx, o, changes)
	if err != nil {
		return nil, err
	}
	why := fmt.Sprintf("a packet meets %.1f of its rules instead of %.1f, with the same verdict and counters",
		o.result.After, o.result.Before)
	var out []loop.Offered
	for _, plan := range plans {
		if dryRun {
			tables.Keep(plan)
		} else if err := tables.Add(plan); err != nil {
			return nil, err
		}
		out = append(out, loop.Offered{Candidate: tune.Candidate{Side: tune.Near, Knob: plan.ID(),
			Levels: []knob.Value{plan.To()}, Why: why}})
	}
	for _, k := range left {
		out = append(out, loop.Offered{Refused: k.why, Candidate: tune.Candidate{Side: tune.Near, Why: why,
			Knob: ruleKnob(o, k.table), Levels: []knob.Value{"shorter rules"}}})
	}
	return out, nil
}
