package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Result is the offer.
type Result struct {
	// Rules are the new rules, which share the counters and the unchanged rules of the old ones. They
	// are the old ones if nothing is offered.
	Rules   *ruleset.Ruleset
	Changed []Change
	Proof   equal.Result
	Kept    []Kept
	// Before and After are what [PerPacket] returns of the old rules and of Rules.
	Before, After float64
	Counted       bool
}

// Change is a chain with new rules.
type Change struct {
	Table, Chain  string
	Before, After int // rules of the chain itself
}

// Kept is a chain that keeps its rules although shorter ones were found.
type Kept struct{ Table, Chain, Why string }

// worth is how many of its rules a packet must still meet at most for new rules to be offered.
const worth = 0.99

// Optimise returns rules that are proven to be equal. The old ones do not change.
func Optimise(r *ruleset.Ruleset, limits equal.Limits) Result {
	out := optimise(r, limits)
	if len(out.Changed) == 0 {
		out.Before, out.After, out.Counted = PerPacket(r, r)
	}
	return out
}

// gain is what decision trees must save of the forms in which each rule has one place, which read
// more easily: in rules that a packet meets, multiplied by what these cost.
const gain = 0.85

func optimise(r *ruleset.Ruleset, limits equal.Limits) Result {
	made, changed := build(r, nil, true)
	if len(changed) == 0 {
		return proven(r, limits)
	}
	usual, _ := Build(r, nil)
	before, others, _ := PerPacket(r, usual)
	_, after, counted := PerPacket(r, made)
	price := nanoseconds(r, made)
	if after >= worth*before || price >= nanoseconds(r, r) || after*price >= gain*others*nanoseconds(r, usual) {
		return proven(r, limits)
	}
	proof := equal.Prove(r, made, limits)
	if proof.Answer != equal.Equal {
		return proven(r, limits) // whose proof takes less
	}
	return Result{Rules: made, Changed: changed, Proof: proof, Before: before, After: after, Counted: counted}
}

// proven offers the forms in which each rule has one place.
func proven(r *ruleset.Ruleset, limits equal.Limits) Result {
	out := Result{Rules: r}
	refused := make(map[string]bool)
	for {
		made, changed := Build(r, func(t *ruleset.Table, c *ruleset.Chain) bool { return refused[name(t)+"\x00"+c.Name] })
		if len(changed) == 0 {
			out.Rules, out.Changed = r, nil
			out.Proof = equal.Prove(r, r, limits)
			return out
		}
		proof := equal.Prove(r, made, limits)
		if proof.Answer == equal.Equal {
			out.Proof = proof
			// The forms are chosen by what the rules compare; what packets meet is known only now.
			if out.Before, out.After, out.Counted = PerPacket(r, made); out.After < worth*out.Before {
				out.Rules, out.Changed = made, changed
			}
			return out
		}
		// Without the chain that is to blame; without all of the table if it is not known.
		why := proof.Answer.String() + ": " + proof.What
		some := false
		for _, c := range changed {
			if c.Table == proof.Table && c.Chain == proof.Chain {
				refused[c.Table+"\x00"+c.Chain] = true
				out.Kept = append(out.Kept, Kept{c.Table, c.Chain, why})
				some = true
			}
		}
		for _, c := range changed {
			if !some && (c.Table == proof.Table || proof.Table == "") {
				refused[c.Table+"\x00"+c.Chain] = true
				out.Kept = append(out.Kept, Kept{c.Table, c.Chain, why})
			}
		}
		if !some && !slices.ContainsFunc(changed, func(c Change) bool { return refused[c.Table+"\x00"+c.Chain] }) {
			out.Kept = append(out.Kept, Kept{proof.Table, proof.Chain, why})
			out.Proof = proof
			return out
		}
	}
}

func name(t *ruleset.Table) string { return t.Family + " " + t.Name }

// Build makes new rules without a proof, in which each rule has one place. keep names chains that
// are left alone; nil is none.
func Build(r *ruleset.Ruleset, keep func(*ruleset.Table, *ruleset.Chain) bool) (*ruleset.Ruleset, []Change) {
	return build(r, keep, false)
}

// build makes new rules. Chains that no tree is made for are as Build makes them. There is no
// change if trees are asked for and none is made.
func build(r *ruleset.Ruleset, keep func(*ruleset.Table, *ruleset.Chain) bool,
	share bool) (*ruleset.Ruleset, []Change) {
	made := *r
	trees := 0
	made.Tables = slices.Clone(r.Tables)
	var changed []Change
	for i, t := range r.Tables {
		b := newBuilder(r.Program, t)
		if b == nil {
			continue
		}
		b.share = share
		for _, c := range t.Chains {
			if len(c.Rules) < 3 || keep != nil && keep(t, c) {
				b.chains = append(b.chains, c)
				continue
			}
			rules, ok := b.chain(c)
			if !ok {
				b.chains = append(b.chains, c)
				continue
			}
			shorter := *c
			shorter.Rules = rules
			b.chains = append(b.chains, &shorter)
			changed = append(changed, Change{name(t), c.Name, len(c.Rules), len(rules)})
		}
		table := *t
		table.Chains = append(b.extra, b.chains...)
		if r.Program == ruleset.IPTablesLegacy || r.Program == ruleset.IPTablesNFT {
			table.Chains = append(b.chains, b.extra...) // built-in chains first, as iptables-save does
		}
		table.Sets = append(slices.Clone(t.Sets), b.sets...)
		made.Tables[i] = &table
		trees += b.trees
	}
	if share && trees == 0 {
		return r, nil
	}
	return &made, changed
}

// item is a rule and what decides where it may go.
type item struct {
	rule    *ruleset.Rule
	region  equal.Region
	barrier bool // nothing moves across it
	counts  bool // does nothing but count
	decides bool // ends the chain for what it matches
	nests   bool // may be in a chain of its own, behind a jump
	hits    uint64

	simple  bool // matches, then a counter, then a verdict
	key     []ruleset.Term
	values  [][]ruleset.Range // of each term
	counter *ruleset.Counter
	verdict ruleset.Verdict
}

// free reports whether two rules may change places.
func free(a, b *item) bool {
	if a.barrier || b.barrier {
		return false
	}
	return a.counts && b.counts || !a.region.Meets(&b.region)
}

// classify describes a rule.
func classify(r *ruleset.Rule, g *equal.Regions) *item {
	it := &item{rule: r, region: g.Of(r), barrier: r.Barrier(), counts: true, nests: true, simple: true}
	const (
		matching = iota
		counted
		decided
	)
	at := matching
	for _, s := range r.Statements {
		switch s := s.(type) {
		case ruleset.Match:
			if at != matching || s.Negated || s.Set != nil && (s.Set.Name != "" || counting(s.Set)) || len(s.Key) != 1 ||
				s.Key[0].Bits > 0 ||
				slices.ContainsFunc(it.key, func(t ruleset.Term) bool { return t.Field == s.Key[0].Field }) {
				it.simple = false
				continue
			}
			values := s.Plain
			if s.Set != nil {
				values = nil
				for _, e := range s.Set.Elements {
					values = append(values, e.Key[0])
				}
			}
			it.key = append(it.key, s.Key[0])
			it.values = append(it.values, values)
		case *ruleset.Counter:
			if at != matching || s.Name != "" {
				it.simple = false
			}
			at, it.counter = counted, s
			it.hits = s.Packets
		case ruleset.Verdict:
			at, it.verdict = decided, s
			it.counts = false
			switch s.Kind {
			case ruleset.Accept, ruleset.Drop, ruleset.Reject:
				it.decides = !s.Provisional
				it.simple = it.simple && !s.Provisional
			case ruleset.Return, ruleset.Goto:
				it.nests = false
				it.decides = true
			case ruleset.Skip:
				it.barrier, it.nests, it.simple = true, false, false
			case ruleset.Jump, ruleset.None, ruleset.Continue:
			}
			it.nests = it.nests && !s.Provisional
		case ruleset.VerdictMap:
			it.counts, it.nests, it.simple = false, false, false
		case ruleset.Opaque:
			it.simple = false
			if s.Effect == ruleset.EffectNone && s.Conditional && !s.Ends {
				continue
			}
			it.barrier = true
		}
	}
	if it.barrier {
		it.counts, it.nests, it.simple = false, false, false
	}
	it.simple = it.simple && len(it.key) > 0
	return it
}

func counting(s *ruleset.Set) bool {
	return s.Counting || slices.ContainsFunc(s.Elements, func(e ruleset.Element) bool {
		return e.Counter != nil || e.Comment != ""
	})
}

// builder makes the new chains of one table.
type builder struct {
	program ruleset.Program
	table   *ruleset.Table
	regions *equal.Regions
	chains  []*ruleset.Chain
	extra   []*ruleset.Chain
	sets    []*ruleset.Set
	taken   map[string]bool // names of chains and sets
	share   bool            // rules may have several places, in decision trees
	trees   int             // chains where some have
}

// newBuilder returns nil for a table that no form is known for.
func newBuilder(program ruleset.Program, t *ruleset.Table) *builder {
	b := &builder{program: program, table: t, regions: equal.NewRegions(t), taken: make(map[string]bool)}
	for _, c := range t.Chains {
		b.taken[c.Name] = true
	}
	for _, s := range t.Sets {
		b.taken[s.Name] = true
	}
	for _, o := range t.Objects {
		b.taken[o.Name] = true
	}
	if t.Family == "arp" || t.Family == "bridge" {
		return nil
	}
	return b
}

// named returns a free name that begins with what is asked for.
func (b *builder) named(want string) string {
	n := want
	for i := 2; b.taken[n]; i++ {
		n = fmt.Sprintf("%s_%d", want, i)
	}
	b.taken[n] = true
	return n
}

// mark remembers what was made, so that a form that is not kept can be taken back.
type mark struct {
	extra, sets int
	taken       map[string]bool
}

func (b *builder) mark() mark {
	taken := make(map[string]bool, len(b.taken))
	for n := range b.taken {
		taken[n] = true
	}
	return mark{len(b.extra), len(b.sets), taken}
}

func (b *builder) reset(m mark) {
	b.extra, b.sets, b.taken = b.extra[:m.extra:m.extra], b.sets[:m.sets:m.sets], m.taken
}

// chain returns shorter rules for a chain; false if there are none.
func (b *builder) chain(c *ruleset.Chain) ([]*ruleset.Rule, bool) {
	items := make([]*item, len(c.Rules))
	for i, r := range c.Rules {
		items[i] = classify(r, b.regions)
		if c.LastMatch && !items[i].decides {
			items[i].barrier, items[i].counts, items[i].simple = true, false, false
		}
	}
	if b.share && b.program != ruleset.IPFW && b.program != ruleset.PF {
		if rules, ok := b.shared(c, items); ok {
			b.trees++
			return rules, true
		}
	}
	var rules []*ruleset.Rule
	length := float64(len(items))
	switch b.program {
	case ruleset.NFT:
		f := b.best(c.Name, items, treeFields, 2)
		rules, length = f.rules, f.length
	case ruleset.IPTablesLegacy, ruleset.IPTablesNFT:
		rules, length = b.xtables(c, items)
	case ruleset.IPFW:
		rules, length = b.ipfw(c, items)
	case ruleset.PF:
		rules, length = b.pf(items)
	}
	return rules, length < float64(len(items)) || !slices.Equal(rules, c.Rules)
}

// label makes a name of a value.
func label(f ruleset.Field, r ruleset.Range) string {
	s := strings.Trim(f.FormatRange(r), `"`)
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_':
			return c
		}
		return '_'
	}, s)
}
