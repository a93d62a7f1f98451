package apply

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// The names of what linerate adds to a table besides rules. No packet reaches these chains.
const (
	ownPrefix  = "linerate_"
	baseChain  = ownPrefix + "base"  // what the counters in front started with, while old rules stand behind
	carryChain = ownPrefix + "carry" // packets that were counted during a change and are in no counter yet
	// fence ends a chain between the rules in force and those that they replaced.
	fence = "linerate: the rules behind this one are out of force"
)

// view is a table as it is now, compared with a plan.
type view struct {
	generation uint32
	table      *ruleset.Table
	front      *State  // whose rules are in force; nil: of no form that is known
	back       *State  // whose rules stand behind the fence; nil: there is no fence
	now, then  []Count // of the counters in front, and behind the fence
	base       []Count // nil: none
	carry      []Count
	carried    bool // the chain of carried counts exists
	// handles of the rules in front of the fence, of the fence, and behind it, by chain
	ahead, behind map[string][]uint64
	fences        map[string]uint64
	digest        State // what is there if front is nil
}

// look compares a table with the forms of a plan.
func (p *Plan) look(t *ruleset.Table) (*view, error) {
	v := &view{table: t, ahead: map[string][]uint64{}, behind: map[string][]uint64{}, fences: map[string]uint64{},
		carry: make([]Count, p.Counters)}
	c := &capturing{}
	defer c.restore()
	ahead, behind := map[string][]Line{}, map[string][]Line{}
	for _, chain := range p.States[0].Chains {
		live := t.Chain(chain.Name)
		if live == nil {
			continue
		}
		for _, r := range live.Rules {
			if isFence(r) && v.fences[chain.Name] == 0 {
				v.fences[chain.Name] = r.Handle
				continue
			}
			l, err := c.rule(r)
			if err != nil {
				return nil, err
			}
			if v.fences[chain.Name] == 0 {
				ahead[chain.Name], v.ahead[chain.Name] = append(ahead[chain.Name], l), append(v.ahead[chain.Name], r.Handle)
			} else {
				behind[chain.Name], v.behind[chain.Name] = append(behind[chain.Name], l), append(v.behind[chain.Name], r.Handle)
			}
		}
		v.digest.Chains = append(v.digest.Chains, Chain{chain.Name, ahead[chain.Name]})
	}
	v.digest.seal()
	for i := range p.States {
		s := &p.States[i]
		if v.front == nil {
			if now, ok := p.matches(c, t, s, ahead); ok {
				v.front, v.now = s, now
			}
		}
		if v.back == nil && len(v.fences) > 0 {
			if then, ok := p.matches(c, t, s, behind); ok {
				v.back, v.then = s, then
			}
		}
	}
	if len(v.fences) > 0 && (len(v.fences) != len(p.States[0].Chains) || v.back == nil) {
		v.front = nil // another program has changed it
	}
	return v, p.kept(v, t)
}

// isFence reports whether a rule is the fence.
func isFence(r *ruleset.Rule) bool { return r.Comment == fence }

// matches compares the chains of a form, as they were found, and its own chains and sets. It
// returns the values of the plan's counters.
func (p *Plan) matches(c *capturing, t *ruleset.Table, s *State, found map[string][]Line) ([]Count, bool) {
	values := make([]Count, p.Counters)
	take := func(want, got []Line) bool {
		if len(want) != len(got) {
			return false
		}
		for i, w := range want {
			if w.Text != got[i].Text || len(w.Counters) != len(got[i].Counters) && !xtables(p.Program) {
				return false
			}
			for k, n := range w.Counters {
				values[n] = c.values[got[i].Counters[k]]
			}
		}
		return true
	}
	for _, chain := range s.Chains {
		if t.Chain(chain.Name) == nil || !take(chain.Rules, found[chain.Name]) {
			return nil, false
		}
	}
	for _, chain := range s.Own {
		live := t.Chain(chain.Name)
		if live == nil || len(live.Rules) != len(chain.Rules) {
			return nil, false
		}
		lines := make([]Line, len(live.Rules))
		for i, r := range live.Rules {
			var err error
			if lines[i], err = c.rule(r); err != nil {
				return nil, false
			}
		}
		if !take(chain.Rules, lines) {
			return nil, false
		}
	}
	for _, set := range s.Sets {
		live := t.Set(set.Name)
		if live == nil || len(live.Elements) != len(set.Elements) {
			return nil, false
		}
		got, err := c.set(t, live)
		if err != nil || got.Kind != set.Kind || !slices.Equal(got.Head, set.Head) || !take(set.Elements, got.Elements) {
			return nil, false
		}
	}
	return values, true
}

// kept reads the counts that linerate keeps in the table.
func (p *Plan) kept(v *view, t *ruleset.Table) error {
	for name, into := range map[string]*[]Count{baseChain: &v.base, carryChain: &v.carry} {
		chain := t.Chain(name)
		if chain == nil {
			continue
		}
		*into = make([]Count, p.Counters)
		v.carried = v.carried || name == carryChain
		for _, r := range chain.Rules {
			n, err := strconv.Atoi(strings.TrimSpace(r.Comment))
			all := r.Counters()
			if err != nil || n < 0 || n >= p.Counters || len(all) != 1 {
				return fmt.Errorf("chain %s of table %s %s: rule %q is not linerate's", name, t.Family, t.Name, r.Comment)
			}
			(*into)[n] = Count{all[0].Packets, all[0].Bytes}
		}
	}
	if v.back != nil && v.base == nil {
		return fmt.Errorf("table %s %s lacks the chain %s", t.Family, t.Name, baseChain)
	}
	return nil
}

// keptRules returns the rules of a chain that keeps counts, without those that are zero.
func keptRules(counts []Count) []string {
	var rules []string
	for i, c := range counts {
		if c != (Count{}) {
			rules = append(rules, fmt.Sprintf("%s comment \"%d\"", c.text(), i))
		}
	}
	return rules
}

func anyCount(counts []Count) bool {
	return slices.ContainsFunc(counts, func(c Count) bool { return c != Count{} })
}
