package equal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// kind is what an entry does with the packets of its box.
type kind uint8

const (
	counts   kind = iota // increases a counter
	decides              // with a verdict, or by leaving for another chain
	leaves               // for a later entry
	calls                // a chain, and comes back, or does not
	acts                 // has an effect that is not modelled, and goes on
	proposes             // a verdict of pf that stands unless a later rule matches
)

// entry is one statement of one rule, for the packets of a box.
type entry struct {
	box    box
	act    int32 // number of the action
	cond   int32 // number of the list of unmodelled conditions; 0 is none
	target int32 // of leaves: the entry that follows
}

// action is what entries do.
type action struct {
	kind    kind
	counter *ruleset.Counter // of counts
	text    string           // of the others
}

// names numbers actions and lists of conditions, the same for both rulesets.
type names struct {
	actions []action
	known   map[action]int32
	conds   [][]string
	lists   map[string]int32
}

func newNames() *names {
	return &names{known: make(map[action]int32), conds: [][]string{nil}, lists: map[string]int32{"": 0}}
}

func (n *names) action(a action) int32 {
	i, ok := n.known[a]
	if !ok {
		i = int32(len(n.actions))
		n.known[a] = i
		n.actions = append(n.actions, a)
	}
	return i
}

func (n *names) list(conds []string) int32 {
	key := strings.Join(conds, "\x00")
	i, ok := n.lists[key]
	if !ok {
		i = int32(len(n.conds))
		n.lists[key] = i
		n.conds = append(n.conds, slices.Clone(conds))
	}
	return i
}

var (
	errMany    = errors.New("too many cells")
	errUnknown = errors.New("not modelled")
)

// compiler makes the flat list of a chain.
type compiler struct {
	axes    *axes
	names   *names
	table   *ruleset.Table
	called  func(chain string) bool // chains that are an action of their own, not their rules
	counted map[*ruleset.Counter]bool
	most    int // entries
	entries []entry
	depth   int
}

// compile returns the entries of a chain for the packets of the roots. The policy of a base chain
// is its last entries.
func (c *compiler) compile(chain *ruleset.Chain, roots []box) ([]entry, error) {
	c.entries = nil
	if err := c.chain(chain, roots); err != nil {
		return nil, fmt.Errorf("chain %s: %w", chain.Name, err)
	}
	if chain.Hook != "" {
		policy := ruleset.Accept
		if chain.Policy == ruleset.Drop {
			policy = ruleset.Drop
		}
		if chain.Counter != nil {
			c.count(chain.Counter, roots, nil)
		}
		c.emit(roots, nil, action{kind: decides, text: "policy " + policy.String()}, -1)
	}
	return c.entries, nil
}

func (c *compiler) emit(boxes []box, conds []string, a action, target int32) {
	act, cond := c.names.action(a), c.names.list(conds)
	for _, b := range boxes {
		c.entries = append(c.entries, entry{b, act, cond, target})
	}
}

// count adds the increase of a counter that both rulesets have. Others are of the new rules only.
func (c *compiler) count(n *ruleset.Counter, boxes []box, conds []string) {
	if c.counted[n] {
		c.emit(boxes, conds, action{kind: counts, counter: n}, -1)
	}
}

// toEnd marks a target that is known when the chain ends.
const toEnd = -2

// chain adds the rules of a chain for the packets of some boxes.
func (c *compiler) chain(chain *ruleset.Chain, guards []box) error {
	if c.depth++; c.depth > 64 {
		return fmt.Errorf("jumps in a circle: %w", errUnknown)
	}
	defer func() { c.depth-- }()
	starts := make([]int32, len(chain.Rules)+1)
	type ahead struct{ entry, number, rule int }
	var skips []ahead
	var returns []int
	for i, r := range chain.Rules {
		starts[i] = int32(len(c.entries))
		before := len(c.entries)
		if err := c.rule(chain, r, guards); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		if len(c.entries) > c.most {
			return errMany
		}
		for k := before; k < len(c.entries); k++ {
			switch to := c.entries[k].target; {
			case to == toEnd:
				returns = append(returns, k)
			case to < toEnd: // the number of a rule
				skips = append(skips, ahead{k, int(toEnd - 1 - to), i})
			}
		}
	}
	end := int32(len(c.entries))
	starts[len(chain.Rules)] = end
	for _, k := range returns {
		c.entries[k].target = end
	}
	for _, s := range skips {
		to := s.rule + 1
		for to < len(chain.Rules) && chain.Rules[to].Number < s.number {
			to++
		}
		c.entries[s.entry].target = starts[to]
	}
	return nil
}

// state is what is known within a rule.
type state struct {
	boxes []box
	conds []string
}

// rule adds the statements of one rule.
func (c *compiler) rule(chain *ruleset.Chain, r *ruleset.Rule, guards []box) error {
	s := state{boxes: guards}
	for i, st := range r.Statements {
		if len(s.boxes) == 0 {
			return nil
		}
		switch st := st.(type) {
		case ruleset.Match:
			done, err := c.match(&s, st, r, i)
			if done || err != nil {
				return err
			}
		case *ruleset.Counter:
			c.count(st, s.boxes, s.conds)
		case ruleset.Verdict:
			return c.verdict(s, st)
		case ruleset.VerdictMap:
			return c.vmap(s, st, r, i)
		case ruleset.Opaque:
			switch {
			case st.Conditional && st.Effect == ruleset.EffectNone && !st.Ends:
				s.conds = with(s.conds, st.Text)
			case st.Conditional:
				c.block(s, r, i)
				return nil
			default:
				c.emit(s.boxes, s.conds, action{kind: acts, text: "effect " + st.Text}, -1)
				if st.Ends {
					c.emit(s.boxes, s.conds, action{kind: decides, text: "ends"}, -1)
					return nil
				}
			}
		}
	}
	return nil
}

// with returns a sorted list with one condition more.
func with(conds []string, one string) []string {
	if slices.Contains(conds, one) {
		return conds
	}
	out := append(slices.Clone(conds), one)
	slices.Sort(out)
	return out
}

// block adds the rest of a rule as one action: its first statement has an answer that is not
// modelled and an effect.
func (c *compiler) block(s state, r *ruleset.Rule, from int) {
	var parts []string
	for _, st := range r.Statements[from:] {
		switch st := st.(type) {
		case ruleset.Match:
			parts = append(parts, fmt.Sprintf("%s %p", st.Text(), st.Set))
		case *ruleset.Counter:
			parts = append(parts, fmt.Sprintf("counter %p", st))
		case ruleset.Verdict:
			parts = append(parts, fmt.Sprintf("%s %v", st.Text(), st.Provisional))
		case ruleset.VerdictMap:
			parts = append(parts, fmt.Sprintf("vmap %p", st.Set))
		case ruleset.Opaque:
			parts = append(parts, st.Text)
		}
	}
	c.emit(s.boxes, s.conds, action{kind: calls, text: strings.Join(parts, " ; ")}, -1)
}

// match narrows the boxes. done: the rest of the rule became one action.
func (c *compiler) match(s *state, m ruleset.Match, r *ruleset.Rule, i int) (done bool, err error) {
	if m.Set != nil && m.Set.Dynamic() {
		c.block(*s, r, i)
		return true, nil
	}
	boxes, ok, err := c.boxes(m)
	if err != nil {
		return false, err
	}
	if !ok {
		if m.Set != nil && slices.ContainsFunc(m.Set.Elements, func(e ruleset.Element) bool { return e.Counter != nil }) {
			c.block(*s, r, i)
			return true, nil
		}
		s.conds = with(s.conds, fmt.Sprintf("%s %p", m.Text(), m.Set))
		return false, nil
	}
	if m.Set != nil && !m.Negated && slices.ContainsFunc(m.Set.Elements, func(e ruleset.Element) bool {
		return e.Counter != nil
	}) {
		for _, e := range m.Set.Elements {
			if e.Counter != nil && c.counted[e.Counter] {
				c.count(e.Counter, meet(s.boxes, c.element(m.Key, e)), s.conds)
			}
		}
	}
	s.boxes = meet(s.boxes, boxes)
	if len(s.boxes) > c.most {
		return false, errMany
	}
	return false, nil
}

func meet(a, b []box) []box {
	var out []box
	for i := range a {
		for j := range b {
			if both, ok := a[i].within(&b[j]); ok {
				out = append(out, both)
			}
		}
	}
	return out
}

// element returns the boxes of the packets that an element holds.
func (c *compiler) element(key []ruleset.Term, e ruleset.Element) []box {
	out := []box{c.axes.all()}
	for i, t := range key {
		sp, ok := c.axes.span(t, e.Key[i])
		if !ok {
			return nil
		}
		for k := range out {
			if lo, hi := max(out[k][t.Field].lo, sp.lo), min(out[k][t.Field].hi, sp.hi); lo <= hi {
				out[k][t.Field] = span{lo, hi}
			} else {
				return nil
			}
		}
		out = c.implied(t, out)
	}
	return out
}

// implied narrows boxes to the packets that have the header of a term.
func (c *compiler) implied(t ruleset.Term, boxes []box) []box {
	for f, ranges := range t.Implied() {
		var next []box
		for _, r := range ranges {
			sp, ok := c.axes.span(ruleset.Term{Field: f}, r)
			if !ok {
				continue
			}
			one := c.axes.all()
			one[f] = sp
			next = append(next, meet(boxes, []box{one})...)
		}
		boxes = next
	}
	return boxes
}

// apart reports whether every key of a set is in one element only, and every element is of the key.
func apart(s *ruleset.Set, terms int) bool {
	for _, e := range s.Elements {
		if e.Excluded || len(e.Key) != terms || e.Timeout > 0 {
			return false
		}
	}
	order := slices.Clone(s.Elements)
	sorting.Func(order, func(a, b ruleset.Element) int { return a.Key[0].First.Compare(b.Key[0].First) })
	for i := range order {
		for j := i + 1; j < len(order) && order[j].Key[0].First.Compare(order[i].Key[0].Last) <= 0; j++ {
			both := true
			for k := range order[i].Key {
				both = both && order[i].Key[k].Overlaps(order[j].Key[k])
			}
			if both {
				return false
			}
		}
	}
	return true
}

// boxes returns the packets that a match holds for; false if it is not modelled.
func (c *compiler) boxes(m ruleset.Match) (out []box, ok bool, err error) {
	if m.Set != nil && (len(m.Key) > 1 || m.Key[0].Bits > 0 || !apart(m.Set, len(m.Key))) {
		if m.Negated || !apart(m.Set, len(m.Key)) {
			return nil, false, nil
		}
		for _, e := range m.Set.Elements {
			out = append(out, c.element(m.Key, e)...)
		}
		return out, true, nil
	}
	t := m.Key[0]
	var ranges []ruleset.Range
	if m.Set == nil {
		ranges = m.Plain
	} else {
		for _, e := range m.Set.Elements {
			ranges = append(ranges, e.Key[0])
		}
	}
	var spans []span
	for _, r := range ranges {
		if sp, ok := c.axes.span(t, r); ok {
			spans = append(spans, sp)
		}
	}
	spans = joined(spans)
	if m.Negated {
		spans = without(spans, c.axes.all()[t.Field])
	}
	for _, sp := range spans {
		b := c.axes.all()
		b[t.Field] = sp
		out = append(out, b)
	}
	if len(out) > c.most {
		return nil, false, errMany
	}
	return c.implied(t, out), true, nil
}

// joined returns the union of spans, in order and without neighbours.
func joined(spans []span) []span {
	sorting.Func(spans, func(a, b span) int { return int(int64(a.lo) - int64(b.lo)) })
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, s.hi)
			continue
		}
		out = append(out, s)
	}
	return out
}

// without returns what joined spans leave of all.
func without(spans []span, all span) []span {
	var out []span
	next := all.lo
	for _, s := range spans {
		if s.lo > next {
			out = append(out, span{next, s.lo - 1})
		}
		next = s.hi + 1
	}
	if next <= all.hi {
		out = append(out, span{next, all.hi})
	}
	return out
}

func (c *compiler) vmap(s state, m ruleset.VerdictMap, r *ruleset.Rule, i int) error {
	if m.Set.Dynamic() || !apart(m.Set, len(m.Key)) {
		c.block(s, r, i)
		return nil
	}
	for _, e := range m.Set.Elements {
		boxes := meet(s.boxes, c.element(m.Key, e))
		if len(boxes) == 0 {
			continue
		}
		if e.Counter != nil {
			c.count(e.Counter, boxes, s.conds)
		}
		if err := c.verdict(state{boxes, s.conds}, e.Verdict); err != nil {
			return err
		}
		if len(c.entries) > c.most {
			return errMany
		}
	}
	return nil
}

// verdict adds what follows for the packets of some boxes.
func (c *compiler) verdict(s state, v ruleset.Verdict) error {
	switch v.Kind {
	case ruleset.None, ruleset.Continue:
	case ruleset.Accept, ruleset.Drop, ruleset.Reject:
		k := decides
		if v.Provisional {
			k = proposes
		}
		c.emit(s.boxes, s.conds, action{kind: k, text: v.Text()}, -1)
	case ruleset.Return:
		c.emit(s.boxes, s.conds, action{kind: leaves}, toEnd)
	case ruleset.Skip:
		c.emit(s.boxes, s.conds, action{kind: leaves}, int32(toEnd-1-v.Number))
	case ruleset.Jump, ruleset.Goto:
		to := c.table.Chain(v.Chain)
		switch {
		case to == nil:
			return fmt.Errorf("chain %s is missing: %w", v.Chain, errUnknown)
		case c.called(v.Chain) && v.Kind == ruleset.Goto:
			c.emit(s.boxes, s.conds, action{kind: decides, text: "goto " + v.Chain}, -1)
		case c.called(v.Chain):
			c.emit(s.boxes, s.conds, action{kind: calls, text: "jump " + v.Chain}, -1)
		case len(s.conds) > 0:
			return fmt.Errorf("jump to chain %s on a condition that is not modelled: %w", v.Chain, errUnknown)
		default:
			if err := c.chain(to, s.boxes); err != nil {
				return err
			}
			if v.Kind == ruleset.Goto {
				c.emit(s.boxes, s.conds, action{kind: leaves}, toEnd)
			}
		}
	}
	return nil
}
