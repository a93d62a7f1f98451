package rewrite_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// planted is a ruleset in which every rule matters: rules that only count by source, a barrier,
// rules that decide by source and port, and two that overlap.
func planted() *ruleset.Ruleset {
	var rules []*ruleset.Rule
	prefix := func(s string) netip.Prefix { return netip.MustParsePrefix(s) }
	for i := range 12 {
		t := tuple{source: prefix(fmt.Sprintf("10.1.%d.0/24", 2*i))}
		rules = append(rules, t.nft(&ruleset.Counter{Packets: uint64(i)}))
	}
	for i := range 10 {
		t := tuple{source: prefix(fmt.Sprintf("10.1.%d.0/%d", 4*i, 23+i%2)), protocol: 17}
		rules = append(rules, t.nft(&ruleset.Counter{Packets: uint64(i)}))
	}
	rules = append(rules, &ruleset.Rule{Statements: []ruleset.Statement{
		ruleset.Opaque{Text: `log prefix "all"`, Effect: ruleset.EffectLog}}})
	for i := range 12 {
		t := tuple{source: prefix(fmt.Sprintf("10.2.%d.0/24", i)), protocol: 6, hasDport: true,
			dport:   ruleset.Numbers(uint64(100*i+10), uint64(100*i+90)),
			verdict: []ruleset.Kind{ruleset.Accept, ruleset.Drop}[i%2]}
		rules = append(rules, t.nft(&ruleset.Counter{Packets: uint64(i)}))
	}
	for i, s := range []string{"10.2.0.0/16", "10.0.0.0/8"} {
		t := tuple{source: prefix(s), verdict: []ruleset.Kind{ruleset.Drop, ruleset.Accept}[i]}
		rules = append(rules, t.nft(new(ruleset.Counter)))
	}
	r := forwarding(rules)
	r.Tables[0].Chains[0].Policy = ruleset.Drop
	return r
}

// plantedPorts has rules that no map to chains is made of, only sets and maps with counters: ports
// of TCP that decide, ports of UDP that only count, and some of them that decide behind.
func plantedPorts() *ruleset.Ruleset {
	var rules []*ruleset.Rule
	add := func(t tuple, from, to, packets int) {
		t.hasSport, t.sport = true, ruleset.Numbers(uint64(from), uint64(to))
		rules = append(rules, t.nft(&ruleset.Counter{Packets: uint64(packets)}))
	}
	kinds := []ruleset.Kind{ruleset.Accept, ruleset.Drop}
	for i := range 12 {
		add(tuple{protocol: 6, verdict: kinds[i%2]}, 100*i+10, 100*i+90, i)
	}
	for i := range 10 {
		add(tuple{protocol: 17}, 50*i+7, 50*i+7, i)
	}
	for i := range 12 {
		add(tuple{protocol: 17, verdict: kinds[i%2]}, 100*i+5, 100*i+60, i)
	}
	// What the others decide meets another counter if they do not.
	behind := tuple{source: netip.MustParsePrefix("10.0.0.0/8"), verdict: ruleset.Accept}
	rules = append(rules, behind.nft(new(ruleset.Counter)))
	r := forwarding(rules)
	r.Tables[0].Chains[0].Policy = ruleset.Drop
	return r
}

// clone copies everything but counters.
func clone(r *ruleset.Ruleset) *ruleset.Ruleset {
	out := *r
	out.Tables = nil
	for _, t := range r.Tables {
		u := *t
		u.Chains, u.Sets = nil, nil
		sets := make(map[*ruleset.Set]*ruleset.Set)
		set := func(s *ruleset.Set) *ruleset.Set {
			if s == nil {
				return nil
			}
			if sets[s] == nil {
				v := *s
				v.Elements = nil
				for _, e := range s.Elements {
					e.Key = slices.Clone(e.Key)
					v.Elements = append(v.Elements, e)
				}
				v.Sort()
				sets[s] = &v
			}
			return sets[s]
		}
		for _, s := range t.Sets {
			u.Sets = append(u.Sets, set(s))
		}
		for _, c := range t.Chains {
			d := *c
			d.Rules = nil
			for _, rule := range c.Rules {
				q := *rule
				q.Statements = nil
				for _, s := range rule.Statements {
					switch m := s.(type) {
					case ruleset.Match:
						m.Plain, m.Set = slices.Clone(m.Plain), set(m.Set)
						s = m
					case ruleset.VerdictMap:
						m.Set = set(m.Set)
						s = m
					}
					q.Statements = append(q.Statements, s)
				}
				d.Rules = append(d.Rules, &q)
			}
			u.Chains = append(u.Chains, &d)
		}
		out.Tables = append(out.Tables, &u)
	}
	return &out
}

// mutant is one error of a rewriter.
type mutant struct {
	name string
	make func(*ruleset.Table) bool // false: nothing to spoil
}

// mutants are all errors of every kind that can be planted into a table.
func mutants(t *ruleset.Table) []mutant {
	var all []mutant
	add := func(name string, f func(*ruleset.Table) bool) { all = append(all, mutant{name, f}) }
	masked := make(map[*ruleset.Set]bool)
	for _, c := range t.Chains {
		for _, r := range c.Rules {
			for _, s := range r.Statements {
				if m, ok := s.(ruleset.Match); ok && m.Set != nil && m.Key[0].Bits == 120 {
					masked[m.Set] = true
				}
			}
		}
	}
	for i, s := range t.Sets {
		for k, e := range s.Elements {
			element := func(name string, spoil func(*ruleset.Set, *ruleset.Element)) {
				add(fmt.Sprintf("%s, element %d: %s", s.Name, k, name), func(u *ruleset.Table) bool {
					spoil(u.Sets[i], &u.Sets[i].Elements[k])
					u.Sets[i].Sort()
					return true
				})
			}
			element("counter lost", func(_ *ruleset.Set, e *ruleset.Element) { e.Counter = nil })
			element("removed", func(s *ruleset.Set, _ *ruleset.Element) { s.Elements = slices.Delete(s.Elements, k, k+1) })
			other := (k + 1) % len(s.Elements)
			element("counters exchanged", func(s *ruleset.Set, e *ruleset.Element) {
				e.Counter, s.Elements[other].Counter = s.Elements[other].Counter, e.Counter
			})
			switch e.Verdict.Kind {
			case ruleset.Accept:
				element("drop for accept", func(_ *ruleset.Set, e *ruleset.Element) { e.Verdict.Kind = ruleset.Drop })
			case ruleset.Drop:
				element("accept for drop", func(_ *ruleset.Set, e *ruleset.Element) { e.Verdict.Kind = ruleset.Accept })
				element("continue for drop", func(_ *ruleset.Set, e *ruleset.Element) { e.Verdict.Kind = ruleset.Continue })
			}
			for f := range e.Key {
				steps := 1
				if masked[s] {
					steps = 256 // the next prefix: the mask makes all of one alike
				}
				element(fmt.Sprintf("field %d wider at its end", f), func(_ *ruleset.Set, e *ruleset.Element) {
					for range steps {
						e.Key[f].Last, _ = e.Key[f].Last.Next()
					}
				})
				element(fmt.Sprintf("field %d wider at its beginning", f), func(_ *ruleset.Set, e *ruleset.Element) {
					for range steps {
						e.Key[f].First, _ = e.Key[f].First.Previous()
					}
				})
				if e.Key[f].First != e.Key[f].Last {
					element(fmt.Sprintf("field %d narrower at its end", f), func(_ *ruleset.Set, e *ruleset.Element) {
						e.Key[f].Last, _ = e.Key[f].Last.Previous()
					})
					element(fmt.Sprintf("field %d narrower at its beginning", f), func(_ *ruleset.Set, e *ruleset.Element) {
						e.Key[f].First, _ = e.Key[f].First.Next()
					})
				}
			}
		}
	}
	for i, c := range t.Chains {
		for k := range c.Rules {
			add(fmt.Sprintf("%s, rule %d: removed", c.Name, k), func(u *ruleset.Table) bool {
				u.Chains[i].Rules = slices.Delete(u.Chains[i].Rules, k, k+1)
				return true
			})
		}
		if c.Hook == "" {
			continue
		}
		last := len(c.Rules) - 1
		add(c.Name+": the last two rules exchanged", func(u *ruleset.Table) bool {
			rules := u.Chains[i].Rules
			rules[last], rules[last-1] = rules[last-1], rules[last]
			return true
		})
		add(c.Name+": the last rule first", func(u *ruleset.Table) bool {
			rules := u.Chains[i].Rules
			u.Chains[i].Rules = append([]*ruleset.Rule{rules[last]}, rules[:last]...)
			return true
		})
		add(c.Name+": another policy", func(u *ruleset.Table) bool {
			u.Chains[i].Policy = ruleset.Accept
			return true
		})
		add(c.Name+": another priority", func(u *ruleset.Table) bool {
			u.Chains[i].Priority++
			return true
		})
	}
	return all
}

// TestMutants: the proof catches every error that is planted into the rewriter's output.
func TestMutants(t *testing.T) {
	sum, shown := 0, 0
	for _, c := range []struct {
		name         string
		before       *ruleset.Ruleset
		chains, sets int // at least
	}{{"chains", planted(), 2, 1}, {"ports", plantedPorts(), 1, 3}} {
		made, changed := rewrite.Build(c.before, nil)
		if u := made.Tables[0]; len(changed) != 1 || len(u.Sets) < c.sets || len(u.Chains) < c.chains {
			t.Errorf("%s: %d chains changed, %d chains, %d sets", c.name, len(changed), len(u.Chains), len(u.Sets))
			continue
		}
		limits := equal.Usual()
		limits.Steps = 50_000
		if p := equal.Prove(c.before, made, limits); p.Answer != equal.Equal {
			t.Fatalf("%s: %s: %s", c.name, p.Answer, p.What)
		}
		if p := equal.Prove(c.before, clone(made), limits); p.Answer != equal.Equal {
			t.Fatalf("%s, a copy: %s: %s", c.name, p.Answer, p.What)
		}
		planted := 0
		for _, m := range mutants(made.Tables[0]) {
			spoiled := clone(made)
			if !m.make(spoiled.Tables[0]) {
				continue
			}
			planted++
			p := equal.Prove(c.before, spoiled, limits)
			if p.Answer == equal.Equal {
				t.Errorf("%s: not caught: %s", c.name, m.name)
			}
			if p.Packet != nil {
				shown++
			}
		}
		if sum += planted; planted < 100 {
			t.Errorf("%s: only %d mutants", c.name, planted)
		}
	}
	t.Logf("%d mutants caught, %d of them with a packet", sum, shown)
}
