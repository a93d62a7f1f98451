package equal

import (
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// fields is one more than the number of the last field, so that a field is an index.
const fields = len(ruleset.Fields) + 1

// span is the numbers of neighbouring elementary intervals of a field, both ends included.
type span struct{ lo, hi uint32 }

func (s span) meets(t span) bool { return s.lo <= t.hi && t.lo <= s.hi }

// box is one span for each field.
type box [fields]span

func (b *box) meets(c *box) bool {
	for f := 1; f < fields; f++ {
		if !b[f].meets(c[f]) {
			return false
		}
	}
	return true
}

// within returns the packets that are in both boxes; false if there are none.
func (b *box) within(c *box) (both box, ok bool) {
	for f := 1; f < fields; f++ {
		both[f] = span{max(b[f].lo, c[f].lo), min(b[f].hi, c[f].hi)}
		if both[f].lo > both[f].hi {
			return box{}, false
		}
	}
	return both, true
}

func (b *box) covers(c *box) bool {
	for f := 1; f < fields; f++ {
		if b[f].lo > c[f].lo || b[f].hi < c[f].hi {
			return false
		}
	}
	return true
}

// axes cut every field at the ends of all ranges that two rulesets name, so that no rule separates
// the values of one elementary interval.
type axes struct {
	starts [fields][]ruleset.Value // of the elementary intervals, in order
}

// discrete are the only values that some fields can have.
func discrete(f ruleset.Field) []ruleset.Value {
	var numbers []uint64
	switch f {
	case ruleset.State:
		numbers = []uint64{ruleset.StateInvalid, ruleset.StateEstablished, ruleset.StateRelated, ruleset.StateNew,
			ruleset.StateUntracked}
	case ruleset.Family:
		numbers = []uint64{ruleset.IPv4, ruleset.IPv6}
	}
	values := make([]ruleset.Value, len(numbers))
	for i, n := range numbers {
		values[i] = ruleset.Number(n)
	}
	return values
}

// four is all addresses of IPv4.
func four() ruleset.Range {
	first, last := ruleset.Value{10: 0xff, 11: 0xff}, ruleset.Value{10: 0xff, 11: 0xff}
	for i := 12; i < 16; i++ {
		last[i] = 0xff
	}
	return ruleset.Range{First: first, Last: last}
}

// newAxes cuts the fields at the ranges of all rules and sets.
func newAxes(all ...*ruleset.Table) *axes {
	a := new(axes)
	for _, f := range ruleset.Fields {
		a.starts[f] = discrete(f)
		if len(a.starts[f]) == 0 {
			a.starts[f] = []ruleset.Value{ruleset.Universe(f).First}
		}
	}
	a.cut(ruleset.Term{Field: ruleset.Source}, four())
	a.cut(ruleset.Term{Field: ruleset.Destination}, four())
	done := make(map[*ruleset.Set]bool)
	set := func(key []ruleset.Term, s *ruleset.Set) {
		if done[s] && s.Name == "" {
			return
		}
		done[s] = true
		for _, e := range s.Elements {
			for i, r := range e.Key {
				if i < len(key) {
					a.cut(key[i], r)
				}
			}
		}
	}
	for _, t := range all {
		for _, c := range t.Chains {
			for _, r := range c.Rules {
				for _, s := range r.Statements {
					switch s := s.(type) {
					case ruleset.Match:
						a.implied(s.Key)
						for _, p := range s.Plain {
							a.cut(s.Key[0], p)
						}
						if s.Set != nil {
							set(s.Key, s.Set)
						}
					case ruleset.VerdictMap:
						a.implied(s.Key)
						set(s.Key, s.Set)
					}
				}
			}
		}
	}
	for _, f := range ruleset.Fields {
		sorting.Func(a.starts[f], ruleset.Value.Compare)
		a.starts[f] = slices.Compact(a.starts[f])
	}
	return a
}

func (a *axes) implied(key []ruleset.Term) {
	for _, t := range key {
		for f, ranges := range t.Implied() {
			for _, r := range ranges {
				a.cut(ruleset.Term{Field: f}, r)
			}
		}
	}
}

// cut notes the ends of a range that a term is compared with.
func (a *axes) cut(t ruleset.Term, r ruleset.Range) {
	if t.Field == ruleset.State || t.Field == ruleset.Family {
		return // all values are cut apart already
	}
	r, ok := unmasked(t, r)
	all := ruleset.Universe(t.Field)
	if !ok || !all.Overlaps(r) {
		return
	}
	if all.First.Compare(r.First) < 0 {
		a.starts[t.Field] = append(a.starts[t.Field], r.First)
	}
	if after, more := r.Last.Next(); more && after.Compare(all.Last) <= 0 {
		a.starts[t.Field] = append(a.starts[t.Field], after)
	}
}

// unmasked returns the values that a term with a mask finds in a range; false if there are none.
func unmasked(t ruleset.Term, r ruleset.Range) (ruleset.Range, bool) {
	if t.Bits == 0 {
		return r, true
	}
	prefix := func(v ruleset.Value) ruleset.Range {
		out := ruleset.Range{First: v, Last: v}
		for i := range v {
			var keep byte
			switch n := t.Bits - 8*i; {
			case n >= 8:
				keep = 0xff
			case n > 0:
				keep = 0xff << (8 - n)
			}
			out.First[i] &= keep
			out.Last[i] |= ^keep
		}
		return out
	}
	first, last := prefix(r.First), prefix(r.Last)
	if first.First != r.First { // a masked value is the beginning of a prefix: the next one
		next, more := first.Last.Next()
		if !more {
			return r, false
		}
		first.First = next
	}
	return ruleset.Range{First: first.First, Last: last.Last}, first.First.Compare(last.Last) <= 0
}

// rank is the number of the elementary interval that holds a value.
func (a *axes) rank(f ruleset.Field, v ruleset.Value) (uint32, bool) {
	i, exact := slices.BinarySearchFunc(a.starts[f], v, ruleset.Value.Compare)
	if !exact {
		i--
	}
	return uint32(max(i, 0)), exact
}

// span returns the elementary intervals of a range that a term is compared with; false if there are
// none.
func (a *axes) span(t ruleset.Term, r ruleset.Range) (span, bool) {
	r, ok := unmasked(t, r)
	if !ok || !ruleset.Universe(t.Field).Overlaps(r) {
		return span{}, false
	}
	lo, exact := a.rank(t.Field, r.First)
	if t.Field == ruleset.State || t.Field == ruleset.Family {
		if !exact && a.starts[t.Field][lo].Compare(r.First) < 0 {
			lo++
		}
	}
	hi, _ := a.rank(t.Field, r.Last)
	return span{lo, hi}, lo <= hi && a.starts[t.Field][hi].Compare(r.Last) <= 0
}

// all is every value of every field.
func (a *axes) all() (b box) {
	for _, f := range ruleset.Fields {
		b[f] = span{0, uint32(len(a.starts[f]) - 1)}
	}
	return b
}

// roots are the boxes of packets that a table of a family can see: addresses are of the packet's
// protocol.
func (a *axes) roots(family string) []box {
	mapped, _ := a.span(ruleset.Term{Field: ruleset.Source}, four())
	mappedTo, _ := a.span(ruleset.Term{Field: ruleset.Destination}, four())
	var roots []box
	if family != "ip6" {
		b := a.all()
		b[ruleset.Family] = span{0, 0}
		b[ruleset.Source], b[ruleset.Destination] = mapped, mappedTo
		roots = append(roots, b)
	}
	if family == "ip" {
		return roots
	}
	all := a.all()
	beside := func(f ruleset.Field, m span) (out []span) {
		if m.lo > 0 {
			out = append(out, span{0, m.lo - 1})
		}
		if m.hi < all[f].hi {
			out = append(out, span{m.hi + 1, all[f].hi})
		}
		return out
	}
	for _, s := range beside(ruleset.Source, mapped) {
		for _, d := range beside(ruleset.Destination, mappedTo) {
			b := all
			b[ruleset.Family] = span{1, 1}
			b[ruleset.Source], b[ruleset.Destination] = s, d
			roots = append(roots, b)
		}
	}
	return roots
}

// packet returns a packet of a box: the lowest value of each field.
func (a *axes) packet(b box) ruleset.Packet {
	at := func(f ruleset.Field) ruleset.Value { return a.starts[f][b[f].lo] }
	p := ruleset.Packet{In: a.name(ruleset.InInterface, b), Out: a.name(ruleset.OutInterface, b),
		Source: at(ruleset.Source).Addr(), Destination: at(ruleset.Destination).Addr(),
		Protocol: uint8(at(ruleset.Protocol).Number()), SourcePort: uint16(at(ruleset.SourcePort).Number()),
		DestinationPort: uint16(at(ruleset.DestinationPort).Number()), State: uint8(at(ruleset.State).Number())}
	return p
}

// name returns a name of an interface in a box. The lowest value may have a zero inside, which no
// name has: then it is the name before it with a letter more.
func (a *axes) name(f ruleset.Field, b box) string {
	v := a.starts[f][b[f].lo]
	text := func(v ruleset.Value) string {
		n := 0
		for n < 15 && v[n] != 0 {
			n++
		}
		return string(v[:n])
	}
	if s := text(v); ruleset.Name(s) == v {
		return s
	}
	s := text(v)
	for _, more := range []string{"!", "0", "~"} {
		if r, _ := a.rank(f, ruleset.Name(s+more)); b[f].lo <= r && r <= b[f].hi {
			return s + more
		}
	}
	return s
}
