package equal

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// differ traces a packet through a base chain of both tables and says what differs; empty if
// nothing does. Unmodelled conditions are answered in several ways.
func (p *pair) differ(c, d *ruleset.Chain, packet ruleset.Packet) string {
	for way := range 8 {
		if what := p.traced(c, d, packet, way); what != "" {
			return what
		}
	}
	return ""
}

// assume answers an unmodelled condition by its text: no, yes, or by chance.
func assume(way int) ruleset.Assume {
	return func(_ *ruleset.Rule, o ruleset.Opaque) (bool, bool) {
		if way < 2 {
			return way == 1, false
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(o.Text)) // a hash takes everything
		return h.Sum32()>>way&1 == 1, false
	}
}

func (p *pair) traced(c, d *ruleset.Chain, packet ruleset.Packet, way int) string {
	old, now := p.old.WalkMatches(c, packet, assume(way)), p.now.WalkMatches(d, packet, assume(way))
	p.steps += old.Met + now.Met
	if old.Verdict != now.Verdict {
		return fmt.Sprintf("%s before, %s after", old.Verdict, now.Verdict)
	}
	if old.Verdict == ruleset.Reject && len(old.Steps) > 0 && len(now.Steps) > 0 {
		// The answer to the sender is part of the verdict.
		if a, b := old.Steps[len(old.Steps)-1].Verdict.Text(), now.Steps[len(now.Steps)-1].Verdict.Text(); a != b {
			return fmt.Sprintf("%s before, %s after", a, b)
		}
	}
	increased := make(map[*ruleset.Counter]int, len(old.Counters))
	for _, n := range old.Counters {
		increased[n]++
	}
	for _, n := range now.Counters {
		if p.counted[n] {
			increased[n]--
		}
	}
	for n, more := range increased {
		if more != 0 {
			return fmt.Sprintf("counter of %s: %+d", describe(&ruleset.Ruleset{Tables: []*ruleset.Table{p.old}}, n), -more)
		}
	}
	was, is := effects(old), effects(now)
	if !slices.Equal(was, is) {
		return "other statements with effects, or in another order"
	}
	return ""
}

// effects are the unmodelled statements with an effect that a packet reached.
func effects(t ruleset.Trace) (all []string) {
	for _, s := range t.Steps {
		if !s.Matched {
			continue
		}
		for _, st := range s.Rule.Statements {
			if o, ok := st.(ruleset.Opaque); ok && o.Effect != ruleset.EffectNone {
				all = append(all, o.Text)
			}
		}
	}
	return all
}

// directed traces packets at the ends of the intervals of both tables, and beside them.
func (p *pair) directed(out Result) Result {
	for _, c := range p.old.Chains {
		if c.Hook == "" {
			continue
		}
		d := p.now.Chain(c.Name)
		for packet := range p.packets(c, d) {
			if p.steps > p.limits.Steps {
				return out
			}
			out.Packets++
			if what := p.traced(c, d, packet, out.Packets%4); what != "" {
				out = out.fails(Different, p.old, c.Name, what)
				out.Packet = &packet
				return out
			}
		}
	}
	return out
}

// mostPackets bounds the directed packets of one chain.
const mostPackets = 20_000

// packets yields the directed packets of a base chain: in passes over all rules, so that a limit
// that ends them early has seen every rule.
func (p *pair) packets(c, d *ruleset.Chain) func(func(ruleset.Packet) bool) {
	return func(yield func(ruleset.Packet) bool) {
		var entries []entry
		roots := p.axes.roots(p.old.Family)
		for _, x := range []struct {
			table *ruleset.Table
			chain *ruleset.Chain
		}{{p.old, c}, {p.now, d}} {
			m := &compiler{axes: p.axes, names: newNames(), table: x.table, called: func(string) bool { return false },
				counted: p.counted, most: p.limits.Entries}
			// What cannot be compiled to its end still has the entries before it.
			_, _ = m.compile(x.chain, roots)
			entries = append(entries, m.entries...)
		}
		if len(entries) == 0 {
			return
		}
		r := rand.New(rand.NewPCG(uint64(len(entries)), 19))
		r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		most := min(mostPackets, 100*len(entries))
		for n := 0; n < most; {
			for i := range entries {
				if n++; n > most {
					return
				}
				if !yield(p.corner(r, &entries[i].box, roots)) {
					return
				}
			}
		}
	}
}

// corner returns a packet of a box with two fields at an end or beside it.
func (p *pair) corner(r *rand.Rand, b *box, roots []box) ruleset.Packet {
	root := &roots[0]
	for i := range roots {
		if roots[i].meets(b) {
			root = &roots[i]
			break
		}
	}
	at, _ := b.within(root)
	var last [fields]bool
	var free []int
	for f := 1; f < fields; f++ {
		if ruleset.Field(f) != ruleset.Family && root[f].lo < root[f].hi {
			free = append(free, f)
		}
		// A field that the rule leaves open has any value.
		x := at[f].lo + uint32(r.Uint64N(uint64(at[f].hi-at[f].lo)+1))
		at[f], last[f] = span{x, x}, r.IntN(2) == 0
	}
	for range 2 {
		if len(free) == 0 {
			break
		}
		f := free[r.IntN(len(free))]
		s, _ := b.within(root)
		switch r.IntN(4) {
		case 0:
			at[f], last[f] = span{s[f].lo, s[f].lo}, false
		case 1:
			at[f], last[f] = span{s[f].hi, s[f].hi}, true
		case 2:
			if s[f].lo > root[f].lo {
				at[f], last[f] = span{s[f].lo - 1, s[f].lo - 1}, true
			}
		case 3:
			if s[f].hi < root[f].hi {
				at[f], last[f] = span{s[f].hi + 1, s[f].hi + 1}, false
			}
		}
	}
	packet := p.axes.packet(at)
	for f, end := range last {
		if !end {
			continue
		}
		v := p.axes.last(ruleset.Field(f), at[f].hi)
		switch ruleset.Field(f) {
		case ruleset.Source:
			packet.Source = v.Addr()
		case ruleset.Destination:
			packet.Destination = v.Addr()
		case ruleset.Protocol:
			packet.Protocol = uint8(v.Number())
		case ruleset.SourcePort:
			packet.SourcePort = uint16(v.Number())
		case ruleset.DestinationPort:
			packet.DestinationPort = uint16(v.Number())
		}
	}
	return packet
}

// last returns the last value of an elementary interval.
func (a *axes) last(f ruleset.Field, rank uint32) ruleset.Value {
	if int(rank)+1 < len(a.starts[f]) {
		v, _ := a.starts[f][rank+1].Previous()
		return v
	}
	return ruleset.Universe(f).Last
}

// Directed returns packets at the ends of the intervals of a ruleset and beside them, for a hook.
func Directed(r *ruleset.Ruleset, hook string, most int) []ruleset.Packet {
	var all []ruleset.Packet
	for _, t := range r.Tables {
		for _, c := range t.Chains {
			if c.Hook != hook {
				continue
			}
			p := &pair{old: t, now: t, counted: Counters(r), limits: Usual(), axes: newAxes(t)}
			n := 0
			for packet := range p.packets(c, c) {
				if n++; n > most {
					break
				}
				all = append(all, packet)
			}
		}
	}
	return all
}
