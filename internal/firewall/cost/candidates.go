package cost

import (
	"cmp"
	"iter"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// fewBoxes is how many boxes are compared all with all.
const fewBoxes = 64

// candidates returns the pairs of boxes, the earlier one first, of which one may cover the other.
// In no particular order, and no pair that [box.covers] would accept is left out.
//
// A box that is bounded in a field is covered only by boxes that are not, or whose interval there
// contains its own. So one field sorts the boxes: those of the same interval, and those within each
// other, are candidates.
func candidates(boxes []box) iter.Seq2[int, int] {
	field, pairs := -1, len(boxes)*(len(boxes)-1)/2
	if len(boxes) > fewBoxes {
		for f := range boxes[0].bounded {
			if n := nested(boxes, f, pairs, nil); n < pairs {
				field, pairs = f, n
			}
		}
	}
	return func(yield func(int, int) bool) {
		if field >= 0 {
			nested(boxes, field, pairs, yield)
			return
		}
		for i := range boxes {
			for j := i + 1; j < len(boxes); j++ {
				if !yield(i, j) {
					return
				}
			}
		}
	}
}

// nested visits the pairs that a field leaves, and returns their number; with nil it only counts
// them. It ends when visit returns false, and once there are more than most.
func nested(boxes []box, field, most int, visit func(i, j int) bool) (n int) {
	var within, wide []int
	for i := range boxes {
		if boxes[i].bounded[field] && !boxes[i].empty {
			within = append(within, i)
		} else {
			wide = append(wide, i)
		}
	}
	pair := func(i, j int) bool {
		n++
		return n <= most && (visit == nil || visit(min(i, j), max(i, j)))
	}
	// A box without bounds here is compared with all.
	if visit == nil {
		if n = len(wide)*(len(wide)-1)/2 + len(wide)*len(within); n > most {
			return n
		}
		wide = nil
	}
	for k, i := range wide {
		for _, j := range wide[k+1:] {
			if !pair(i, j) {
				return n
			}
		}
		for _, j := range within {
			if !pair(i, j) {
				return n
			}
		}
	}
	hull := func(i int) ruleset.Range { return boxes[i].hull[field] }
	sorting.Func(within, func(a, b int) int {
		return cmp.Or(hull(a).First.Compare(hull(b).First), hull(b).Last.Compare(hull(a).Last), cmp.Compare(a, b))
	})
	var open []int // intervals that began at or before this one and have not ended
	for _, i := range within {
		at := hull(i)
		open = slices.DeleteFunc(open, func(k int) bool { return hull(k).Last.Compare(at.First) < 0 })
		for _, k := range open {
			if hull(k).Last.Compare(at.Last) >= 0 && !pair(k, i) {
				return n
			}
		}
		open = append(open, i)
	}
	return n
}
