package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/record"
)

// WatchOptions configure Watch. Zero values are sensible.
type WatchOptions struct {
	Root     host.Root     // the running system
	Duration time.Duration // up to [watch.MaxDuration]; default 3 s
	Progress func(step string)
	// Profile is how long the CPUs are sampled where one of them is the limit; 0: not at all.
	Profile time.Duration
}

// Watch judges this host by its present work, without a load: counters, CPUs, interrupts and
// sockets at two moments. It sends nothing and changes nothing. The snapshot comes first, so that
// its own cost is not judged.
func Watch(ctx context.Context, o WatchOptions) (*Verdict, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	o.Progress("reading this host")
	near, err := o.Root.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read this host: %w", err)
	}
	o.Progress("watching this host")
	span, err := watch.Host(ctx, o.Root, watch.Options{Duration: o.Duration})
	if err != nil {
		return nil, err
	}
	// What could not be watched leaves the same gap in the verdict as what could not be read.
	near.Warnings = append(near.Warnings, span.Warnings...)
	v := &Verdict{Case: evidence.Case{Near: near, Watched: []evidence.Span{evidence.Watched("near", near, span)}}}
	v.judge()
	if o.Profile > 0 && diagnose.WantsProfile(&v.Case, v.Findings, "near") {
		o.Progress("sampling the processors")
		v.Watched[0].Profile = sample(ctx, o.Profile)
		v.judge()
	}
	return v, nil
}

// sample returns a short profile of this host, and the waits for locks in a second after it; nil
// where the kernel does not allow one. The verdict stands without it.
func sample(ctx context.Context, d time.Duration) *evidence.Profile {
	p, err := record.Run(ctx, record.Options{Duration: d})
	if err != nil || p.Busy == 0 {
		return nil
	}
	record.Exact(ctx, p, time.Second, true)
	return evidenceOf(p)
}

// functionsShown is how many functions of a profile a case keeps.
const functionsShown = 10

// evidenceOf is what a verdict needs of a profile.
func evidenceOf(p *profile.Profile) *evidence.Profile {
	share := func(r profile.Row) evidence.StageShare {
		return evidence.StageShare{Name: r.Name, Share: r.Share, Low: r.ShareLow, High: r.ShareHigh}
	}
	out := &evidence.Profile{Event: p.Event, Samples: p.Busy}
	for _, s := range p.Stages {
		out.Stages = append(out.Stages, share(s))
	}
	for _, w := range p.PacketWork() {
		out.Work = append(out.Work, share(w))
	}
	for _, f := range p.Functions {
		if f.Stage != profile.StageUser && f.Samples > 0 && len(out.Functions) < functionsShown {
			out.Functions = append(out.Functions, evidence.FunctionShare{StageShare: share(f), Stage: f.Stage})
		}
	}
	if spinning := share(p.Spinning()); p.Busy > 0 {
		out.Spinning = &spinning
	}
	if p.Exact != nil && p.Exact.Locks {
		for _, w := range p.Exact.Waits[:min(functionsShown, len(p.Exact.Waits))] {
			out.Waits = append(out.Waits, evidence.LockWait{Kind: w.Kind, Function: w.Function, Callers: w.Callers,
				Stage: w.Stage, PerSecond: w.PerSecond, Ratio: w.Ratio})
		}
	}
	return out
}

// judge fills in the verdict of a complete case.
func (v *Verdict) judge() {
	judged := diagnose.Examine(v.Case)
	v.Findings, v.Blind = judged.Findings, judged.Blind
}
