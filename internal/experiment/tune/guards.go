package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/stats"
)

// Guard bounds what a gain may cost. It vetoes in two ways: the guard-rail worsened by more than
// Bound, or it left Limit.
//
// The zero value of Bound forbids every proven worsening; a guard that is to hold its limit only
// has math.Inf(1) there.
type Guard struct {
	Bound float64 // relative worsening allowed: 0.5 allows ×1.5; +Inf allows any
	Floor float64 // in the guard's own unit: values better than it are all equally good, so tiny ones cannot veto

	// Limit is the worst value that may be, in the guard's own unit (rtt_p99_seconds: 0.005). 0: no
	// limit. A change is vetoed when the median under it is past the limit. Where it was past the
	// limit before, a change is vetoed only if it makes that worse still. A gain under which the
	// guard-rail was never seen is not proven.
	Limit float64

	// LowerIsWorse turns the guard round, for a rate that must not fall: Limit is then the least
	// value that may be, and every ratio of the guard is A/B, so that above 1 still is worse.
	LowerIsWorse bool
}

// past tells whether a value is on the bad side of the limit.
func (g Guard) past(v float64) bool {
	if g.LowerIsWorse {
		return v < g.Limit
	}
	return v > g.Limit
}

// lift makes all values that are better than the floor equal to it.
//
// Below the floor a ratio says nothing: a retransmit ratio that goes from one segment to three is
// three times as much and means nothing to anybody.
func (g Guard) lift(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		switch {
		case g.Floor == 0:
			out[i] = v
		case g.LowerIsWorse:
			out[i] = min(v, g.Floor)
		default:
			out[i] = max(v, g.Floor)
		}
	}
	return out
}

// judgeGuard compares a guard-rail under both arms. The interval is that of the look when the
// guard-rail was seen in every pair.
//
// A limit is asked of medians and not of an interval. It is the user's plain condition, and a
// change under which half of the segments break it does not meet it. The present arm is the other
// one of the same pairs, not the pilot's: what the hour did to both is no fault of the change.
func (s *session) judgeGuard(plan *stats.Boundary, name string, g Guard, both [2][]float64, look stats.Look) GuardRun {
	a, b := g.lift(both[0]), g.lift(both[1])
	if g.LowerIsWorse {
		a, b = b, a
	}
	ratios := stats.PairedLogRatio(a, b)
	interval := stats.SignedRank(ratios, s.cfg.Confidence)
	if len(ratios) == look.Pairs {
		interval = plan.Interval(ratios)
	}
	ratio := interval.Ratio()
	out := GuardRun{
		Name: name, Ratio: known(ratio.Estimate), Low: known(ratio.Low), High: known(ratio.High),
		Bound: known(1 + g.Bound),
		Worse: ratio.Low > 1+g.Bound, Limit: g.Limit, Value: known(stats.Median(both[1])),
	}
	switch {
	case g.Limit == 0:
	case len(ratios) == 0:
		out.Unseen = true
	case g.past(stats.Median(both[0])):
		out.PastLimit = ratio.Low > 1
	default:
		out.PastLimit = g.past(out.Value)
	}
	return out
}

// judgeGuards gives the interval of every bounded guard-rail at a look. A guard-rail that was not
// seen in every pair gets an interval of its own number of pairs, or none.
//
// Guards are judged by the same rank intervals as the objective, but a bound vetoes only when even
// the lower end of its interval is past it: "may have become worse" is no veto, or noise in a tail
// latency would forbid every gain. Confidence is not divided among them, because more guards can
// only make keeping rarer.
func (s *session) judgeGuards(plan *stats.Boundary, p pairs, look stats.Look) []GuardRun {
	var out []GuardRun
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Guards)) {
		guard := s.cfg.Guards[name]
		if _, seen := p.guards[name]; seen || guard.Limit != 0 {
			out = append(out, s.judgeGuard(plan, name, guard, p.guards[name], look))
		}
	}
	return out
}

// veto gives the reason why guard-rails forbid a gain, or nothing.
func veto(guards []GuardRun) string {
	for _, g := range guards {
		switch {
		case g.Worse:
			return fmt.Sprintf("%s becomes worse by at least ×%.3g, allowed is ×%.3g", g.Name, g.Low, g.Bound)
		case g.PastLimit:
			return fmt.Sprintf("%s becomes %.4g, past its limit of %.4g", g.Name, g.Value, g.Limit)
		}
	}
	return ""
}

// unseen names a guard-rail with a limit that no pair has told anything about, or nothing.
func unseen(guards []GuardRun) string {
	for _, g := range guards {
		if g.Unseen {
			return g.Name
		}
	}
	return ""
}

// finite copies guards without what JSON cannot hold; nil when nothing is left.
func finite(guards map[string]float64) map[string]float64 {
	var out map[string]float64
	for name, v := range guards {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if out == nil {
			out = make(map[string]float64, len(guards))
		}
		out[name] = v
	}
	return out
}
