package rewrite

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// treeFields are the fields that chains are split by, the most selective ones first.
var treeFields = []ruleset.Field{ruleset.InInterface, ruleset.OutInterface, ruleset.Source, ruleset.Destination,
	ruleset.DestinationPort}

// large is a number of rules above which fewer forms are made: their time grows with its square.
const large = 1500

// best makes all forms of some rules and returns the best one. depth is how often chains may be
// split.
func (b *builder) best(chain string, items []*item, by []ruleset.Field, depth int) made {
	start := b.mark()
	rules := make([]*ruleset.Rule, len(items))
	for i, it := range items {
		rules[i] = it.rule
	}
	least := made{rules, float64(len(items)), b.price(rules)}
	if len(items) < 3 {
		return least
	}
	kept := struct {
		extra []*ruleset.Chain
		sets  []*ruleset.Set
		taken map[string]bool
	}{b.extra, b.sets, b.taken}
	var forms []func() made
	if len(items) <= large || depth == 0 {
		forms = append(forms, func() made { return b.lookups(chain, items, false) })
	}
	forms = append(forms, func() made { return b.lookups(chain, items, true) })
	if depth > 0 && len(items) > 4 {
		if len(items) > large {
			by, depth = by[:min(len(by), 4)], 1
		}
		for _, f := range by {
			if !slices.ContainsFunc(items, func(it *item) bool { _, ok := it.on(f); return ok && it.nests }) {
				continue
			}
			prefer := append([]ruleset.Field{f}, slices.DeleteFunc(slices.Clone(by), func(g ruleset.Field) bool {
				return g == f
			})...)
			forms = append(forms, func() made { return b.split(chain, items, prefer, depth) })
		}
	}
	for _, form := range forms {
		b.reset(start)
		b.taken = start.clone()
		if m := form(); m.better(least, float64(len(items))) {
			least = m
			kept.extra, kept.sets, kept.taken = slices.Clone(b.extra), slices.Clone(b.sets), b.taken
		}
	}
	b.extra, b.sets, b.taken = kept.extra, kept.sets, kept.taken
	return least
}

// slack is how many rules more are no loss if they take less time.
const slack = 2

// better reports whether a form is better than the best one so far. all is how many rules there are
// without any form.
func (m made) better(best made, all float64) bool {
	if math.Abs(m.length-best.length) <= slack && best.length < all {
		return m.price < best.price-0.01 && m.length < all
	}
	return m.length < best.length-0.01
}

// price is what rules cost a packet that matches none of them, in nanoseconds.
func (b *builder) price(rules []*ruleset.Rule) (sum float64) {
	p := cost.Measured()
	for _, r := range rules {
		sum += p.Missed(b.program, b.table, r)
	}
	return sum
}

func (m mark) clone() map[string]bool {
	taken := make(map[string]bool, len(m.taken))
	for n := range m.taken {
		taken[n] = true
	}
	return taken
}

// form is what rules of one lookup have in common. With filled, a rule without an address is one
// with all addresses of IPv4.
func (b *builder) form(it *item, filled bool) string {
	if !it.simple || len(it.key) > 4 {
		return ""
	}
	if it.counter == nil && it.verdict.Kind == ruleset.None {
		return ""
	}
	single := true
	for i, t := range it.key {
		single = single && len(it.values[i]) == 1
		named := t.Field == ruleset.InInterface || t.Field == ruleset.OutInterface
		for _, r := range it.values[i] {
			if named && r.First != r.Last || t.Field == ruleset.State && len(it.key) > 1 {
				return ""
			}
			_ = r
		}
	}
	if !single && it.counter != nil {
		return "" // a counter cannot be split
	}
	var parts []string
	for _, t := range b.terms(it, filled) {
		parts = append(parts, t.String())
	}
	slices.Sort(parts)
	form := strings.Join(parts, " . ")
	switch {
	case it.verdict.Kind == ruleset.None:
		form += " counts"
	case it.counter != nil:
		form += " decides, counts"
	default:
		form += " decides"
	}
	return form
}

// terms returns the key of a rule in the order that lookups have.
func (b *builder) terms(it *item, filled bool) []ruleset.Term {
	key := slices.Clone(it.key)
	if filled && !slices.ContainsFunc(key, func(t ruleset.Term) bool {
		return t.Header == "ip6" || t.Field == ruleset.State
	}) && (b.table.Family == "ip" ||
		slices.ContainsFunc(key, func(t ruleset.Term) bool { return t.Header == "ip" })) {
		for _, f := range []ruleset.Field{ruleset.Source, ruleset.Destination} {
			if !slices.ContainsFunc(key, func(t ruleset.Term) bool { return t.Field == f }) {
				key = append(key, ruleset.Term{Field: f, Header: "ip"})
			}
		}
	}
	sorting.StableFunc(key, func(a, b ruleset.Term) int { return int(a.Field) - int(b.Field) })
	return key
}

// everything is all addresses of IPv4.
var everything = ruleset.Range{First: ruleset.Value{10: 0xff, 11: 0xff},
	Last: ruleset.Value{10: 0xff, 11: 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}}

// lookups joins rules of one form whose packets are apart.
func (b *builder) lookups(chain string, items []*item, filled bool) made {
	slots := arrange(items, func(it *item) (string, ruleset.Field) {
		return b.form(it, filled), 0
	}, func(s *slot, it *item) bool {
		return !slices.ContainsFunc(s.members, func(m *item) bool { return m.region.Meets(&it.region) })
	})
	slots = b.unjoin(slots, filled)
	order(slots)
	var out made
	for _, s := range slots {
		if len(s.members) == 1 {
			out.rules = append(out.rules, s.members[0].rule)
			continue
		}
		out.rules = append(out.rules, b.lookup(chain, s, filled))
	}
	out.length, out.price = float64(len(out.rules)), b.price(out.rules)
	return out
}

// unjoin takes apart lookups that cost more than their rules.
func (b *builder) unjoin(slots []*slot, filled bool) []*slot {
	p := cost.Measured()
	var out []*slot
	for _, s := range slots {
		rules := 0.0
		for _, m := range s.members {
			rules += p.Missed(b.program, b.table, m.rule)
		}
		if s.form != "" && len(s.members) > 1 && rules > p.Lookup(len(s.members), b.ranged(s, filled)) {
			out = append(out, s)
			continue
		}
		for _, m := range s.members {
			out = append(out, &slot{members: []*item{m}})
		}
	}
	return out
}

// ranged reports whether the lookup of a place needs a set of intervals.
func (b *builder) ranged(s *slot, filled bool) bool {
	if _, ok := b.mask(s); ok {
		return false
	}
	for _, m := range s.members {
		if len(b.terms(m, filled)) > len(m.key) {
			return true
		}
		for _, values := range m.values {
			for _, r := range values {
				if r.First != r.Last {
					return true
				}
			}
		}
	}
	return false
}

// mask returns the length of all prefixes of a place with one term, of 128 bits.
func (b *builder) mask(s *slot) (int, bool) {
	bits := 0
	for _, m := range s.members {
		if len(m.key) != 1 || m.key[0].Field != ruleset.Source && m.key[0].Field != ruleset.Destination {
			return 0, false
		}
		for _, r := range m.values[0] {
			n, ok := r.Bits()
			if !ok || bits != 0 && n != bits {
				return 0, false
			}
			bits = n
		}
	}
	return bits, bits < 128
}

// lookup makes the rule of a place with several rules, and its set or map.
func (b *builder) lookup(chain string, s *slot, filled bool) *ruleset.Rule {
	key := b.terms(s.members[0], filled)
	bits, masked := b.mask(s)
	if masked = masked && len(key) == 1; masked {
		key[0].Bits = bits
	}
	set := &ruleset.Set{}
	uniform := true
	for _, m := range s.members {
		uniform = uniform && m.verdict == s.members[0].verdict
		set.Counting = set.Counting || m.counter != nil
	}
	mapped := s.members[0].verdict.Kind != ruleset.None && (!uniform || set.Counting)
	if mapped {
		set.Data = "verdict"
	}
	var words []string
	for _, t := range key {
		set.Types = append(set.Types, ruleset.TypeOf(t))
		words = append(words, word(t))
	}
	ranged := false
	for _, m := range s.members {
		verdict := m.verdict
		if mapped && verdict.Kind == ruleset.Reject {
			verdict = ruleset.Verdict{Kind: ruleset.Goto, Chain: b.rejecting(verdict)}
		}
		for _, values := range keys(key, m) {
			e := ruleset.Element{Key: values, Counter: m.counter, Comment: m.rule.Comment}
			if masked {
				e.Key = []ruleset.Range{ruleset.One(values[0].First)}
			}
			if mapped {
				e.Verdict = verdict
			}
			for _, r := range e.Key {
				ranged = ranged || r.First != r.Last
			}
			set.Elements = append(set.Elements, e)
		}
	}
	if ranged {
		set.Flags = []string{"interval"}
	}
	sorting.StableFunc(set.Elements, func(x, y ruleset.Element) int {
		return slices.CompareFunc(x.Key, y.Key, func(p, q ruleset.Range) int { return p.First.Compare(q.First) })
	})
	set.Sort()
	// Without counters and comments a short list is in the rule.
	plain := !set.Counting && !slices.ContainsFunc(set.Elements, func(e ruleset.Element) bool { return e.Comment != "" })
	if !plain || len(set.Elements) > 16 {
		set.Size = roomy(set)
		set.Name = b.named(chain + "_" + strings.Join(words, "_"))
		b.sets = append(b.sets, set)
	} else {
		set.Types, set.Flags = nil, nil
		if ranged {
			set.Flags = []string{"interval"}
		}
	}
	r := new(ruleset.Rule)
	if mapped {
		r.Statements = []ruleset.Statement{ruleset.VerdictMap{Key: key, Set: set}}
		return r
	}
	r.Statements = []ruleset.Statement{ruleset.Match{Key: key, Set: set}}
	if v := s.members[0].verdict; v.Kind != ruleset.None {
		r.Statements = append(r.Statements, v)
	}
	return r
}

// keys returns the keys of the elements of one rule.
func keys(key []ruleset.Term, m *item) [][]ruleset.Range {
	all := [][]ruleset.Range{nil}
	for _, t := range key {
		values := []ruleset.Range{everything}
		for i, own := range m.key {
			if own.Field == t.Field {
				values = m.values[i]
			}
		}
		var next [][]ruleset.Range
		for _, begin := range all {
			for _, r := range values {
				next = append(next, append(slices.Clone(begin), r))
			}
		}
		all = next
	}
	return all
}

// rejecting returns a chain that rejects, because maps cannot.
func (b *builder) rejecting(v ruleset.Verdict) string {
	for _, c := range b.extra {
		if len(c.Rules) == 1 && len(c.Rules[0].Statements) == 1 && c.Rules[0].Statements[0] == ruleset.Statement(v) {
			return c.Name
		}
	}
	c := &ruleset.Chain{Name: b.named("rejecting"), Rules: []*ruleset.Rule{{Statements: []ruleset.Statement{v}}}}
	b.extra = append(b.extra, c)
	return c.Name
}

// word names a term in the name of a set.
func word(t ruleset.Term) string {
	switch t.Field {
	case ruleset.InInterface, ruleset.OutInterface, ruleset.Source, ruleset.Destination:
		return t.Field.String()
	case ruleset.SourcePort, ruleset.DestinationPort:
		return t.Header + "_" + t.Field.String()
	case ruleset.Protocol:
		return "proto"
	case ruleset.State:
		return "state"
	}
	return "family"
}

// split puts rules that share a field into chains of their own.
func (b *builder) split(chain string, items []*item, prefer []ruleset.Field, depth int) made {
	slots := arrange(items, func(it *item) (string, ruleset.Field) {
		if it.nests {
			for _, f := range prefer {
				if r, ok := it.on(f); ok && !(r.First != r.Last && (f == ruleset.InInterface || f == ruleset.OutInterface)) {
					return fmt.Sprintf("tree %d %s", f, it.header(f)), f
				}
			}
		}
		if form := b.form(it, false); form != "" {
			return form, 0
		}
		return "", 0
	}, func(s *slot, it *item) bool {
		if s.tree != 0 {
			return laminar(s, s.tree, it)
		}
		return !slices.ContainsFunc(s.members, func(m *item) bool { return m.region.Meets(&it.region) })
	})
	order(slots)
	var out made
	var plain []*ruleset.Rule
	for _, s := range slots {
		if s.tree == 0 || len(s.members) < 4 {
			for _, one := range b.unjoin([]*slot{s}, false) {
				if one.tree == 0 && len(one.members) > 1 {
					plain = append(plain, b.lookup(chain, one, false))
					out.rules = append(out.rules, plain[len(plain)-1])
					continue
				}
				for _, m := range one.members {
					plain, out.rules = append(plain, m.rule), append(out.rules, m.rule)
				}
			}
			continue
		}
		m := b.tree(chain, s, prefer[1:], depth)
		out.rules, out.length, out.price = append(out.rules, m.rules...), out.length+m.length, out.price+m.price
	}
	out.length, out.price = out.length+float64(len(plain)), out.price+b.price(plain)
	return out
}

// tree makes a map from the values of a field to chains.
func (b *builder) tree(chain string, s *slot, by []ruleset.Field, depth int) made {
	all := groups(s.tree, s.members)
	flat := made{length: float64(len(s.members))}
	for _, m := range s.members {
		flat.rules = append(flat.rules, m.rule)
	}
	flat.price = b.price(flat.rules)
	if len(all) < 2 {
		if len(all) == 1 {
			return b.best(chain, s.members, by, depth-1)
		}
		return flat
	}
	key := []ruleset.Term{{Field: s.tree, Header: s.members[0].header(s.tree)}}
	set := &ruleset.Set{Data: "verdict", Types: []string{ruleset.TypeOf(key[0])}}
	bits := 0
	for _, g := range all {
		n, ok := g.at.Bits()
		if !ok || bits != 0 && bits != n {
			bits = -1
			break
		}
		bits = n
	}
	masked := bits > 0 && bits < 128 && (s.tree == ruleset.Source || s.tree == ruleset.Destination)
	if masked {
		key[0].Bits = bits
	}
	var inside made // of all chains
	for _, g := range all {
		own := &ruleset.Chain{Name: b.named(chain + "_" + label(s.tree, g.at))}
		inner := make([]*item, len(g.members))
		for i, m := range g.members {
			inner[i] = classify(without(m.rule, s.tree, g.at), b.regions)
		}
		m := b.best(own.Name, inner, by, depth-1)
		own.Rules = fused(m.rules)
		m.length -= float64(len(m.rules) - len(own.Rules))
		b.extra = append(b.extra, own)
		e := ruleset.Element{Key: []ruleset.Range{g.at}, Verdict: ruleset.Verdict{Kind: ruleset.Jump, Chain: own.Name}}
		if masked {
			e.Key = []ruleset.Range{ruleset.One(g.at.First)}
		} else if g.at.First != g.at.Last {
			set.Flags = []string{"interval"}
		}
		set.Elements = append(set.Elements, e)
		inside.length, inside.price = inside.length+m.length, inside.price+m.price
	}
	set.Sort()
	if len(set.Elements) > 16 {
		set.Size = roomy(set)
		set.Name = b.named(chain + "_" + word(key[0]))
		b.sets = append(b.sets, set)
	} else {
		set.Types = nil
	}
	r := &ruleset.Rule{Statements: []ruleset.Statement{ruleset.VerdictMap{Key: key, Set: set}}}
	n := float64(len(all))
	p := cost.Measured()
	out := made{rules: []*ruleset.Rule{r}, length: 1 + inside.length/n}
	out.price = b.price(out.rules) + p.Jump + inside.price/n
	return out
}

// roomy returns a size for a named set of single values: twice its elements at least, for those
// that are added later. The kernel takes its faster table for a set of a known size
// (nft_hash_estimate). It is 0 for other sets, which have no such table.
func roomy(s *ruleset.Set) uint64 {
	if s.Interval() {
		return 0
	}
	size := uint64(64)
	for size < 2*uint64(len(s.Elements)) {
		size *= 2
	}
	return size
}

// fused puts a rule that counts every packet and the one behind it into one rule, which counts and
// goes on to compare: the kernel spends some 20 ns less on a packet. Both have one comment.
func fused(rules []*ruleset.Rule) []*ruleset.Rule {
	out := slices.Clone(rules)
	for i := 0; i+1 < len(out); i++ {
		a, b := out[i], out[i+1]
		if len(a.Statements) != 1 || a.Comment != b.Comment || b.Barrier() {
			continue
		}
		if _, ok := a.Statements[0].(*ruleset.Counter); !ok {
			continue
		}
		out[i] = &ruleset.Rule{Comment: a.Comment, Statements: slices.Concat(a.Statements, b.Statements)}
		out = slices.Delete(out, i+1, i+2)
	}
	return out
}

// without returns a rule without its match on a field, if that is on this very range.
func without(r *ruleset.Rule, f ruleset.Field, at ruleset.Range) *ruleset.Rule {
	for i, s := range r.Statements {
		m, ok := s.(ruleset.Match)
		if ok && len(m.Key) == 1 && m.Key[0].Field == f && !m.Negated && m.Set == nil &&
			len(m.Plain) == 1 && m.Plain[0] == at {
			shorter := *r
			shorter.Statements = slices.Delete(slices.Clone(r.Statements), i, i+1)
			return &shorter
		}
	}
	return r
}
