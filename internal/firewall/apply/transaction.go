package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// commands are the commands of one transaction of nft.
type commands struct {
	strings.Builder
	table string // family and name
}

func (c *commands) add(format string, a ...any) { fmt.Fprintf(c, format+"\n", a...) }

// chain adds a chain that no packet reaches, with counts.
func (c *commands) kept(name string, counts []Count) {
	c.add("add chain %s %s", c.table, name)
	for _, r := range keptRules(counts) {
		c.add("add rule %s %s %s", c.table, name, r)
	}
}

func (c *commands) drop(chain string) {
	c.add("flush chain %s %s", c.table, chain)
	c.add("delete chain %s %s", c.table, chain)
}

// begin returns the transaction that puts the rules of a form in front of those in force, with a
// fence between them. The old ones stay, and no packet reaches them any more.
func (p *Plan) begin(v *view, to *State) string {
	start := make([]Count, p.Counters)
	for i := range start {
		start[i] = v.now[i].add(v.carry[i])
	}
	if xtables(p.Program) {
		return p.beginXT(v, to, start)
	}
	c := &commands{table: p.Family + " " + p.Table}
	if v.carried {
		c.drop(carryChain)
	}
	c.kept(baseChain, v.now)
	for _, chain := range to.Own {
		c.add("add chain %s %s", c.table, chain.Name)
	}
	for _, s := range to.Sets {
		c.add("add %s %s %s {", s.Kind, c.table, s.Name)
		for _, l := range s.Head {
			c.add("\t%s", l)
		}
		for i, e := range s.Elements {
			before := "\t\t"
			if i == 0 {
				before = "\telements = { "
			}
			after := ","
			if i == len(s.Elements)-1 {
				after = " }"
			}
			c.add("%s%s%s", before, e.filled(start), after)
		}
		c.add("}")
	}
	for _, chain := range to.Own {
		for _, r := range chain.Rules {
			c.add("add rule %s %s %s", c.table, chain.Name, r.filled(start))
		}
	}
	for _, chain := range to.Chains {
		c.add("insert rule %s %s return comment \"%s\"", c.table, chain.Name, fence)
		for _, r := range slices.Backward(chain.Rules) {
			c.add("insert rule %s %s %s", c.table, chain.Name, r.filled(start))
		}
	}
	return c.String()
}

// end returns the transaction that removes the fence and the rules behind it. What those counted
// after the ones in front had got their values is kept in a chain.
func (p *Plan) end(v *view) string {
	carry := make([]Count, p.Counters)
	for i := range carry {
		carry[i] = v.then[i].sub(v.base[i])
	}
	return p.removal(v, v.behind, v.back, carry)
}

// takeBack returns the transaction that takes the rules in front away again, before anything else
// was done. What they counted goes to the carried counts.
func (p *Plan) takeBack(before, v *view, put *State) string {
	carry := slices.Clone(before.carry)
	for i := range carry {
		carry[i] = carry[i].add(v.now[i].sub(before.now[i].add(before.carry[i])))
	}
	return p.removal(v, v.ahead, put, carry)
}

// removal returns the transaction that removes the fences and the rules and chains of a form, and
// keeps counts. Rules of iptables-nft are those of nftables: nft deletes them by their handles.
func (p *Plan) removal(v *view, rules map[string][]uint64, s *State, carry []Count) string {
	if p.Program == ruleset.IPTablesLegacy {
		return p.removeXT(v, rules, s, carry)
	}
	c := &commands{table: p.Family + " " + p.Table}
	c.remove(v.fences, rules, s)
	c.drop(baseChain)
	if anyCount(carry) {
		c.kept(carryChain, carry)
	}
	return c.String()
}

// remove deletes the fences, rules by their handles, and the chains and sets of a form.
func (c *commands) remove(fences map[string]uint64, rules map[string][]uint64, s *State) {
	for _, chain := range s.Chains {
		c.add("delete rule %s %s handle %d", c.table, chain.Name, fences[chain.Name])
		for _, h := range rules[chain.Name] {
			c.add("delete rule %s %s handle %d", c.table, chain.Name, h)
		}
	}
	for _, chain := range s.Own {
		c.add("flush chain %s %s", c.table, chain.Name)
	}
	for _, set := range s.Sets {
		c.add("delete %s %s %s", set.Kind, c.table, set.Name)
	}
	for _, chain := range s.Own {
		c.add("delete chain %s %s", c.table, chain.Name)
	}
}
