package loop

import (
	"fmt"
	"math"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// guardsFor returns the guard-rails of an objective: those of its goal, and its bounds.
//
// A flow freed from a limit fills queues that were empty before, so the tail of the round trip,
// like its mean, may become several times the idle one; a bound expresses that this matters.
// Datagrams are sent faster than the path carries them, so their effect on other traffic is part of
// the goal.
func guardsFor(o goal.Objective) map[string]tune.Guard {
	guards := tune.DefaultGuards()
	switch o.Goal {
	case goal.Throughput:
		guards[goal.GuardP99RTT] = tune.Guard{Bound: 4, Floor: 0.005}
	case goal.Packets:
		guards[goal.GuardP99RTT] = tune.Guard{Bound: 4, Floor: 0.005}
		guards[guardCPUPerMillion] = tune.Guard{Bound: 0.5, Floor: 0.5}
	}
	for _, l := range o.Limits() {
		g, bounded := guards[l.Guard]
		if !bounded {
			g.Bound = math.Inf(1)
		}
		// Zero would mean no limit.
		g.Limit, g.LowerIsWorse = max(l.Value, math.SmallestNonzeroFloat64), l.AtLeast
		guards[l.Guard] = g
	}
	return guards
}

// reachOf returns what the verdict shows of the path, as far as no remedy could change it.
func reachOf(v *Verdict, o TuneOptions) goal.Path {
	p := goal.Path{Streams: o.Streams}
	shorter := false
	for _, f := range v.Findings {
		switch f.Code {
		case evidence.InterruptModerationLatency, evidence.CPUPowerState, evidence.DelayedACKStall,
			evidence.EmulatedNIC:
			shorter = true // a host lengthens the round trip beyond that of the path
		}
	}
	flows := evidence.FlowsOf(&v.Case)
	if len(flows) == 0 {
		return p
	}
	flow := flows[0]
	if !shorter {
		p.IdleRTTSeconds = flow.IdleRTTSeconds
	}
	if card, at, ok := flow.SlowestLink(); ok {
		p.CeilingBitsPerSec = card.SpeedBitsPerSec
		p.CeilingWhy = fmt.Sprintf("%s of the %s host is a link of %s", card.Name, at.Name,
			unit.BitRate(card.SpeedBitsPerSec))
	}
	// The rate of a full path is its capacity, give or take the variation of an hour.
	const slack = 1.05
	if full := slack * flow.RateBitsPerSec; v.Limit().Code == evidence.LinkRateReached &&
		(p.CeilingBitsPerSec == 0 || full < p.CeilingBitsPerSec) {
		p.CeilingBitsPerSec = full
		p.CeilingWhy = fmt.Sprintf("it is full at %s already", unit.BitRate(flow.RateBitsPerSec))
	}
	return p
}

// unmet returns a sentence for each bound that the final result does not meet: the experiment
// refuses a change for breaking a bound, but cannot promise to repair one that was broken before.
func unmet(o goal.Objective, out *tune.Outcome) []string {
	now := map[string]float64{}
	if out.Baseline != nil {
		for name, v := range out.Baseline.Guards {
			now[name] = v
		}
	}
	if len(out.Kept) > 0 {
		for _, g := range out.Guards {
			now[g.Name] = g.Value // zero is a value: what the kept set brought to nothing
			if g.Unseen {
				delete(now, g.Name)
			}
		}
	}
	var texts []string
	for _, b := range o.Bounds {
		value, known := now[b.Guard()]
		switch {
		case !known:
			texts = append(texts, fmt.Sprintf("whether %s holds is unknown: it was not measured", b))
		case !b.Holds(value):
			texts = append(texts, fmt.Sprintf("%s is not met: it is %s", b, b.Format(value)))
		}
	}
	return texts
}
