package rewrite

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

const (
	// copies and more bound the places that a decision tree has beside one for each rule that it
	// decides among: for each of them, and in all.
	copies, more = 2, 64
	// mostTried bounds the comparisons of each field that are weighed against each other for a place,
	// and mostWeighed bounds them by the rules that each is weighed with.
	mostTried, mostWeighed = 96, 60_000
	// shortest is how many rules in a row are worth a decision tree.
	shortest = 8
	// deepestTree is how many chains of a decision tree may follow one another. See [deepest].
	deepestTree = 10
)

// want is a rule that a decision tree decides among.
type want struct {
	it       *item
	number   int
	terms    []ruleset.Term
	at       []ruleset.Range
	protocol uint64  // that its ports belong to; 0: it compares no port
	weight   float64 // of the packets that it matches
	places   int     // where the tree has it
	chain    string  // of its own, if several places lead to it
}

// protocolTerm is what a tree compares with protocols.
var protocolTerm = ruleset.Term{Field: ruleset.Protocol, Header: "meta"}

// ofPorts returns the protocol of a term on a port that a tree can compare; 0 for another term.
func ofPorts(t ruleset.Term) uint64 {
	if t.Field != ruleset.SourcePort && t.Field != ruleset.DestinationPort {
		return 0
	}
	switch t.Header {
	case "tcp":
		return 6
	case "udp":
		return 17
	}
	return 0
}

// plainTerm reports whether a tree can compare a term.
func plainTerm(t ruleset.Term) bool {
	switch t.Field {
	case ruleset.SourcePort, ruleset.DestinationPort:
		return ofPorts(t) != 0
	case ruleset.Source, ruleset.Destination:
		return t.Header == "ip" || t.Header == "ip6"
	case ruleset.InInterface, ruleset.OutInterface:
		return t.Header == "iifname" || t.Header == "oifname"
	}
	return t == protocolTerm
}

// wanted returns a rule as a tree needs it; false if it is more than comparisons with single
// ranges, a counter and a verdict.
func wanted(it *item) (*want, bool) {
	if !it.simple || !it.nests || !it.counts && !it.decides {
		return nil, false
	}
	w := &want{it: it, terms: it.key, weight: float64(it.hits)}
	for i, t := range it.key {
		if !plainTerm(t) || len(it.values[i]) != 1 {
			return nil, false
		}
		w.at = append(w.at, it.values[i][0])
		w.protocol = max(w.protocol, ofPorts(t))
	}
	return w, true
}

// on returns the values of a term that a rule is about. open: it does not compare the term; never:
// no packet with the term's header matches it.
func (w *want) on(t ruleset.Term) (r ruleset.Range, open, never bool) {
	for i, own := range w.terms {
		if own.Field == t.Field {
			return w.at[i], false, own.Header != t.Header
		}
	}
	switch t.Field {
	case ruleset.Protocol:
		if w.protocol != 0 {
			return ruleset.Numbers(w.protocol, w.protocol), false, false
		}
	case ruleset.SourcePort, ruleset.DestinationPort:
		own, without, _ := w.on(protocolTerm)
		return r, true, !without && !own.Contains(ruleset.Number(ofPorts(t)))
	case ruleset.Source, ruleset.Destination:
		for _, own := range w.terms {
			if (own.Field == ruleset.Source || own.Field == ruleset.Destination) && own.Header != t.Header {
				return r, true, true
			}
		}
	}
	return r, true, false
}

// known is what the comparisons on the way to a place have found, by field.
type known map[ruleset.Field]finding

type finding struct {
	header string
	at     ruleset.Range
}

// with adds what one more comparison has found. The header of a port is known with its protocol.
func (k known) with(t ruleset.Term, r ruleset.Range) known {
	out := maps.Clone(k)
	out[t.Field] = finding{t.Header, r}
	if n := ofPorts(t); n != 0 {
		out[ruleset.Protocol] = finding{protocolTerm.Header, ruleset.Numbers(n, n)}
	}
	return out
}

// rest returns which comparisons of a rule are open at a place, as bits.
func (k known) rest(w *want) (left uint) {
	for i, t := range w.terms {
		if f, ok := k[t.Field]; !ok || f.header != t.Header || !w.at[i].Covers(f.at) {
			left |= 1 << i
		}
	}
	return left
}

// place is a node of a decision tree: one comparison, or a list of rules.
type place struct {
	wants []*want
	left  []uint // comparisons of each rule that are open

	// A comparison, behind which packets go to another place; the others stay in the chain.
	test    test
	yes, no *place // nil in a list

	known known
	rules int     // places of rules from here on
	cost  float64 // rules that its packets meet, on average
	chain string  // that begins with it; empty until it is written
}

// test is a comparison of a term with a range.
type test struct {
	term    ruleset.Term
	at      ruleset.Range
	yes, no float64 // weights of the packets
	score   float64 // rules that a packet meets from here on, as a guess
}

// grower makes a decision tree of rules in a row.
type grower struct {
	b      *builder
	places map[string]*place
}

// guessed is how many rules a packet meets in a tree that decides among some.
func guessed(rules int) float64 {
	if rules <= 2 {
		return float64(rules+1) / 2
	}
	return 0.3 + 1.35*math.Log2(float64(rules))
}

// listed is how many rules a packet meets in a list, on average.
func listedWants(wants []*want) float64 {
	met, sum, all := 0.0, 0.0, float64(len(wants))
	for i, w := range wants {
		n := all // a rule that only counts ends nothing
		if w.it.decides {
			n = float64(i + 1)
		}
		met, sum = met+w.weight*n, sum+w.weight
	}
	if sum == 0 {
		return all
	}
	return met / sum
}

// at makes the place that decides among rules. depth is how many chains may follow, and room how
// many more places the rules may get.
func (g *grower) at(wants []*want, k known, depth, room int) *place {
	p := &place{known: k}
	key := binary.AppendUvarint(nil, uint64(depth))
	for _, w := range wants {
		left := k.rest(w)
		p.wants, p.left = append(p.wants, w), append(p.left, left)
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(w.number)), uint64(left))
		if left == 0 && w.it.decides {
			break // no packet comes to the rules behind
		}
	}
	if same := g.places[string(key)]; same != nil {
		return same
	}
	g.places[string(key)] = p
	p.rules, p.cost = len(p.wants), listedWants(p.wants)
	if len(p.wants) < 3 || depth == 0 {
		return p
	}
	const worthwhile = 0.2
	best := test{score: p.cost - worthwhile}
	for _, t := range g.terms(p.wants) {
		for _, r := range g.ranges(p, t) {
			if one, ok := g.weighed(p, t, r, room); ok && one.score < best.score {
				best = one
			}
		}
	}
	if best.yes == 0 {
		return p
	}
	yes, no := g.parts(p, best.term, best.at)
	out := &place{known: k, test: best}
	room -= len(yes) + len(no) - len(p.wants)
	out.yes = g.at(yes, k.with(best.term, best.at), depth-1, room*len(yes)/(len(yes)+len(no)))
	out.no = g.at(no, k, depth, room-(out.yes.rules-len(yes)))
	out.rules = out.yes.rules + out.no.rules
	out.cost = 1 + (best.yes*out.yes.cost+best.no*out.no.cost)/(best.yes+best.no)
	if out.cost >= p.cost-worthwhile {
		return p
	}
	g.places[string(key)] = out
	return out
}

// terms returns the terms that some of the rules compare.
func (g *grower) terms(wants []*want) (all []ruleset.Term) {
	for _, w := range wants {
		for _, t := range w.terms {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
		if w.protocol != 0 && !slices.Contains(all, protocolTerm) {
			all = append(all, protocolTerm)
		}
	}
	return all
}

// parts returns the rules that packets of a range can match, and those that other packets can
// match, fragments without ports among them.
func (g *grower) parts(p *place, t ruleset.Term, at ruleset.Range) (yes, no []*want) {
	for _, w := range p.wants {
		r, open, never := w.on(t)
		if !never && (open || r.Overlaps(at)) {
			yes = append(yes, w)
		}
		if never || open || !at.Covers(r) {
			no = append(no, w)
		}
	}
	return yes, no
}

// weighed returns what a comparison is worth; false if the tree has no room for it.
func (g *grower) weighed(p *place, t ruleset.Term, at ruleset.Range, room int) (test, bool) {
	out := test{term: t, at: at}
	yes, no, open := 0, 0, 0.0
	for _, w := range p.wants {
		r, isOpen, never := w.on(t)
		switch {
		case never:
			no++
			out.no += w.weight
		case isOpen:
			yes, no = yes+1, no+1
			open += w.weight
		case at.Covers(r):
			yes++
			out.yes += w.weight
		case r.Overlaps(at):
			yes, no = yes+1, no+1
			out.yes, out.no = out.yes+w.weight/2, out.no+w.weight/2
		default:
			no++
			out.no += w.weight
		}
	}
	if out.yes == 0 || yes+no-len(p.wants) > room {
		return out, false
	}
	// The packets of a rule that does not compare the term are spread as the others are.
	spread := 1 + open/(out.yes+out.no)
	out.yes, out.no = out.yes*spread, out.no*spread
	out.score = 1 + (out.yes*guessed(yes)+out.no*guessed(no))/(out.yes+out.no)
	return out, true
}

// ranges returns what a term may be compared with at a place: what its rules compare it with, and
// what lies between.
func (g *grower) ranges(p *place, t ruleset.Term) []ruleset.Range {
	var own []ruleset.Range
	for _, w := range p.wants {
		if r, open, never := w.on(t); !open && !never {
			own = append(own, r)
		}
	}
	own = inOrder(own)
	var all []ruleset.Range
	add := func(r ruleset.Range) {
		if f, ok := p.known[t.Field]; (!ok || !r.Covers(f.at)) && comparable(t, r) {
			all = append(all, r)
		}
	}
	for i, r := range own {
		add(r)
		if i == 0 {
			continue
		}
		if t.Field == ruleset.SourcePort || t.Field == ruleset.DestinationPort {
			before, _ := r.First.Previous()
			add(ruleset.Range{First: ruleset.Number(0), Last: before})
			continue
		}
		add(around(own[i-1].First, prefix(named(t.Field), own[i-1].First, r.Last)))
	}
	all = inOrder(all)
	most := min(mostTried, max(mostWeighed/len(p.wants), 8))
	if len(all) <= most {
		return all
	}
	// The widest ones are the most likely to halve the rest; between them some of all.
	var out []ruleset.Range
	for i := 0; i < len(all); i += 2 * len(all) / most {
		out = append(out, all[i])
	}
	sorting.StableFunc(all, func(a, b ruleset.Range) int {
		return prefix(false, a.First, a.Last) - prefix(false, b.First, b.Last)
	})
	return append(out, all[:most/2]...)
}

// inOrder sorts ranges, the wider ones first, and leaves each once.
func inOrder(all []ruleset.Range) []ruleset.Range {
	sorting.Func(all, func(a, b ruleset.Range) int {
		if c := a.First.Compare(b.First); c != 0 {
			return c
		}
		return b.Last.Compare(a.Last)
	})
	return slices.Compact(all)
}

// comparable reports whether one comparison of nftables and of iptables holds for just a range.
func comparable(t ruleset.Term, r ruleset.Range) bool {
	switch t.Field {
	case ruleset.Source, ruleset.Destination:
		bits, ok := r.Bits()
		return ok && bits > 0 && (t.Header == "ip6" || bits > 96)
	case ruleset.InInterface, ruleset.OutInterface:
		bits, ok := r.Bits()
		return ok && bits > 0
	case ruleset.Protocol:
		return r.First == r.Last && r.First.Number() > 0
	}
	return true
}

// shared puts runs of a chain's rules into decision trees. A rule that belongs into several places
// has a chain of its own, which all of them lead to, so that its counter stays one. It is false if
// there is nothing to gain.
func (b *builder) shared(c *ruleset.Chain, items []*item) ([]*ruleset.Rule, bool) {
	var out []*ruleset.Rule
	some := false
	for i := 0; i < len(items); {
		var run []*want
		for _, it := range items[i:] {
			w, ok := wanted(it)
			if !ok {
				break
			}
			w.number = len(run)
			run = append(run, w)
		}
		if len(run) >= shortest {
			if rules, ok := b.grown(c.Name, run, i+len(run) == len(items)); ok {
				out, some = append(out, rules...), true
				i += len(run)
				continue
			}
		}
		for range max(len(run), 1) {
			out = append(out, items[i].rule)
			i++
		}
	}
	return out, some
}

// saved is how much of a list's rules a packet may meet in a tree.
const saved = 0.8

// grown makes the decision tree of a run. last: no rule of the chain follows.
func (b *builder) grown(chain string, run []*want, last bool) ([]*ruleset.Rule, bool) {
	g := &grower{b: b, places: make(map[string]*place)}
	sum := 0.0
	for _, w := range run {
		sum += w.weight
	}
	for _, w := range run {
		w.weight += max(1, sum/4) / float64(len(run))
	}
	top := g.at(run, known{}, deepestTree, copies*len(run)+more)
	if top.yes == nil || top.cost > saved*listedWants(run) {
		return nil, false
	}
	top.count(make(map[*place]bool))
	// Rules that no packet reaches keep their counters, in a chain that nothing leads to.
	unreached := &ruleset.Chain{}
	for _, w := range run {
		if w.places > 0 {
			continue
		}
		if unreached.Name == "" {
			unreached.Name = b.fresh(chain, "unreached")
			b.extra = append(b.extra, unreached)
		}
		unreached.Rules = append(unreached.Rules, in(w.it.rule, unreached.Name))
	}
	if last {
		return g.write(top, chain), true
	}
	own := &ruleset.Chain{Name: b.fresh(chain, "tree")}
	own.Rules = g.write(top, own.Name)
	b.extra = append(b.extra, own)
	return []*ruleset.Rule{b.leads(nil, nil, chain, own.Name, ruleset.Jump)}, true
}

// count counts the places of each rule.
func (p *place) count(seen map[*place]bool) {
	if seen[p] {
		return
	}
	seen[p] = true
	if p.yes == nil {
		for _, w := range p.wants {
			w.places++
		}
		return
	}
	p.yes.count(seen)
	p.no.count(seen)
}

// fresh returns a free name for a chain that belongs to another one.
func (b *builder) fresh(chain, what string) string {
	base, _, _ := strings.Cut(chain, "-")
	for i := 1; ; i++ {
		n := fmt.Sprintf("%.12s-%s%d", base, what, i)
		if !b.taken[n] {
			b.taken[n] = true
			return n
		}
	}
}

// write returns the rules of a place for a chain.
func (g *grower) write(p *place, chain string) (out []*ruleset.Rule) {
	for ; p.yes != nil; p = p.no {
		if w := p.yes.only(); w != nil && w.places == 1 && w.it.decides {
			out = append(out, in(w.it.rule, chain)) // which has the comparison too
			continue
		}
		to := g.begun(p.yes, chain)
		out = append(out, g.b.leads([]ruleset.Term{p.test.term}, []ruleset.Range{p.test.at}, chain, to, ruleset.Goto))
	}
	return append(out, g.list(p, chain)...)
}

// only returns the rule of a list of one, nil if there are more.
func (p *place) only() *want {
	if p.yes == nil && len(p.wants) == 1 {
		return p.wants[0]
	}
	return nil
}

// begun returns the chain of a place, and writes it at the first time.
func (g *grower) begun(p *place, from string) string {
	if p.chain != "" {
		return p.chain
	}
	if w := p.only(); w != nil && p.left[0] == 0 && w.places > 1 && w.it.decides {
		p.chain = g.own(w, from)
		return p.chain
	}
	p.chain = g.b.fresh(from, "part")
	own := &ruleset.Chain{Name: p.chain}
	own.Rules = g.write(p, p.chain)
	g.b.extra = append(g.b.extra, own)
	return p.chain
}

// own returns the chain of a rule that several places lead to, and writes it at the first time. The
// rule is there as it was written, because iptables keeps texts and a reader knows it again.
func (g *grower) own(w *want, from string) string {
	if w.chain == "" {
		w.chain = g.b.fresh(from, "rule")
		g.b.extra = append(g.b.extra, &ruleset.Chain{Name: w.chain, Rules: []*ruleset.Rule{in(w.it.rule, w.chain)}})
	}
	return w.chain
}

// list writes the rules of a list.
func (g *grower) list(p *place, chain string) (out []*ruleset.Rule) {
	for i, w := range p.wants {
		if w.places == 1 {
			out = append(out, in(w.it.rule, chain))
			continue
		}
		var terms []ruleset.Term
		var ranges []ruleset.Range
		for k, t := range w.terms {
			if p.left[i]&(1<<k) != 0 {
				terms, ranges = append(terms, t), append(ranges, w.at[k])
			}
		}
		kind := ruleset.Goto
		if !w.it.decides {
			kind = ruleset.Jump
		}
		out = append(out, g.b.leads(terms, ranges, chain, g.own(w, chain), kind))
	}
	return out
}

// leads makes a rule that leads the packets of some ranges to another chain.
func (b *builder) leads(terms []ruleset.Term, ranges []ruleset.Range, chain, to string,
	kind ruleset.Kind) *ruleset.Rule {
	r := new(ruleset.Rule)
	for i, t := range terms {
		r.Statements = append(r.Statements, ruleset.Match{Key: []ruleset.Term{t}, Plain: []ruleset.Range{ranges[i]}})
	}
	if b.program != ruleset.NFT {
		way := map[ruleset.Kind]string{ruleset.Jump: " -j ", ruleset.Goto: " -g "}[kind]
		r.Text = "-A " + chain + options(terms, ranges) + way + to
		r.Statements = append(r.Statements, new(ruleset.Counter))
	}
	r.Statements = append(r.Statements, ruleset.Verdict{Kind: kind, Chain: to})
	return r
}

// options are comparisons as iptables-save prints them.
func options(terms []ruleset.Term, ranges []ruleset.Range) string {
	var addresses, protocol, ports string
	for i, t := range terms {
		value := strings.Trim(t.Field.FormatRange(ranges[i]), `"`)
		if begin, ok := strings.CutSuffix(value, "*"); ok {
			value = begin + "+"
		}
		switch t.Field {
		case ruleset.Source:
			addresses += " -s " + value
		case ruleset.Destination:
			addresses += " -d " + value
		case ruleset.InInterface:
			addresses += " -i " + value
		case ruleset.OutInterface:
			addresses += " -o " + value
		case ruleset.Protocol:
			switch value {
			case "tcp", "udp", "icmp", "ipv6-icmp":
			default: // a system may have no name for it
				value = fmt.Sprint(ranges[i].First.Number())
			}
			protocol = " -p " + value
		case ruleset.SourcePort, ruleset.DestinationPort:
			if ports == "" {
				protocol, ports = " -p "+t.Header, " -m "+t.Header
			}
			ports += fmt.Sprintf(" --%s %d:%d", t.Field, ranges[i].First.Number(), ranges[i].Last.Number())
		}
	}
	return addresses + protocol + ports
}
