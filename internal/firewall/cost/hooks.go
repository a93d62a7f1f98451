package cost

import (
	"cmp"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// hooksOf returns the hooks of a ruleset in the order in which a packet passes them.
func hooksOf(r *ruleset.Ruleset) (names []string) {
	for _, t := range r.Tables {
		for _, c := range t.Chains {
			if c.Hook != "" && !slices.Contains(names, c.Hook) {
				names = append(names, c.Hook)
			}
		}
	}
	sorting.StableFunc(names, func(a, b string) int { return cmp.Compare(order(a), order(b)) })
	return names
}

// order is the order in which a packet passes the hooks.
func order(hook string) int {
	return slices.Index([]string{"ingress", "prerouting", "input", "forward", "output", "postrouting", "egress"}, hook)
}

// entry is a base chain and the packets that enter it.
type entry struct {
	table   *ruleset.Table
	chain   *ruleset.Chain
	packets float64
}

// entering returns the base chains of a hook, as they were read, with the packets that enter each.
// Where the chain's own counters know only some of them, it is what the other chains of the hook
// saw, less what was dropped before: a packet passes all base chains of its protocol.
func (w *walker) entering(hook string) []entry {
	var all []entry
	for _, t := range w.rules.Tables {
		for _, c := range t.Chains {
			if c.Hook == hook {
				all = append(all, entry{t, c, w.own(t, c)})
			}
		}
	}
	byPriority := make([]int, len(all))
	for i := range byPriority {
		byPriority[i] = i
	}
	sorting.StableFunc(byPriority, func(a, b int) int {
		return cmp.Compare(all[a].chain.Priority, all[b].chain.Priority)
	})
	// First what came to the hook, by network protocol, then what came to each chain.
	came, gone := make(map[string]float64), make(map[string]float64)
	for _, i := range byPriority {
		e := all[i]
		came[e.table.Family] = max(came[e.table.Family], e.packets+gone[e.table.Family])
		gone[e.table.Family] += w.lost(e)
	}
	came["all"] = max(came["inet"], came["netdev"], came["bridge"], came["ip"]+came["ip6"])
	clear(gone)
	for _, i := range byPriority {
		e := &all[i]
		var here float64
		switch family := e.table.Family; {
		case e.chain.Counter != nil || e.chain.Type == "nat" || family == "arp" || w.rules.Program == ruleset.PF:
			// The policy's counter is exact, and the others see other packets.
		case family == "ip":
			here = max(came["ip"], came["all"]-came["ip6"])
		case family == "ip6":
			here = came["ip6"] // unless a chain of IPv6 counted there is no reason to believe in it
		default:
			here = came["all"]
		}
		e.packets = max(e.packets, here-gone["all"])
		gone["all"] += w.lost(*e)
	}
	return all
}

// own returns the packets that enter a base chain, as far as its counters know.
func (w *walker) own(t *ruleset.Table, c *ruleset.Chain) float64 {
	entering := w.taken(t, c)
	if c.Counter != nil {
		entering += float64(c.Counter.Packets)
	}
	entering = max(entering, highest(c))
	for _, r := range c.Rules {
		entering = max(entering, float64(r.Evaluations))
	}
	return entering
}

// lost returns the packets that the rules of a base chain itself drop.
func (w *walker) lost(e entry) (sum float64) {
	for _, r := range e.chain.Rules {
		if n, known, _ := hits(r); known {
			if v := ending(r).Kind; v == ruleset.Drop || v == ruleset.Reject {
				sum += n
			}
		}
	}
	return min(sum, e.packets)
}

// tracks reports whether rules make the kernel track connections.
func tracks(r *ruleset.Ruleset) bool {
	for _, t := range r.Tables {
		for _, c := range t.Chains {
			if c.Type == "nat" && len(c.Rules) > 0 {
				return true
			}
			for _, rule := range c.Rules {
				for _, s := range rule.Statements {
					switch s := s.(type) {
					case ruleset.Match:
						if slices.ContainsFunc(s.Key, func(k ruleset.Term) bool { return k.Field == ruleset.State }) {
							return true
						}
					case ruleset.VerdictMap:
						if slices.ContainsFunc(s.Key, func(k ruleset.Term) bool { return k.Field == ruleset.State }) {
							return true
						}
					case ruleset.Opaque:
						if s.Effect == ruleset.EffectNAT {
							return true
						}
					}
				}
			}
		}
	}
	return false
}
