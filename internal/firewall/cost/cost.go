package cost

import (
	"cmp"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Report is what the rules cost.
type Report struct {
	Hooks []Hook
	// Costly are the rules that cost most, by comparisons that packets made before they met their
	// rule.
	Costly   []Rule
	NeverHit int // rules with a counter that saw nothing, where others saw packets
	Findings []Finding
	Cut      bool // not all pairs of rules were compared, because there are too many
	// Tracking is what each packet costs once, beside the hooks, because rules need connection
	// tracking; nanoseconds, 0 if none does.
	Tracking float64
}

// Hook is the base chains of one hook.
type Hook struct {
	Name        string
	Rules       int // that packets of the hook can meet
	Packets     float64
	PerPacket   float64 // rules
	Nanoseconds float64 // per packet
	Counted     bool    // by counters; otherwise for a packet that matches nothing
	Chains      []Chain
}

// Chain is one base chain, or one that it jumps to.
type Chain struct {
	Table, Name string // table is family and name
	Priority    int
	Rules       int
	Uncounted   int // rules without a counter that may match
	Packets     float64
	PerPacket   float64 // rules, with those of chains that it jumps to
	Nanoseconds float64
	Counted     bool
}

// Rule is one rule and what it costs.
type Rule struct {
	Table, Chain string
	Position     int // from 1
	Handle       uint64
	Text         string
	Hits         float64
	// Looks is how often a packet was compared with the rule, and Share what part that is of all.
	Looks, Share float64
	Nanoseconds  float64 // of CPU time for all looks
}

// costly is how many rules a report names.
const costly = 10

// Of reports what rules cost.
func Of(r *ruleset.Ruleset, p Prices) Report {
	out := walk(r, p)
	out.Findings, out.Cut = findings(r)
	return out
}

// Time returns the nanoseconds of all hooks together that counted packets, for a packet that passes
// each of them once, and of connection tracking. If none did it is all hooks. It is linear in the
// prices.
func Time(r *ruleset.Ruleset, p Prices) float64 {
	out := walk(r, p)
	counted, all := 0.0, 0.0
	for _, h := range out.Hooks {
		all += h.Nanoseconds
		if h.Counted {
			counted += h.Nanoseconds
		}
	}
	if counted > 0 {
		all = counted
	}
	return all + out.Tracking
}

// walk is [Of] without the comparison of rules.
func walk(r *ruleset.Ruleset, p Prices) Report {
	w := walker{rules: r, prices: p, looks: make(map[*ruleset.Rule]*Rule), entered: make(map[*ruleset.Chain]float64),
		shares: make(map[*ruleset.Chain]float64)}
	var out Report
	for _, t := range r.Tables {
		w.jumps(t)
	}
	for _, name := range hooksOf(r) {
		h := Hook{Name: name}
		for _, at := range w.entering(name) {
			h.Chains = append(h.Chains, w.base(at))
			for chain := range w.seen {
				h.Rules += len(chain.Rules)
			}
		}
		out.Hooks = append(out.Hooks, h)
	}
	for i := range out.Hooks {
		out.Hooks[i].sum()
	}
	out.Costly, out.NeverHit = w.costly()
	if tracks(r) {
		out.Tracking = p.Tracking
	}
	return out
}

// sum adds up the chains of a hook. A packet has one network protocol: chains of ip and ip6 share
// the packets, those of the other families see all of them.
func (h *Hook) sum() {
	var all, four, six, allRules, fourRules, sixRules, allTime, fourTime, sixTime float64
	for _, c := range h.Chains {
		h.Counted = h.Counted || c.Counted
	}
	for _, c := range h.Chains {
		packets := c.Packets
		if h.Counted && !c.Counted {
			packets = 0 // nothing of it was counted
		}
		rules, time := c.PerPacket*packets, c.Nanoseconds*packets
		switch {
		case len(c.Table) > 3 && c.Table[:3] == "ip ":
			four, fourRules, fourTime = max(four, packets), fourRules+rules, fourTime+time
		case len(c.Table) > 4 && c.Table[:4] == "ip6 ":
			six, sixRules, sixTime = max(six, packets), sixRules+rules, sixTime+time
		default:
			all, allRules, allTime = max(all, packets), allRules+rules, allTime+time
		}
	}
	if !h.Counted {
		// One packet, of the protocol with more rules.
		h.Packets = 0
		h.PerPacket, h.Nanoseconds = allRules+max(fourRules, sixRules), allTime+max(fourTime, sixTime)
		return
	}
	if h.Packets = max(all, four+six); h.Packets > 0 {
		h.PerPacket = (allRules + fourRules + sixRules) / h.Packets
		h.Nanoseconds = (allTime + fourTime + sixTime) / h.Packets
	}
}

// walker carries packets through chains.
type walker struct {
	rules   *ruleset.Ruleset
	prices  Prices
	looks   map[*ruleset.Rule]*Rule
	entered map[*ruleset.Chain]float64 // packets of all jumps to a chain
	shares  map[*ruleset.Chain]float64 // of the packets that enter a chain, the share that it decides
	seen    map[*ruleset.Chain]bool
	depth   int
}

// hits returns how many packets a rule took, and whether a counter says so. A counter says it if no
// condition follows it.
func hits(r *ruleset.Rule) (packets float64, known, conditional bool) {
	for i, s := range r.Statements {
		switch s := s.(type) {
		case ruleset.Match:
			conditional, known = true, false
			// The elements count what the set held.
			if s.Set != nil && !s.Negated && len(s.Set.Elements) > 0 && s.Set.Name == "" {
				packets, known = ofElements(s.Set)
			}
		case ruleset.VerdictMap:
			conditional = true
			if n, ok := ofElements(s.Set); ok {
				packets, known = n, true
			}
		case *ruleset.Counter:
			packets, known = float64(s.Packets), true
		case ruleset.Opaque:
			// What stands last, as a target does, is a condition for nothing.
			if s.Conditional && i < len(r.Statements)-1 {
				conditional, known = true, false
			}
		}
	}
	return packets, known, conditional
}

func ofElements(s *ruleset.Set) (sum float64, known bool) {
	for _, e := range s.Elements {
		if e.Counter != nil {
			sum, known = sum+float64(e.Counter.Packets), true
		}
	}
	return sum, known
}

// ending is the verdict that a matching rule reaches for sure; None if packets go on.
func ending(r *ruleset.Rule) ruleset.Verdict {
	for _, s := range r.Statements {
		switch s := s.(type) {
		case ruleset.Verdict:
			if s.Provisional {
				return ruleset.Verdict{}
			}
			return s
		case ruleset.Opaque:
			if s.Ends {
				return ruleset.Verdict{Kind: ruleset.Accept}
			}
		}
	}
	return ruleset.Verdict{}
}

// mapped returns the verdict map of a rule, nil if it has none.
func mapped(r *ruleset.Rule) *ruleset.Set {
	for _, s := range r.Statements {
		if m, ok := s.(ruleset.VerdictMap); ok {
			return m.Set
		}
	}
	return nil
}

// jumps counts what enters the chains of a table through jumps.
func (w *walker) jumps(t *ruleset.Table) {
	for _, c := range t.Chains {
		for _, r := range c.Rules {
			n, known, _ := hits(r)
			if v := ending(r); v.Kind == ruleset.Jump || v.Kind == ruleset.Goto {
				if to := t.Chain(v.Chain); to != nil && known {
					w.entered[to] += n
				}
			}
			if s := mapped(r); s != nil {
				for to, n := range elementShares(t, s, n, known) {
					w.entered[to] += n
				}
			}
		}
	}
}

// elementShares returns the packets that a verdict map sends to each chain: by the elements'
// counters, by what the chains counted, or in equal parts of n.
func elementShares(t *ruleset.Table, s *ruleset.Set, n float64, known bool) map[*ruleset.Chain]float64 {
	shares := make(map[*ruleset.Chain]float64)
	counted := false
	for _, e := range s.Elements {
		to := t.Chain(e.Verdict.Chain)
		if to == nil {
			continue
		}
		switch {
		case e.Counter != nil:
			shares[to] += float64(e.Counter.Packets)
			counted = true
		default:
			shares[to] = highest(to)
			counted = counted || shares[to] > 0
		}
	}
	if !counted && known && len(s.Elements) > 0 {
		for to := range shares {
			shares[to] = n / float64(len(s.Elements))
		}
	}
	return shares
}

// highest is the largest counter of a chain's rules.
func highest(c *ruleset.Chain) (most float64) {
	for _, r := range c.Rules {
		if n, known, _ := hits(r); known {
			most = max(most, n)
		}
	}
	return most
}

// decided returns the share of the packets entering a chain that its rules decide.
func (w *walker) decided(t *ruleset.Table, c *ruleset.Chain) float64 {
	if s, ok := w.shares[c]; ok {
		return s
	}
	w.shares[c] = 0 // a circle decides nothing
	if n := w.entered[c]; n > 0 {
		w.shares[c] = min(w.taken(t, c)/n, 1)
	}
	return w.shares[c]
}

// taken returns the packets that the rules of a chain decided, by their counters.
func (w *walker) taken(t *ruleset.Table, c *ruleset.Chain) (sum float64) {
	for _, r := range c.Rules {
		n, known, _ := hits(r)
		if !known {
			continue
		}
		switch v := ending(r); v.Kind {
		case ruleset.Accept, ruleset.Drop, ruleset.Reject:
			sum += n
		case ruleset.Jump, ruleset.Goto:
			if to := t.Chain(v.Chain); to != nil {
				sum += n * w.decided(t, to)
			}
		}
	}
	return sum
}

// base walks the packets of a base chain.
func (w *walker) base(e entry) Chain {
	t, c, entering := e.table, e.chain, e.packets
	out := Chain{Table: t.Family + " " + t.Name, Name: c.Name, Priority: c.Priority, Rules: len(c.Rules),
		Counted: entering > 0}
	packets := entering
	if !out.Counted {
		packets = 1
	}
	w.seen = make(map[*ruleset.Chain]bool)
	total := w.walk(t, c, packets, 1, out.Counted)
	out.Packets, out.PerPacket = packets, total.rules/packets
	out.Nanoseconds = total.time/packets + w.prices.entry(w.rules.Program)
	for chain := range w.seen {
		for _, r := range chain.Rules {
			if _, known, conditional := hits(r); conditional && !known {
				out.Uncounted++
			}
		}
	}
	return out
}

// walked is what packets met on their way through a chain.
type walked struct {
	rules, time float64
	back        float64 // packets that came to the end of the chain, or returned
}

// mostNested bounds jumps, as the kernel does for nftables.
const mostNested = 64

// walk carries packets through a chain. scale is the share of the chain's counters that are theirs.
func (w *walker) walk(t *ruleset.Table, c *ruleset.Chain, packets, scale float64, counted bool) walked {
	out := walked{back: packets}
	if w.seen[c] = true; w.depth > mostNested || packets <= 0 {
		return out
	}
	w.depth++
	defer func() { w.depth-- }()
	reach := packets
	out.back = 0
	joining := make(map[int]float64) // of ipfw: packets that skipto sent ahead, by the rule that they meet next
	for i, r := range c.Rules {
		for at, n := range joining {
			if at <= r.Number {
				reach += n
				delete(joining, at)
			}
		}
		if reach <= 0 && len(joining) == 0 {
			break
		}
		n, known, conditional := hits(r)
		switch {
		case !conditional:
			n = reach
		case !known || !counted:
			n = 0
		default:
			n = min(n*scale, reach)
		}
		missed, matched := w.prices.rule(w.rules.Program, t, r)
		time := (reach-n)*missed + n*matched
		w.look(t, c, i, r, reach, n, time)
		out.rules, out.time = out.rules+reach, out.time+time
		reach = w.follow(t, r, n, reach, counted, &out, joining)
	}
	for _, n := range joining {
		reach += n
	}
	out.back += reach
	return out
}

// follow carries the n packets that matched a rule on, and returns those that reach the next one.
func (w *walker) follow(t *ruleset.Table, r *ruleset.Rule, n, reach float64, counted bool, out *walked,
	joining map[int]float64) float64 {
	into := func(name string, packets float64) float64 {
		to := t.Chain(name)
		if to == nil || packets <= 0 {
			return packets
		}
		scale := 1.0
		if all := w.entered[to]; all > 0 {
			scale = min(packets/all, 1)
		}
		sub := w.walk(t, to, packets, scale, counted)
		out.rules, out.time = out.rules+sub.rules, out.time+sub.time
		return sub.back
	}
	switch v := ending(r); v.Kind {
	case ruleset.Accept, ruleset.Drop, ruleset.Reject:
		return reach - n
	case ruleset.Return:
		out.back += n
		return reach - n
	case ruleset.Jump:
		return reach - n + into(v.Chain, n)
	case ruleset.Goto:
		out.back += into(v.Chain, n)
		return reach - n
	case ruleset.Skip:
		joining[v.Number] += n
		return reach - n
	}
	set := mapped(r)
	if set == nil {
		return reach
	}
	left := reach
	done := make(map[*ruleset.Chain]bool)
	shares := elementShares(t, set, n, counted && n > 0)
	for _, e := range set.Elements {
		to := t.Chain(e.Verdict.Chain)
		switch {
		case to != nil && !done[to]:
			done[to] = true
			packets := min(shares[to], left)
			left -= packets
			if back := into(to.Name, packets); e.Verdict.Kind == ruleset.Jump {
				left += back
			} else {
				out.back += back
			}
		case to == nil && e.Counter != nil && e.Verdict.Kind != ruleset.Continue && e.Verdict.Kind != ruleset.None:
			left -= min(float64(e.Counter.Packets), left)
		}
	}
	return left
}

// look notes what a rule cost.
func (w *walker) look(t *ruleset.Table, c *ruleset.Chain, i int, r *ruleset.Rule, looks, n, time float64) {
	l := w.looks[r]
	if l == nil {
		l = &Rule{Table: t.Family + " " + t.Name, Chain: c.Name, Position: i + 1, Handle: r.Handle}
		w.looks[r] = l
	}
	l.Looks, l.Hits, l.Nanoseconds = l.Looks+looks, l.Hits+n, l.Nanoseconds+time
}

// costly returns the rules whose packets met most other rules before them: position times hits.
func (w *walker) costly() (costs []Rule, never int) {
	var all float64
	type ranked struct {
		rule   *ruleset.Rule
		looked *Rule
		weight float64
	}
	var list []ranked
	for r, l := range w.looks {
		all += l.Looks
		n, known, conditional := hits(r)
		if known && n == 0 && conditional {
			never++
		}
		if l.Hits > 0 && known {
			list = append(list, ranked{r, l, l.Hits * float64(l.Position)})
		}
	}
	if len(list) == 0 {
		return nil, 0
	}
	sorting.Func(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.looked.Table, b.looked.Table),
			cmp.Compare(a.looked.Chain, b.looked.Chain), cmp.Compare(a.looked.Position, b.looked.Position))
	})
	for _, x := range list[:min(costly, len(list))] {
		x.looked.Text = Text(x.rule)
		x.looked.Share = x.looked.Looks / all
		costs = append(costs, *x.looked)
	}
	return costs, never
}

// Text returns a rule as its own program writes it.
func Text(r *ruleset.Rule) string {
	if r.Text != "" {
		return r.Text
	}
	text, _ := r.NFT() // what cannot be loaded is still described
	return text
}
