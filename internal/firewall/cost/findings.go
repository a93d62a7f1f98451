package cost

import (
	"cmp"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Relation is how two rules of a chain stand to each other.
type Relation string

// The relations. A rule that only counts is in none of them, because the others need a verdict.
const (
	// Shadowed: every packet of the rule is decided by the earlier one, with another verdict.
	Shadowed Relation = "shadowed"
	// Redundant: without the rule, every packet meets the same verdict.
	Redundant Relation = "redundant"
	// Generalised: the later rule covers the rule, and decides otherwise. That is how exceptions are
	// written, and an error if the order was not meant.
	Generalised Relation = "generalised"
)

// Finding is a pair of rules of one chain.
type Finding struct {
	Relation          Relation
	Table, Chain      string
	Position, ByOther int // of the rule and of the other one, from 1
	Text, Other       string
	Handle            uint64

	earlier, later int // boxes of the chain
}

const (
	// mostPairs bounds the comparisons of rules, and mostFindings what a report names. Of a chain
	// gather times as many are found before the first of them are chosen.
	mostPairs    = 10_000_000
	mostFindings = 200
	gather       = 50
)

// box is what a rule matches, field by field.
type box struct {
	fields  [10][]ruleset.Range // by ruleset.Field; nil is everything
	hull    [10]ruleset.Range
	bounded [10]bool
	exact   bool // every condition is in the box
	empty   bool
	verdict ruleset.Verdict
	counts  bool
	index   int
}

// boxOf returns the box of a rule that ends the chain; false for another rule.
func boxOf(r *ruleset.Rule, index int) (box, bool) {
	b := box{exact: true, verdict: ending(r), index: index, counts: len(r.Counters()) > 0}
	switch b.verdict.Kind {
	case ruleset.Accept, ruleset.Drop, ruleset.Reject:
	default:
		return b, false
	}
	for _, s := range r.Statements {
		switch s := s.(type) {
		case ruleset.Match:
			f, ranges, ok := s.Allowed()
			if !ok {
				b.exact = false
				continue
			}
			b.narrow(f, ranges)
			for field, implied := range s.Key[0].Implied() {
				b.narrow(field, implied)
			}
		case ruleset.VerdictMap:
			b.exact = false
		case ruleset.Opaque:
			b.exact = b.exact && !s.Conditional
			// An effect that is lost with the rule.
			b.counts = b.counts || s.Effect != ruleset.EffectNone
		}
	}
	for f := range b.fields {
		if n := len(b.fields[f]); b.bounded[f] && n > 0 {
			b.hull[f] = ruleset.Range{First: b.fields[f][0].First, Last: b.fields[f][n-1].Last}
		} else if b.bounded[f] {
			b.empty = true
		}
	}
	return b, true
}

// narrow intersects a field with ranges.
func (b *box) narrow(f ruleset.Field, ranges []ruleset.Range) {
	if !b.bounded[f] {
		b.fields[f], b.bounded[f] = ruleset.Merge(ranges), true
		return
	}
	var both []ruleset.Range
	for _, x := range b.fields[f] {
		for _, y := range ranges {
			if x.Overlaps(y) {
				r := x
				if y.First.Compare(r.First) > 0 {
					r.First = y.First
				}
				if y.Last.Compare(r.Last) < 0 {
					r.Last = y.Last
				}
				both = append(both, r)
			}
		}
	}
	b.fields[f] = ruleset.Merge(both)
}

// covers reports whether everything that c matches is matched by b. What is not in b's box is not
// covered.
func (b *box) covers(c *box) bool {
	if !b.exact || c.empty {
		return false
	}
	for f := range b.fields {
		if !b.bounded[f] {
			continue
		}
		if !c.bounded[f] || !b.hull[f].Covers(c.hull[f]) {
			return false
		}
	}
	for f := range b.fields {
		if !b.bounded[f] || len(b.fields[f]) == 1 {
			continue
		}
		for _, r := range c.fields[f] {
			if !slices.ContainsFunc(b.fields[f], func(x ruleset.Range) bool { return x.Covers(r) }) {
				return false
			}
		}
	}
	return true
}

// everything reports whether the box has no condition.
func (b *box) everything() bool { return b.exact && !slices.Contains(b.bounded[:], true) }

// overlaps reports whether a packet may match both.
func (b *box) overlaps(c *box) bool {
	for f := range b.fields {
		if b.bounded[f] && c.bounded[f] && !slices.ContainsFunc(b.fields[f], func(x ruleset.Range) bool {
			return slices.ContainsFunc(c.fields[f], x.Overlaps)
		}) {
			return false
		}
	}
	return true
}

// findings compares the rules of each chain. cut is set if there were too many pairs.
func findings(r *ruleset.Ruleset) (found []Finding, cut bool) {
	pairs := 0
	for _, t := range r.Tables {
		for _, c := range t.Chains {
			if c.LastMatch {
				continue // the order means something else
			}
			first := len(found)
			boxes := make([]box, 0, len(c.Rules))
			barrier := make([]bool, len(c.Rules))
			for i, rule := range c.Rules {
				if b, ok := boxOf(rule, i); ok {
					boxes = append(boxes, b)
				} else {
					v := ending(rule)
					barrier[i] = v.Kind != ruleset.None || mapped(rule) != nil
				}
			}
			for i, j := range candidates(boxes) {
				if pairs++; pairs > mostPairs || len(found) >= mostFindings*gather {
					cut = true
					break
				}
				relation, rule, other := relate(boxes, i, j, barrier)
				if relation == "" {
					continue
				}
				found = append(found, Finding{Relation: relation, Table: t.Family + " " + t.Name, Chain: c.Name,
					Position: rule.index + 1, ByOther: other.index + 1, Handle: c.Rules[rule.index].Handle, earlier: i, later: j})
			}
			// In the order of the rules, as an administrator reads them.
			sorting.Func(found[first:], func(a, b Finding) int {
				return cmp.Or(cmp.Compare(a.earlier, b.earlier), cmp.Compare(a.later, b.later))
			})
			if len(found) > mostFindings {
				found, cut = found[:mostFindings], true
			}
			for i := first; i < len(found); i++ {
				f := &found[i]
				f.Text, f.Other = Text(c.Rules[f.Position-1]), Text(c.Rules[f.ByOther-1])
			}
			if cut {
				return found, true
			}
		}
	}
	return found, false
}

// relate compares an earlier and a later rule; rule is the one that the relation is of.
func relate(boxes []box, i, j int, barrier []bool) (relation Relation, rule, other *box) {
	early, late := &boxes[i], &boxes[j]
	same := early.verdict.Kind == late.verdict.Kind && early.verdict.Detail == late.verdict.Detail
	switch {
	case early.covers(late):
		if same {
			return Redundant, late, early
		}
		return Shadowed, late, early
	case !late.covers(early):
		return "", nil, nil
	case !same && late.everything():
		return "", nil, nil // the last rule of a chain, which decides what no other did
	case !same:
		return Generalised, early, late
	}
	// The later rule would do the work of the earlier one, unless something between decides otherwise,
	// or the earlier one counts.
	if early.counts || slices.Contains(barrier[early.index:late.index], true) {
		return "", nil, nil
	}
	for k := i + 1; k < j; k++ {
		between := &boxes[k]
		if between.overlaps(early) && between.verdict.Kind != early.verdict.Kind {
			return "", nil, nil
		}
	}
	return Redundant, early, late
}
