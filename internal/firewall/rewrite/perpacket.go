package rewrite

import (
	"slices"

	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

const (
	// mostTraced bounds the packets that PerPacket traces at one hook, and mostSteps the rules that
	// they meet.
	mostTraced = 2000
	mostSteps  = 2_000_000
)

// PerPacket returns how many rules a packet meets at a hook, on average, before and after. Both are
// of the same packets, those at the ends of the rules' intervals. counted: a packet weighs as much
// as the counters that it increases have counted; otherwise all weigh the same.
func PerPacket(before, after *ruleset.Ruleset) (old, now float64, counted bool) {
	type traced struct {
		old, now float64
		counters []*ruleset.Counter
	}
	var all []traced
	shares := make(map[*ruleset.Counter]float64) // packets that increase a counter
	for _, hook := range hooks(before) {
		steps := 0
		for _, p := range equal.Directed(before, hook, mostTraced) {
			if steps > mostSteps {
				break
			}
			a, b := before.TraceMatches(hook, p, nil), after.TraceMatches(hook, p, nil)
			steps += a.Met + b.Met
			all = append(all, traced{float64(a.Met), float64(b.Met), a.Counters})
			for _, c := range a.Counters {
				shares[c]++
			}
		}
	}
	if len(all) == 0 {
		return 0, 0, false
	}
	var weights, plainOld, plainNow float64
	for _, t := range all {
		weight := 0.0
		for _, c := range t.counters {
			weight += float64(c.Packets) / shares[c]
		}
		old, now, weights = old+weight*t.old, now+weight*t.now, weights+weight
		plainOld, plainNow = plainOld+t.old, plainNow+t.now
	}
	if weights > 0 {
		return old / weights, now / weights, true
	}
	return plainOld / float64(len(all)), plainNow / float64(len(all)), false
}

// mostPriced bounds the packets whose rules are priced.
const mostPriced = 300

// nanoseconds returns what rules cost a packet on average, of those at the ends of the intervals of
// the old ones.
func nanoseconds(before, after *ruleset.Ruleset) float64 {
	p := cost.Measured()
	sum, packets := 0.0, 0
	prices := make(map[*ruleset.Rule][2]float64)
	for _, hook := range hooks(before) {
		for _, packet := range equal.Directed(before, hook, mostPriced) {
			packets++
			for _, step := range after.Trace(hook, packet, nil).Steps {
				both, ok := prices[step.Rule]
				if !ok {
					both[0], both[1] = p.Met(after.Program, step.Table, step.Rule)
					prices[step.Rule] = both
				}
				if step.Matched {
					sum += both[1]
				} else {
					sum += both[0]
				}
			}
		}
	}
	return sum / float64(max(packets, 1))
}

// hooks returns the hooks of a ruleset, each once.
func hooks(r *ruleset.Ruleset) []string {
	var all []string
	for _, t := range r.Tables {
		for _, c := range t.Chains {
			if c.Hook != "" && !slices.Contains(all, c.Hook) {
				all = append(all, c.Hook)
			}
		}
	}
	return all
}
