package rewrite

import (
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// slot is a place of the new rules: one rule, or several that become one lookup.
type slot struct {
	members []*item
	form    string // of the lookup; empty for a rule that stays alone
	tree    ruleset.Field
}

// arrange puts every rule into the earliest place of its form that it may move to. form returns the
// form of a rule, empty if it stays alone; fits says whether a rule may join the members of a
// place.
func arrange(items []*item, form func(*item) (string, ruleset.Field), fits func(*slot, *item) bool) []*slot {
	var slots []*slot
	for _, it := range items {
		want, field := form(it)
		var into *slot
		for k := len(slots) - 1; k >= 0 && (want != "" || into != nil); k-- {
			s := slots[k]
			if s.form == want && fits(s, it) {
				into = s
			}
			if !slices.ContainsFunc(s.members, func(m *item) bool { return !free(m, it) }) {
				continue
			}
			break
		}
		if into == nil {
			into = &slot{form: want, tree: field}
			slots = append(slots, into)
		}
		into.members = append(into.members, it)
	}
	return slots
}

// hits is how many packets a place decided.
func (s *slot) hits() (sum uint64, decides bool) {
	decides = true
	for _, m := range s.members {
		sum += m.hits
		decides = decides && m.decides
	}
	return sum, decides
}

// mostOrdered bounds the pairs of rules that are looked at for a better order.
const mostOrdered = 5_000_000

// order moves places that decide more packets ahead of those that decide fewer, where order is
// free.
func order(slots []*slot) {
	pairs := 0
	for i := 1; i < len(slots); i++ {
		n, decides := slots[i].hits()
		if !decides || n == 0 {
			continue
		}
		for k := i; k > 0; k-- {
			before, also := slots[k-1].hits()
			if also && before >= n {
				break
			}
			if pairs += len(slots[k].members) * len(slots[k-1].members); pairs > mostOrdered ||
				!exchangeable(slots[k-1], slots[k]) {
				break
			}
			slots[k-1], slots[k] = slots[k], slots[k-1]
		}
	}
}

func exchangeable(a, b *slot) bool {
	for _, x := range a.members {
		for _, y := range b.members {
			if !free(x, y) {
				return false
			}
		}
	}
	return true
}

// made are rules, and how many of them a packet that matches none of them meets, in chains too.
type made struct {
	rules  []*ruleset.Rule
	length float64
	price  float64 // of nftables: what they cost, in nanoseconds
}

// group is the rules of a tree that share a range of its field.
type group struct {
	at      ruleset.Range
	members []*item
}

// groups puts the members of a tree's place under ranges that no two share a value of: the widest
// ones that the members name. They are in order of value.
func groups(f ruleset.Field, members []*item) []*group {
	var all []*group
	for _, m := range members {
		r, _ := m.on(f)
		all = append(all, &group{at: r})
	}
	sorting.StableFunc(all, func(a, b *group) int {
		if c := a.at.First.Compare(b.at.First); c != 0 {
			return c
		}
		return b.at.Last.Compare(a.at.Last)
	})
	wide := all[:0]
	for _, g := range all {
		if n := len(wide); n > 0 && wide[n-1].at.Covers(g.at) {
			continue
		}
		wide = append(wide, g)
	}
	for _, m := range members {
		r, _ := m.on(f)
		i, exact := slices.BinarySearchFunc(wide, r.First,
			func(g *group, v ruleset.Value) int { return g.at.First.Compare(v) })
		if !exact {
			i--
		}
		wide[i].members = append(wide[i].members, m)
	}
	return wide
}

// on returns the range of a field that a rule compares with in a match of its own, before it does
// anything.
func (it *item) on(f ruleset.Field) (ruleset.Range, bool) {
	for _, s := range it.rule.Statements {
		switch s := s.(type) {
		case ruleset.Match:
			if len(s.Key) == 1 && s.Key[0].Field == f && s.Key[0].Bits == 0 && s.Set == nil && !s.Negated && len(s.Plain) == 1 {
				return s.Plain[0], true
			}
		case ruleset.Opaque:
		default:
			return ruleset.Range{}, false
		}
	}
	return ruleset.Range{}, false
}

// header is the header of the term on a field.
func (it *item) header(f ruleset.Field) string {
	for _, s := range it.rule.Statements {
		if m, ok := s.(ruleset.Match); ok && len(m.Key) == 1 && m.Key[0].Field == f {
			return m.Key[0].Header
		}
	}
	return ""
}

// laminar reports whether a range lies within, around or beside all of a place's ranges.
func laminar(s *slot, f ruleset.Field, it *item) bool {
	r, _ := it.on(f)
	for _, m := range s.members {
		if o, _ := m.on(f); o.Overlaps(r) && !o.Covers(r) && !r.Covers(o) {
			return false
		}
	}
	return true
}
