package ruleset

import (
	"errors"
	"fmt"
)

// errChanged reports rules that are not those of an earlier reading.
var errChanged = errors.New("the rules changed between the readings")

// Subtract leaves on the counters what they counted since an earlier reading of the same rules.
// Changed rules, and counters that went back, are an error, after which the rules are of no use.
func (r *Ruleset) Subtract(earlier *Ruleset) error {
	if r.Program != earlier.Program || r.Generation != earlier.Generation || len(r.Tables) != len(earlier.Tables) {
		return errChanged
	}
	done := make(map[*Counter]bool) // named counters are shared
	for i, t := range r.Tables {
		e := earlier.Tables[i]
		if t.Family != e.Family || t.Name != e.Name || len(t.Chains) != len(e.Chains) {
			return errChanged
		}
		for j, c := range t.Chains {
			if c.Name != e.Chains[j].Name || len(c.Rules) != len(e.Chains[j].Rules) {
				return fmt.Errorf("chain %s: %w", c.Name, errChanged)
			}
			pairs := [][2]*Counter{{c.Counter, e.Chains[j].Counter}}
			for k, rule := range c.Rules {
				was := e.Chains[j].Rules[k]
				now, then := rule.allCounters(), was.allCounters()
				if len(now) != len(then) || rule.Handle != was.Handle || rule.Text != was.Text {
					return fmt.Errorf("chain %s, rule %d: %w", c.Name, k+1, errChanged)
				}
				for n := range now {
					pairs = append(pairs, [2]*Counter{now[n], then[n]})
				}
				if rule.Evaluations < was.Evaluations {
					return fmt.Errorf("chain %s, rule %d: %w", c.Name, k+1, errChanged)
				}
				rule.Evaluations -= was.Evaluations
			}
			for _, p := range pairs {
				if p[0] == nil || p[1] == nil || done[p[0]] {
					continue
				}
				done[p[0]] = true
				if p[0].Packets < p[1].Packets || p[0].Bytes < p[1].Bytes {
					return fmt.Errorf("chain %s: a counter went back: %w", c.Name, errChanged)
				}
				p[0].Packets -= p[1].Packets
				p[0].Bytes -= p[1].Bytes
			}
		}
	}
	return nil
}

// allCounters returns the rule's counters, and those of the elements of its anonymous sets.
func (r *Rule) allCounters() []*Counter {
	all := r.Counters()
	for _, s := range r.Statements {
		var set *Set
		switch s := s.(type) {
		case Match:
			set = s.Set
		case VerdictMap:
			set = s.Set
		}
		if set == nil || set.Dynamic() {
			continue
		}
		for i := range set.Elements {
			if c := set.Elements[i].Counter; c != nil {
				all = append(all, c)
			}
		}
	}
	return all
}
