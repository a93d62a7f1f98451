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
// The zero Bound forbids every proven worsening; a guard that only enforces its limit has
// math.Inf(1) there.
type Guard struct {
	Bound float64 // relative worsening allowed: 0.5 allows ×1.5; +Inf allows any
	Floor float64 // in the guard's own unit: all better values count as equal, so tiny ones cannot veto

	// Limit is the worst allowed value, in the guard's own unit (rtt_p99_seconds: 0.005); 0 means
	// no limit. It vetoes a change under which the median is past the limit. If the value was past
	// the limit before, it vetoes a change only for making it worse. A gain without a value of the
	// guard-rail is not proven.
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

// judgeGuards returns the interval of every bounded guard-rail at a look. A guard-rail that some
// pairs lack gets an interval of its own number of pairs, or none.
//
// The same rank intervals judge guards and the objective, but a bound vetoes only if even the lower
// end of its interval is past it: "may have become worse" is no veto, or noise in a tail latency
// would forbid every gain. The guards do not share the confidence, because more guards can only
// make keeping rarer.
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

// unseen returns a guard-rail that has a limit but no value in any pair, or nothing.
func unseen(guards []GuardRun) string {
	for _, g := range guards {
		if g.Unseen {
			return g.Name
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
