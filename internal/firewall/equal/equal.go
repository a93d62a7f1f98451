package equal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Answer is what a proof found.
type Answer uint8

// The answers.
const (
	Equal     Answer = iota
	Different        // and a packet shows it
	TooMany          // more cells or comparisons than the limits allow
	Unknown          // the rules have something that the proof does not model
)

// String returns the answer as a word.
func (a Answer) String() string {
	return [...]string{"equal", "different", "too many cells", "not modelled"}[a]
}

// Limits bound a proof.
type Limits struct {
	Entries int // of one chain with the chains that it jumps to
	Cells   int // of all chains
	Work    int // comparisons of all chains; a thousand million take about ten seconds
	Steps   int // rules that directed packets meet, of all chains
}

// Usual are limits that ten thousand rules stay within in a minute.
func Usual() Limits {
	return Limits{Entries: 1 << 20, Cells: 1_000_000, Work: 1_500_000_000, Steps: 3_000_000}
}

// Result is the outcome of a proof.
type Result struct {
	Answer  Answer
	Cells   int // compared
	Packets int // directed packets traced through both rulesets
	// Table and Chain are where the answer was found, if it is not Equal.
	Table, Chain string
	What         string          // how they differ, or why there is no answer
	Packet       *ruleset.Packet // that is treated differently; nil if the difference is not one of packets
}

func (r Result) fails(a Answer, t *ruleset.Table, chain, what string) Result {
	r.Answer, r.Chain, r.What = a, chain, what
	if t != nil {
		r.Table = t.Family + " " + t.Name
	}
	return r
}

// Prove compares two rulesets that share their counters.
func Prove(before, after *ruleset.Ruleset, limits Limits) Result {
	var out Result
	if len(before.Tables) != len(after.Tables) {
		return out.fails(Different, nil, "", fmt.Sprintf("%d tables before, %d after", len(before.Tables), len(after.Tables)))
	}
	counted, now := Counters(before), Counters(after)
	for c := range counted {
		if !now[c] {
			return out.fails(Different, nil, "", "a counter is missing: "+describe(before, c))
		}
	}
	for i, t := range before.Tables {
		u := after.Tables[i]
		if what, chain := frame(t, u); what != "" {
			return out.fails(Different, t, chain, what)
		}
		p := &pair{old: t, now: u, counted: counted, limits: limits, axes: newAxes(t, u)}
		r := p.prove()
		r.Cells, r.Packets = r.Cells+out.Cells, r.Packets+out.Packets
		limits.Cells, limits.Work, limits.Steps = limits.Cells-p.cells, limits.Work-p.work, limits.Steps-p.steps
		if out = r; out.Answer != Equal {
			return out
		}
	}
	return out
}

// Counters returns all counters of a ruleset.
func Counters(r *ruleset.Ruleset) map[*ruleset.Counter]bool {
	all := make(map[*ruleset.Counter]bool)
	set := func(s *ruleset.Set) {
		for _, e := range s.Elements {
			if e.Counter != nil && !s.Dynamic() {
				all[e.Counter] = true
			}
		}
	}
	for _, t := range r.Tables {
		for _, s := range t.Sets {
			set(s)
		}
		for _, o := range t.Objects {
			if o.Counter != nil {
				all[o.Counter] = true
			}
		}
		for _, c := range t.Chains {
			if c.Counter != nil {
				all[c.Counter] = true
			}
			for _, rule := range c.Rules {
				for _, s := range rule.Statements {
					switch s := s.(type) {
					case *ruleset.Counter:
						all[s] = true
					case ruleset.Match:
						if s.Set != nil {
							set(s.Set)
						}
					case ruleset.VerdictMap:
						set(s.Set)
					}
				}
			}
		}
	}
	return all
}

// describe names a counter by its rule.
func describe(r *ruleset.Ruleset, c *ruleset.Counter) string {
	if c.Name != "" {
		return c.Name
	}
	for _, t := range r.Tables {
		for _, chain := range t.Chains {
			for i, rule := range chain.Rules {
				if slices.Contains(rule.Counters(), c) {
					return fmt.Sprintf("table %s %s, chain %s, rule %d", t.Family, t.Name, chain.Name, i+1)
				}
			}
		}
	}
	return "of an element or a policy"
}

// frame compares what a table is apart from rules.
func frame(t, u *ruleset.Table) (what, chain string) {
	if t.Family != u.Family || t.Name != u.Name || !slices.Equal(t.Flags, u.Flags) {
		return "another table", ""
	}
	for _, s := range t.Sets {
		v := u.Set(s.Name)
		if v == nil {
			return fmt.Sprintf("set %s is missing", s.Name), ""
		}
		if s != v && !reflect.DeepEqual(s, v) {
			return fmt.Sprintf("set %s is another one", s.Name), ""
		}
	}
	for _, o := range t.Objects {
		if !slices.ContainsFunc(u.Objects, func(v ruleset.Object) bool { return reflect.DeepEqual(o, v) }) {
			return fmt.Sprintf("%s %s is missing", o.Kind, o.Name), ""
		}
	}
	for _, c := range t.Chains {
		d := u.Chain(c.Name)
		switch {
		case c.Hook == "":
		case d == nil:
			return "the chain is missing", c.Name
		case c.Hook != d.Hook || c.Priority != d.Priority || c.Type != d.Type || !slices.Equal(c.Devices, d.Devices):
			return "the chain is at another hook", c.Name
		case c.LastMatch != d.LastMatch:
			return "another rule decides", c.Name
		}
	}
	for _, d := range u.Chains {
		if c := t.Chain(d.Name); d.Hook != "" && (c == nil || c.Hook == "") {
			return "the chain has a hook of its own", d.Name
		}
	}
	return "", ""
}

// pair is one table in both rulesets.
type pair struct {
	old, now *ruleset.Table
	counted  map[*ruleset.Counter]bool
	limits   Limits
	axes     *axes
	cells    int
	work     int
	steps    int
}

func (p *pair) prove() Result {
	alike := make(map[string]bool)
	common := func(chain string) bool { return p.old.Chain(chain) != nil && p.now.Chain(chain) != nil }
	var out Result
	var failed []*ruleset.Chain
	for _, c := range p.old.Chains {
		d := p.now.Chain(c.Name)
		if d == nil {
			continue
		}
		diff, err := p.chain(c, d, common)
		if errors.Is(err, errMany) {
			out.Cells = p.cells
			return out.fails(TooMany, p.old, c.Name, "more than the limits allow")
		}
		if alike[c.Name] = diff == nil && err == nil; !alike[c.Name] {
			failed = append(failed, c)
		}
	}
	if len(failed) > 0 {
		out = p.whole(alike)
	}
	if out.Answer == Equal {
		out = p.directed(out)
	}
	out.Cells = p.cells
	return out
}

// whole compares base chains with everything that they jump to. It is the answer where a chain that
// both rulesets have is not the same one.
func (p *pair) whole(alike map[string]bool) Result {
	var out Result
	for _, c := range p.old.Chains {
		if c.Hook == "" {
			continue
		}
		d := p.now.Chain(c.Name)
		// First with the chains that are alike as they are, because that takes least; then with all
		// rules.
		for _, called := range []func(string) bool{
			func(s string) bool { return alike[s] }, func(string) bool { return false }} {
			diff, err := p.chain(c, d, called)
			switch {
			case errors.Is(err, errMany):
				return out.fails(TooMany, p.old, c.Name, "more than the limits allow")
			case err != nil:
				out = out.fails(Unknown, p.old, c.Name, err.Error())
				continue
			case diff == nil:
				out = Result{}
			default:
				packet := p.axes.packet(diff.box)
				if what := p.differ(c, d, packet); what != "" {
					out = out.fails(Different, p.old, c.Name, what)
					out.Packet = &packet
					return out
				}
				out = out.fails(Unknown, p.old, c.Name, diff.what+", but not for a packet that can be traced")
				continue
			}
			break
		}
		if out.Answer != Equal {
			return out
		}
	}
	return out
}

// chain compares one chain.
func (p *pair) chain(c, d *ruleset.Chain, called func(string) bool) (*difference, error) {
	n := newNames()
	roots := p.axes.roots(p.old.Family)
	v := &prover{axes: p.axes, names: n, limits: p.limits}
	for side, x := range []struct {
		table *ruleset.Table
		chain *ruleset.Chain
	}{{p.old, c}, {p.now, d}} {
		own := func(name string) bool { return called(name) && name != x.chain.Name }
		m := &compiler{axes: p.axes, names: n, table: x.table, called: own, counted: p.counted, most: p.limits.Entries}
		var err error
		if v.lists[side], err = m.compile(x.chain, roots); err != nil {
			return nil, err
		}
	}
	v.cells, v.work = p.cells, p.work
	defer func() { p.cells, p.work = v.cells, v.work }()
	for _, b := range roots {
		if d, err := v.compare(b, numbers(len(v.lists[0])), numbers(len(v.lists[1]))); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

func numbers(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
