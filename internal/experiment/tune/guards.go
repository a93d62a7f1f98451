package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
)

// Guard bounds what a gain may cost. It vetoes in two ways: the guard-rail worsened by more than
// Bound, or it left Limit.
//
// The zero Bound forbids every proven worsening; a guard that only enforces its limit has
// math.Inf(1) there.
type Guard struct {
	Bound float64 // relative worsening allowed: 0.5 allows ×1.5; +Inf allows any
	Floor float64 // in the guard's own unit: all better values count as equal, so tiny ones cannot veto

	// Limit is the worst allowed value, in the guard's own unit (rtt_p99_seconds: 0.005); 0 means
	// no limit. It vetoes a change under which the median is past the limit. If the value was past
	// the limit before, it vetoes a change only for making it worse. A gain is not proven when fewer
	// than half of the pairs have a value of the guard-rail.
	Limit float64

	// LowerIsWorse inverts the guard, for a rate that must not fall: Limit is then the least
	// allowed value, and every ratio of the guard is A/B, so that above 1 is still worse.
	LowerIsWorse bool
}

// past reports whether a value is on the bad side of the limit.
func (g Guard) past(v float64) bool {
	if g.LowerIsWorse {
		return v < g.Limit
	}
	return v > g.Limit
}

// lift replaces all values better than the floor by the floor. Below the floor a ratio says
// nothing: a change from one retransmitted segment to three is a factor of three and means nothing.
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

// judgeGuard compares a guard-rail under both arms. The interval is that of the look if every pair
// has the guard-rail.
//
// A limit applies to medians and not to an interval. It is the user's plain condition, and a change
// under which half of the segments break it does not meet it. The reference is the other arm of the
// same pairs, not the pilot: what the hour did to both is not caused by the change.
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
	case g.Limit == 0 || len(ratios) == 0:
	case g.past(stats.Median(both[0])):
		out.PastLimit = ratio.Low > 1
	default:
		out.PastLimit = g.past(out.Value)
	}
	// The median of all pairs is on the good side for sure only when half of them are seen to be. What
	// is missing may be missing because of the change: where its load lets no ping through, the pairs
	// that have one were the best.
	out.Unseen = g.Limit != 0 && !out.PastLimit && 2*len(ratios) < look.Pairs
	return out
}

// judgeGuards returns the interval of every bounded guard-rail at a look. A guard-rail that some
// pairs lack gets an interval of its own number of pairs, or none.
//
// The same rank intervals judge guards and the objective, but a bound vetoes only if even the lower
// end of its interval is past it: "may have become worse" is no veto, or noise in a tail latency
// would forbid every gain. The guards do not share the confidence, because more guards can only
// make keeping rarer.
//
// The second result says as a clause which limit cannot be judged; empty: none.
func (s *session) judgeGuards(plan *stats.Boundary, p pairs, look stats.Look) (all []GuardRun, unseen string) {
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Guards)) {
		guard := s.cfg.Guards[name]
		both, seen := p.guards[name]
		if !seen && guard.Limit == 0 {
			continue
		}
		run := s.judgeGuard(plan, name, guard, both, look)
		all = append(all, run)
		switch n := len(both[0]); {
		case unseen != "" || !run.Unseen:
		case n == 0:
			unseen = name + " was not measured"
		default:
			unseen = fmt.Sprintf("%s was measured in %d of %s", name, n, unit.Counted(look.Pairs, "pair"))
		}
	}
	return all, unseen
}

// veto returns the reason why guard-rails forbid a gain, or nothing.
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

// finite copies guards without values that JSON cannot represent; nil if nothing is left.
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
