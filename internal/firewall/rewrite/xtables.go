package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// xtables splits a chain of iptables into trees of chains: by interface, then by prefix.
func (b *builder) xtables(c *ruleset.Chain, items []*item) ([]*ruleset.Rule, float64) {
	fields := []ruleset.Field{ruleset.InInterface, ruleset.OutInterface, ruleset.Source, ruleset.Destination}
	start := b.mark()
	least := made{rules: c.Rules, length: float64(len(items))}
	extra, taken := b.extra, b.taken
	for i := range fields {
		prefer := append([]ruleset.Field{fields[i]}, slices.Delete(slices.Clone(fields), i, i+1)...)
		b.reset(start)
		b.taken = start.clone()
		if m := b.branches(c.Name, items, prefer, levels, deepest, false); m.length < least.length-0.01 {
			least, extra, taken = m, slices.Clone(b.extra), b.taken
		}
	}
	b.extra, b.taken = extra, taken
	return least.rules, least.length
}

// branches puts the rules of a chain that compare one of the fields behind trees. room is how many
// chains may still follow one another. ends: a tree has chosen the chain, and its rules end with
// these.
func (b *builder) branches(chain string, items []*item, prefer []ruleset.Field, depth, room int,
	ends bool) made {
	slots := arrange(items, func(it *item) (string, ruleset.Field) {
		if it.nests && depth > 0 && room > 1 {
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
		m := b.behind(chain, s.tree, groups(s.tree, s.members), prefer[1:], depth, room, ends && len(slots) == 1)
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

// in returns a rule in a chain, whose name is in the text of a rule of iptables.
func in(r *ruleset.Rule, chain string) *ruleset.Rule {
	if r.Text == "" {
		return r
	}
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
	want := base + "-" + side + "-" + strings.NewReplacer("*", "_", ":", "_").Replace(strings.Trim(f.FormatRange(at), `"`))
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

// jump makes the rule that leads from a chain to another for the packets of a range: and back, or
// to where the chain itself was called.
func jump(family, chain string, f ruleset.Field, at ruleset.Range, to string, kind ruleset.Kind) *ruleset.Rule {
	r := &ruleset.Rule{Text: "-A " + chain}
	if bits, _ := at.Bits(); bits > 0 && at != everything {
		term := ruleset.Term{Field: f, Header: family}
		option, value := "-s", strings.Trim(f.FormatRange(at), `"`)
		switch f {
		case ruleset.Destination:
			option = "-d"
		case ruleset.InInterface:
			option, term.Header = "-i", "iifname"
		case ruleset.OutInterface:
			option, term.Header = "-o", "oifname"
		}
		if begin, ok := strings.CutSuffix(value, "*"); ok {
			value = begin + "+"
		}
		r.Text += " " + option + " " + value
		r.Statements = append(r.Statements, ruleset.Match{Key: []ruleset.Term{term}, Plain: []ruleset.Range{at}})
	}
	r.Text += map[ruleset.Kind]string{ruleset.Jump: " -j ", ruleset.Goto: " -g "}[kind] + to
	r.Statements = append(r.Statements, new(ruleset.Counter), ruleset.Verdict{Kind: kind, Chain: to})
	return r
}
