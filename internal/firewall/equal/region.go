package equal

import "github.com/linerate/linerate/internal/firewall/ruleset"

// Regions finds the packets that the rules of one table match.
type Regions struct{ c compiler }

// NewRegions prepares the fields of all rules of a table.
func NewRegions(t *ruleset.Table) *Regions {
	return &Regions{compiler{axes: newAxes(t), names: newNames(), table: t, most: 1 << 16}}
}

// Region is the packets that a rule can match, or more.
type Region struct {
	boxes []box
	hull  box
}

// mostBoxes bounds the boxes of one region. A region of more is the box around them.
const mostBoxes = 64

// Of returns the packets that fulfil all modelled matches of a rule before its first other
// statement. Conditions that are not modelled, and matches that are not, leave more packets than
// there are.
func (g *Regions) Of(r *ruleset.Rule) Region {
	boxes := []box{g.c.axes.all()}
	for _, s := range r.Statements {
		if o, ok := s.(ruleset.Opaque); ok && o.Effect == ruleset.EffectNone {
			continue
		}
		m, ok := s.(ruleset.Match)
		if !ok {
			break
		}
		if m.Set != nil && m.Set.Dynamic() {
			continue
		}
		if more, ok, err := g.c.boxes(m); ok && err == nil {
			boxes = meet(boxes, more)
		}
	}
	if len(boxes) == 0 {
		return Region{}
	}
	out := Region{boxes: boxes, hull: boxes[0]}
	for _, b := range boxes {
		for f := range b {
			out.hull[f] = span{min(out.hull[f].lo, b[f].lo), max(out.hull[f].hi, b[f].hi)}
		}
	}
	if len(boxes) > mostBoxes {
		out.boxes = []box{out.hull}
	}
	return out
}

// Meets reports whether a packet can be in both regions.
func (r *Region) Meets(s *Region) bool {
	if len(r.boxes) == 0 || len(s.boxes) == 0 || !r.hull.meets(&s.hull) {
		return false
	}
	for i := range r.boxes {
		for j := range s.boxes {
			if r.boxes[i].meets(&s.boxes[j]) {
				return true
			}
		}
	}
	return false
}
