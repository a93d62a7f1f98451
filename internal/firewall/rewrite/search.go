package rewrite

import (
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

const (
	// levels is how many fields follow one another in trees.
	levels = 3
	// few is how many rules of a chain are not worth a tree.
	few = 4
	// deepest is how many new chains may follow one another. The kernel takes no rules of nftables,
	// and so none of iptables-nft, that are 16 chains deep (NFT_JUMP_STACK_SIZE); the chains of the
	// rules themselves need some of them.
	deepest = 12
	// hop is what it takes to follow a rule to another chain, in rules of iptables-nft that do not
	// match. In iptables-legacy it is about six of its rules, which are ten times as fast.
	hop = 1.2
)

// behind puts rules that differ in a field into a tree of chains. The chain gets one rule, which
// leads to the tree; in the tree each rule that compares the field leaves for good with goto, so
// that a packet is compared about once for each halving of the rest. only: the chain has been
// chosen by a tree and has no other rules, so the tree begins in it.
func (b *builder) behind(chain string, f ruleset.Field, all []*group, by []ruleset.Field, depth, room int,
	only bool) made {
	if len(all) == 1 {
		return b.branches(chain, all[0].members, by, depth-1, room, only)
	}
	n := plan(f, all, weights(all), room-1)
	if only {
		return b.search(chain, f, n, by, depth, room)
	}
	at := around(all[0].at.First, prefix(named(f), all[0].at.First, all[len(all)-1].at.Last))
	own := &ruleset.Chain{Name: b.short(chain, f, at)}
	m := b.search(own.Name, f, n, by, depth, room-1)
	own.Rules = m.rules
	b.extra = append(b.extra, own)
	to := jump(b.table.Family, chain, f, at, own.Name, ruleset.Jump)
	return made{rules: []*ruleset.Rule{to}, length: 1 + m.length}
}

func named(f ruleset.Field) bool { return f == ruleset.InInterface || f == ruleset.OutInterface }

// node is a comparison of a tree, or a list of rules.
type node struct {
	groups  []*group      // of a list
	at      ruleset.Range // of a comparison
	yes, no *node
	weight  float64
	cost    float64 // for a packet of the groups, on average, in rules that do not match
}

// weights returns the share of the packets of each group, by the counters. A group without any has
// some too.
func weights(all []*group) []float64 {
	out := make([]float64, len(all))
	sum := 0.0
	for i, g := range all {
		var decided, counted float64
		for _, m := range g.members {
			if m.decides {
				decided += float64(m.hits)
			} else {
				counted = max(counted, float64(m.hits))
			}
		}
		out[i] = max(decided, counted)
		sum += out[i]
	}
	for i := range out {
		out[i] += max(1, sum/4) / float64(len(out))
	}
	return out
}

// listed is how many rules a packet meets in a list of groups, on average.
func listed(all []*group, weights []float64) float64 {
	rules, met, sum := 0, 0.0, 0.0
	decide := true
	for i, g := range all {
		for _, m := range g.members {
			_, ok := last(m.rule, m)
			decide = decide && (m.decides || ok && len(g.members) == 1)
		}
		met += weights[i] * (float64(rules) + float64(len(g.members)+1)/2)
		sum += weights[i]
		rules += len(g.members)
	}
	if !decide {
		return float64(rules)
	}
	return (met/sum + float64(rules)) / 2
}

// plan chooses the comparisons for groups in order of value, that halve the packets as nearly as
// prefixes can.
func plan(f ruleset.Field, all []*group, weights []float64, room int) *node {
	out := &node{groups: all, cost: listed(all, weights)}
	for _, w := range weights {
		out.weight += w
	}
	if len(all) == 1 || out.cost <= 1.5 || room < 1 {
		return out
	}
	at, from, to := halving(f, all, weights, out.weight)
	n := &node{at: at, weight: out.weight, yes: plan(f, all[from:to], weights[from:to], room-1),
		no: plan(f, slices.Concat(all[:from], all[to:]), slices.Concat(weights[:from], weights[to:]), room)}
	inside := n.yes.cost
	switch {
	case n.yes.alone() != nil:
		inside = 0
	case n.yes.entrance(f) != nil:
		inside--
	}
	if n.yes.alone() == nil {
		inside += hop
	}
	if n.cost = 1 + (n.yes.weight*inside+n.no.weight*n.no.cost)/n.weight; n.cost < out.cost-0.01 {
		return n
	}
	return out
}

// halving returns the prefix that about half of the packets have, and the groups in it.
func halving(f ruleset.Field, all []*group, weights []float64, sum float64) (at ruleset.Range, from, to int) {
	before := make([]float64, len(all)+1)
	for i, w := range weights {
		before[i+1] = before[i] + w
	}
	best := math.Inf(1)
	try := func(r ruleset.Range, lo, hi int) {
		if off := math.Abs(sum - 2*(before[hi]-before[lo])); hi-lo < len(all) && off < best {
			best, at, from, to = off, r, lo, hi
		}
	}
	for i, g := range all {
		try(g.at, i, i+1)
		if i == 0 {
			continue
		}
		r := around(all[i-1].at.First, prefix(named(f), all[i-1].at.First, g.at.Last))
		lo, _ := slices.BinarySearchFunc(all, r.First, byFirst)
		hi, exact := slices.BinarySearchFunc(all, r.Last, byFirst)
		if exact {
			hi++
		}
		try(r, lo, hi)
	}
	return at, from, to
}

func byFirst(g *group, v ruleset.Value) int { return g.at.First.Compare(v) }

// alone returns the only rule of a list, nil if there are more.
func (n *node) alone() *item {
	if len(n.groups) == 1 && len(n.groups[0].members) == 1 {
		return n.groups[0].members[0]
	}
	return nil
}

// entrance returns the rule of a list of one group that counts all of its packets, before or beside
// its other rules; nil if there is none. That rule can lead to the others.
func (n *node) entrance(f ruleset.Field) *item {
	if len(n.groups) != 1 {
		return nil
	}
	g := n.groups[0]
	for i, it := range g.members {
		if r, ok := it.on(f); it.counts && ok && r == g.at && len(it.rule.Statements) == 2 && targetless(it.rule) &&
			!slices.ContainsFunc(g.members[:i], func(m *item) bool { return !free(m, it) }) {
			return it
		}
	}
	return nil
}

// targetless reports whether the text of a rule says nothing of what follows.
func targetless(r *ruleset.Rule) bool {
	return !strings.Contains(r.Text, " -j ") && !strings.Contains(r.Text, " -g ")
}

// search writes a plan into a chain that other chains call.
func (b *builder) search(chain string, f ruleset.Field, n *node, by []ruleset.Field, depth, room int) made {
	var out made
	left := 1.0
	for ; n.groups == nil; n = n.no {
		out.length += left
		share := left * n.yes.weight / n.weight
		left -= share
		if it := n.yes.alone(); it != nil {
			if r, ok := last(in(it.rule, chain), it); ok {
				out.rules = append(out.rules, r)
				continue
			}
		}
		own := &ruleset.Chain{Name: b.short(chain, f, n.at)}
		to, behind := jump(b.table.Family, chain, f, n.at, own.Name, ruleset.Goto), n.yes
		if it := n.yes.entrance(f); it != nil {
			to = target(in(it.rule, chain), ruleset.Verdict{Kind: ruleset.Goto, Chain: own.Name})
			g := n.yes.groups[0]
			rest := slices.DeleteFunc(slices.Clone(g.members), func(m *item) bool { return m == it })
			behind = &node{groups: []*group{{g.at, rest}}, weight: n.yes.weight, cost: n.yes.cost - 1}
		}
		m := b.search(own.Name, f, behind, by, depth, room-1)
		own.Rules = m.rules
		b.extra = append(b.extra, own)
		out.rules = append(out.rules, to)
		out.length += share * m.length
	}
	if len(n.groups) == 1 && len(n.groups[0].members) > few && len(by) > 0 {
		m := b.branches(chain, n.groups[0].members, by, depth-1, room, true)
		out.rules = append(out.rules, m.rules...)
		out.length += left * m.length
		return out
	}
	for i, g := range n.groups {
		for _, m := range g.members {
			r := in(m.rule, chain)
			if ends, ok := last(r, m); ok && len(g.members) == 1 && i < len(n.groups)-1 {
				r = ends
			}
			out.rules = append(out.rules, r)
		}
	}
	out.length += left * n.cost
	return out
}

// last returns a rule after which a packet that matched leaves the chain; false if it cannot be
// written so.
func last(r *ruleset.Rule, it *item) (*ruleset.Rule, bool) {
	if it.decides {
		return r, true
	}
	if !it.counts || !targetless(r) {
		return nil, false
	}
	return target(r, ruleset.Verdict{Kind: ruleset.Return}), true
}

// target returns a rule that counted only, with a verdict.
func target(r *ruleset.Rule, v ruleset.Verdict) *ruleset.Rule {
	out := *r
	if v.Kind == ruleset.Goto {
		out.Text += " -g " + v.Chain
	} else {
		out.Text += " -j RETURN"
	}
	out.Statements = append(slices.Clone(r.Statements), v)
	return &out
}
