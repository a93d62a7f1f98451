package equal

import (
	"cmp"
	"fmt"
	"slices"
)

// prover compares two lists of entries box by box.
type prover struct {
	axes   *axes
	names  *names
	limits Limits
	cells  int
	work   int
	lists  [2][]entry
}

// difference is a box of packets that the lists treat differently, and how.
type difference struct {
	box  box
	what string
}

// compare returns a difference within a box, or an error if it needs too much.
func (p *prover) compare(b box, old, now []int32) (*difference, error) {
	sides := [2][]int32{p.clip(0, b, old), p.clip(1, b, now)}
	if p.work += len(old) + len(now); p.work > p.limits.Work || p.cells > p.limits.Cells {
		return nil, errMany
	}
	if p.permuted(b, sides) {
		p.cells++
		return nil, nil
	}
	f, at, ok := p.cut(b, sides)
	if !ok {
		p.cells++
		return p.outcomes(b, sides)
	}
	low, high := b, b
	low[f].hi, high[f].lo = at-1, at
	if d, err := p.compare(low, sides[0], sides[1]); d != nil || err != nil {
		return d, err
	}
	return p.compare(high, sides[0], sides[1])
}

// clip returns the entries that a packet of a box can meet.
func (p *prover) clip(side int, b box, list []int32) []int32 {
	all := p.lists[side]
	out := make([]int32, 0, len(list))
	target := int32(-1) // the farthest one of entries that some packets of the box leave for
	from := int32(-1)   // all packets leave for this entry
	for _, i := range list {
		e := &all[i]
		if i < from || !e.box.meets(&b) {
			continue
		}
		kind := p.names.actions[e.act].kind
		full := e.cond == 0 && e.box.covers(&b)
		switch {
		case kind == leaves && full && target <= i:
			from = e.target
			continue
		case kind == leaves:
			target = max(target, e.target)
		}
		out = append(out, i)
		if kind == decides && full && target <= i {
			break
		}
	}
	// Nothing is between what leaves and where it goes.
	for again := true; again; {
		again = false
		for k := len(out) - 1; k >= 0; k-- {
			e := &all[out[k]]
			if p.names.actions[e.act].kind == leaves && (k == len(out)-1 || e.target <= out[k+1]) {
				out = slices.Delete(out, k, k+1)
				again = true
			}
		}
	}
	return out
}

// place is an entry within a box, as the lists are compared.
type place struct {
	box       box
	act, cond int32
}

func (p *prover) place(side int, b *box, i int32) place {
	e := &p.lists[side][i]
	both, _ := e.box.within(b)
	return place{both, e.act, e.cond}
}

// permuted reports whether the lists differ at most in the order of entries whose order is free.
func (p *prover) permuted(b box, sides [2][]int32) bool {
	n := len(sides[0])
	if n != len(sides[1]) {
		return false
	}
	same, skips := true, false
	for k := range n {
		x, y := p.place(0, &b, sides[0][k]), p.place(1, &b, sides[1][k])
		if p.names.actions[x.act].kind == leaves || p.names.actions[y.act].kind == leaves {
			skips = true
			same = same && p.ahead(0, sides[0], k) == p.ahead(1, sides[1], k)
		}
		if same = same && x == y; !same && skips {
			return false
		}
	}
	if same {
		return true
	}
	// Where each entry of the new list is in the old one; equal entries keep their order.
	first := make(map[place]int32, n)
	next := make([]int32, n)
	for k := n - 1; k >= 0; k-- {
		x := p.place(0, &b, sides[0][k])
		next[k] = -1
		if at, ok := first[x]; ok {
			next[k] = at
		}
		first[x] = int32(k)
	}
	was := make([]int32, n)
	places := make([]place, n)
	for k := range n {
		y := p.place(1, &b, sides[1][k])
		at, ok := first[y]
		if !ok || at < 0 || p.names.actions[y.act].kind == leaves {
			return false
		}
		first[y] = next[at]
		was[k], places[k] = at, y
	}
	highest := make([]int32, n)
	for k := range n {
		if highest[k] = was[k]; k > 0 {
			highest[k] = max(was[k], highest[k-1])
		}
	}
	for k := range n {
		for j := k - 1; j >= 0 && highest[j] > was[k]; j-- {
			if p.work++; p.work > p.limits.Work {
				return false // and compare reports it
			}
			if was[j] > was[k] && !p.free(&places[j], &places[k]) {
				return false
			}
		}
	}
	return true
}

// ahead returns how many entries of a list an entry leaves out.
func (p *prover) ahead(side int, list []int32, k int) int {
	e := &p.lists[side][list[k]]
	if p.names.actions[e.act].kind != leaves {
		return 0
	}
	at, _ := slices.BinarySearch(list, e.target)
	return at - k
}

// free reports whether two entries may change places.
func (p *prover) free(x, y *place) bool {
	if !x.box.meets(&y.box) {
		return true
	}
	a, b := p.names.actions[x.act].kind, p.names.actions[y.act].kind
	return a == counts && b == counts || a == decides && x.act == y.act
}

// cut chooses where to cut a box: the field and the first number of its higher half that leave the
// fewest entries to compare. False if every entry covers the box.
func (p *prover) cut(b box, sides [2][]int32) (field int, at uint32, ok bool) {
	const sampled = 256
	best := -1
	for f := 1; f < fields; f++ {
		if b[f].lo == b[f].hi {
			continue
		}
		var cuts []uint32
		for side, list := range sides {
			step := max(1, len(list)/sampled)
			for again := range 2 {
				for k := 0; k < len(list); k += step {
					s := p.lists[side][list[k]].box[f]
					if s.lo > b[f].lo {
						cuts = append(cuts, s.lo)
					}
					if s.hi < b[f].hi {
						cuts = append(cuts, s.hi+1)
					}
				}
				if len(cuts) > 0 || step == 1 || again > 0 {
					break
				}
				step = 1
			}
		}
		if len(cuts) == 0 {
			continue
		}
		slices.Sort(cuts)
		// Between many cuts the middle one; a field with few values is cut where it differs most.
		middle := cuts[len(cuts)/2]
		low, high := 0, 0
		for side, list := range sides {
			step := max(1, len(list)/sampled)
			for k := 0; k < len(list); k += step {
				s := p.lists[side][list[k]].box[f]
				if s.lo < middle {
					low++
				}
				if s.hi >= middle {
					high++
				}
			}
		}
		if score := low + high + max(low, high); best < 0 || score < best {
			best, field, at, ok = score, f, middle, true
		}
	}
	return field, at, ok
}

// mostConditions bounds the unmodelled conditions whose answers are tried in one cell.
const mostConditions = 14

// outcomes compares what happens to the packets of a box that every entry covers.
func (p *prover) outcomes(b box, sides [2][]int32) (*difference, error) {
	answers := make(map[string]bool)
	var try func(depth int) (*difference, error)
	try = func(depth int) (*difference, error) {
		if depth > mostConditions {
			return nil, fmt.Errorf("more than %d conditions on one packet: %w", mostConditions, errUnknown)
		}
		var got [2]outcome
		for side := range sides {
			var missing string
			if got[side], missing = p.run(side, sides[side], answers); missing != "" {
				for _, answer := range []bool{true, false} {
					answers[missing] = answer
					if d, err := try(depth + 1); d != nil || err != nil {
						return d, err
					}
				}
				delete(answers, missing)
				return nil, nil
			}
		}
		if p.work += len(sides[0]) + len(sides[1]); p.work > p.limits.Work {
			return nil, errMany
		}
		if what := p.differ(got[0], got[1]); what != "" {
			return &difference{b, what}, nil
		}
		return nil, nil
	}
	return try(0)
}

// outcome is what happens to a packet: the counters between effects, the effects, the end.
type outcome struct {
	counts  []int32 // actions, sorted between effects
	effects []int32 // and -1 after each
	end     int32   // action; -1: the end of the chain
}

// run returns the outcome of the entries, or the condition whose answer is missing.
func (p *prover) run(side int, list []int32, answers map[string]bool) (out outcome, missing string) {
	out.end = -1
	sorted, segment, from := 0, 0, int32(-1)
	settle := func() {
		slices.Sort(out.counts[sorted:])
		sorted = len(out.counts)
	}
	proposed := int32(-1)
walk:
	for _, i := range list {
		e := &p.lists[side][i]
		if i < from {
			continue
		}
		for _, c := range p.names.conds[e.cond] {
			name := fmt.Sprintf("%d %s", segment, c)
			answer, ok := answers[name]
			if !ok {
				return out, name
			}
			if !answer {
				continue walk
			}
		}
		switch p.names.actions[e.act].kind {
		case counts:
			out.counts = append(out.counts, e.act)
		case decides:
			out.end = e.act
			break walk
		case leaves:
			from = e.target
		case proposes:
			proposed = e.act
		case calls, acts:
			settle()
			out.counts = append(out.counts, -1)
			sorted = len(out.counts)
			out.effects = append(out.effects, e.act)
			segment++
		}
	}
	settle()
	if proposed >= 0 && (out.end < 0 ||
		p.names.actions[out.end].text[:min(6, len(p.names.actions[out.end].text))] == "policy") {
		out.end = proposed
	}
	return out, ""
}

// differ says how two outcomes differ; empty if they do not.
func (p *prover) differ(old, now outcome) string {
	name := func(act int32) string {
		if act < 0 {
			return "the end of the chain"
		}
		return p.names.actions[act].text
	}
	switch {
	case p.end(old.end) != p.end(now.end):
		return fmt.Sprintf("%s before, %s after", name(old.end), name(now.end))
	case !slices.Equal(old.effects, now.effects):
		return "other statements with effects, or in another order"
	case !slices.Equal(old.counts, now.counts):
		return "other counters increase"
	}
	return ""
}

// end is the verdict of an action that ends a list: a policy decides as a rule does.
func (p *prover) end(act int32) string {
	if act < 0 {
		return ""
	}
	text := p.names.actions[act].text
	if len(text) > 7 && text[:7] == "policy " {
		text = text[7:]
	}
	return cmp.Or(text, "end")
}
