package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// few is how many rules stand behind one another before a tree splits them again.
const few = 4

// xtables splits a chain of iptables into trees of chains: by interface, then by prefix.
func (b *builder) xtables(c *ruleset.Chain, items []*item) ([]*ruleset.Rule, float64) {
	fields := []ruleset.Field{ruleset.InInterface, ruleset.OutInterface, ruleset.Source, ruleset.Destination}
	start := b.mark()
	least := made{c.Rules, float64(len(items))}
	extra, taken := b.extra, b.taken
	for i := range fields {
		prefer := append([]ruleset.Field{fields[i]}, slices.Delete(slices.Clone(fields), i, i+1)...)
		b.reset(start)
		b.taken = start.clone()
		if m := b.branches(c.Name, items, prefer, 2); m.length < least.length-0.01 {
			least, extra, taken = m, slices.Clone(b.extra), b.taken
		}
	}
	b.extra, b.taken = extra, taken
	return least.rules, least.length
}

// branches puts the rules of a chain that compare one of the fields behind trees.
func (b *builder) branches(chain string, items []*item, prefer []ruleset.Field, depth int) made {
	slots := arrange(items, func(it *item) (string, ruleset.Field) {
		if it.nests && depth > 0 {
			for _, f := range prefer {
				if r, ok := it.on(f); ok && splits(f, r) {
					return f.String(), f
				}
			}
		}
		return "", 0
	}, func(s *slot, it *item) bool { return laminar(s, s.tree, it) })
	order(slots)
	var out made
	for _, s := range slots {
		if s.tree == 0 || len(s.members) <= few {
			for _, m := range s.members {
				out.rules = append(out.rules, in(m.rule, chain))
			}
			out.length += float64(len(s.members))
			continue
		}
		m := b.branch(chain, s.tree, groups(s.tree, s.members), prefer[1:], depth)
		out.rules, out.length = append(out.rules, m.rules...), out.length+m.length
	}
	return out
}

// splits reports whether a tree can compare a range: a prefix of IPv4 or IPv6, or the name of an
// interface.
func splits(f ruleset.Field, r ruleset.Range) bool {
	if f == ruleset.InInterface || f == ruleset.OutInterface {
		return r.First == r.Last && r.First != ruleset.Value{}
	}
	bits, ok := r.Bits()
	return ok && bits > 0
}

// in returns a rule of iptables in a chain.
func in(r *ruleset.Rule, chain string) *ruleset.Rule {
	_, rest, ok := strings.Cut(strings.TrimPrefix(r.Text, "-A "), " ")
	if !ok {
		rest = ""
	}
	text := strings.TrimSpace("-A " + chain + " " + rest)
	if text == r.Text {
		return r
	}
	moved := *r
	moved.Text = text
	return &moved
}

// branch makes the rules of one level of a tree, in a chain.
func (b *builder) branch(chain string, f ruleset.Field, all []*group, by []ruleset.Field, depth int) made {
	var members []*item
	for _, g := range all {
		members = append(members, g.members...)
	}
	if len(members) <= few {
		var out made
		for _, m := range members {
			out.rules = append(out.rules, in(m.rule, chain))
		}
		out.length = float64(len(members))
		return out
	}
	if len(all) == 1 {
		if len(by) > 0 {
			return b.branches(chain, members, by, depth-1)
		}
		return b.branches(chain, members, nil, 0)
	}
	var out made
	inner := 0.0
	parts := parts(f, all)
	for _, p := range parts {
		count := 0
		for _, g := range p.groups {
			count += len(g.members)
		}
		if count == 1 {
			out.rules = append(out.rules, in(p.groups[0].members[0].rule, chain))
			continue
		}
		own := &ruleset.Chain{Name: b.short(chain, f, p.at)}
		m := b.branch(own.Name, f, p.groups, by, depth)
		own.Rules = m.rules
		b.extra = append(b.extra, own)
		out.rules = append(out.rules, jump(b.table.Family, chain, f, p.at, own.Name))
		inner += m.length * float64(count)
	}
	out.length = float64(len(out.rules)) + inner/float64(len(members))
	return out
}

// part is the groups of a level that share a prefix.
type part struct {
	at     ruleset.Range
	groups []*group
}

// parts splits groups by what follows their common beginning: two bits of an address, one letter of
// a name.
func parts(f ruleset.Field, all []*group) []part {
	step := 2
	named := f == ruleset.InInterface || f == ruleset.OutInterface
	if named {
		step = 8
	}
	common := prefix(named, all[0].at.First, all[len(all)-1].at.Last)
	for bits := common + 1; ; bits++ {
		if named && bits%8 != 0 {
			continue
		}
		var out []part
		for _, g := range all {
			at := around(g.at.First, bits)
			if own, ok := g.at.Bits(); ok && own <= bits || bits >= 120 && named {
				at = g.at
			}
			if n := len(out); n > 0 && out[n-1].at.Covers(g.at) {
				out[n-1].groups = append(out[n-1].groups, g)
				continue
			}
			out = append(out, part{at, []*group{g}})
		}
		if len(out) < 2 || !named && len(out) < 3 && bits < common+step && bits < 127 {
			continue
		}
		// The range around what a part really has is the narrowest one.
		for i, p := range out {
			first, last := p.groups[0].at, p.groups[len(p.groups)-1].at
			if len(p.groups) == 1 {
				out[i].at = first
			} else {
				out[i].at = around(first.First, prefix(named, first.First, last.Last))
			}
		}
		return out
	}
}

// prefix returns how many bits two values share at their beginning; whole letters of names.
func prefix(named bool, a, b ruleset.Value) int {
	n := 0
	for n < 128 && (a[n/8]^b[n/8])&(0x80>>(n%8)) == 0 {
		n++
	}
	if named {
		return min(n/8*8, 120)
	}
	return n
}

// around returns the values that share the first bits of one.
func around(v ruleset.Value, bits int) ruleset.Range {
	r := ruleset.Range{First: v, Last: v}
	for i := range v {
		var keep byte
		switch n := bits - 8*i; {
		case n >= 8:
			keep = 0xff
		case n > 0:
			keep = 0xff << (8 - n)
		}
		r.First[i] &= keep
		r.Last[i] |= ^keep
	}
	return r
}

// longestChain is XT_EXTENSION_MAXNAMELEN less the zero.
const longestChain = 28

// short makes a name of a chain that iptables takes.
func (b *builder) short(chain string, f ruleset.Field, at ruleset.Range) string {
	side := map[ruleset.Field]string{ruleset.InInterface: "i", ruleset.OutInterface: "o", ruleset.Source: "s",
		ruleset.Destination: "d"}[f]
	base, _, _ := strings.Cut(chain, "-")
	want := base + "-" + side + "-" + strings.TrimSuffix(strings.Trim(f.FormatRange(at), `"`), "*")
	if len(want) > longestChain || b.taken[want] {
		for i := 1; ; i++ {
			if want = fmt.Sprintf("%.20s-%s-%d", base, side, i); !b.taken[want] {
				break
			}
		}
	}
	b.taken[want] = true
	return want
}

// jump makes the rule that leads from a chain to another for the packets of a range.
func jump(family, chain string, f ruleset.Field, at ruleset.Range, to string) *ruleset.Rule {
	term := ruleset.Term{Field: f, Header: family}
	option, value := "-s", f.FormatRange(at)
	switch f {
	case ruleset.Destination:
		option = "-d"
	case ruleset.InInterface:
		option, term.Header = "-i", "iifname"
	case ruleset.OutInterface:
		option, term.Header = "-o", "oifname"
	}
	value = strings.Trim(value, `"`)
	if begin, ok := strings.CutSuffix(value, "*"); ok {
		value = begin + "+"
	}
	return &ruleset.Rule{Text: fmt.Sprintf("-A %s %s %s -j %s", chain, option, value, to), Statements: []ruleset.Statement{
		ruleset.Match{Key: []ruleset.Term{term}, Plain: []ruleset.Range{at}}, new(ruleset.Counter),
		ruleset.Verdict{Kind: ruleset.Jump, Chain: to}}}
}
