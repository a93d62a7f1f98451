package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// xtables reports whether a program's rules are lines of iptables-save.
func xtables(p ruleset.Program) bool { return p == ruleset.IPTablesLegacy || p == ruleset.IPTablesNFT }

// xtLine cuts a rule of iptables into what follows the chain's name, and its counter. A counter
// that has no number is one of the new rules' own, as of a jump, and starts at zero.
func (c *capturing) xtLine(r *ruleset.Rule) (Line, error) {
	all := r.Counters()
	_, rest, ok := strings.Cut(r.Text, "-A ")
	if len(all) != 1 || !ok {
		return Line{}, fmt.Errorf("rule %q: %w", r.Text, ruleset.ErrUnprintable)
	}
	_, rest, _ = strings.Cut(rest, " ")
	c.tag(all[0])
	return Line{Text: rest, Counters: []int{int(all[0].Packets - tagged)}}, nil
}

// restore are the commands of one transaction of iptables-restore --noflush -c.
type restore struct{ strings.Builder }

func (c *restore) add(format string, a ...any) { fmt.Fprintf(c, format+"\n", a...) }

// rule puts a rule into a chain with the verb -A, or in front of it with -I.
func (c *restore) rule(verb, chain string, l Line, values []Count) {
	var n Count
	if len(l.Counters) > 0 {
		n = values[l.Counters[0]]
	}
	if verb == "-I" {
		chain += " 1"
	}
	c.add("[%d:%d] %s %s %s", n.Packets, n.Bytes, verb, chain, l.Text)
}

// open begins a transaction. Each command of iptables-legacy puts a new table in the place of the
// old one, and sets the counters of its policies to zero unless they are given.
func (p *Plan) open(v *view) *restore {
	c := new(restore)
	c.add("*%s", p.Table)
	for _, chain := range v.table.Chains {
		if p.Program == ruleset.IPTablesLegacy && chain.Hook != "" && chain.Counter != nil {
			c.add(":%s %s [%d:%d]", chain.Name, strings.ToUpper(chain.Policy.String()), chain.Counter.Packets,
				chain.Counter.Bytes)
		}
	}
	return c
}

func (c *restore) close() string {
	c.add("COMMIT")
	return c.String()
}

// kept adds a chain that no packet reaches, with counts.
func (c *restore) kept(name string, counts []Count) {
	c.add(":%s - [0:0]", name)
	for i, n := range counts {
		if n != (Count{}) {
			c.add("[%d:%d] -A %s -m comment --comment \"%d\"", n.Packets, n.Bytes, name, i)
		}
	}
}

func (c *restore) drop(chains ...string) {
	for _, verb := range []string{"-F", "-X"} {
		for _, name := range chains {
			c.add("%s %s", verb, name)
		}
	}
}

// beginXT is [Plan.begin] for iptables.
func (p *Plan) beginXT(v *view, to *State, start []Count) string {
	c := p.open(v)
	if v.carried {
		c.drop(carryChain)
	}
	c.kept(baseChain, v.now)
	for _, chain := range to.Own {
		c.add(":%s - [0:0]", chain.Name)
	}
	for _, chain := range to.Own {
		for _, l := range chain.Rules {
			c.rule("-A", chain.Name, l, start)
		}
	}
	for _, chain := range to.Chains {
		c.add("-I %s 1 -m comment --comment \"%s\" -j RETURN", chain.Name, fence)
		for _, l := range slices.Backward(chain.Rules) {
			c.rule("-I", chain.Name, l, start)
		}
	}
	return c.close()
}

// removeXT returns the transaction of iptables-legacy that deletes the fences, rules by their
// positions, and the chains of a form, and keeps counts.
func (p *Plan) removeXT(v *view, rules map[string][]uint64, s *State, carry []Count) string {
	c := p.open(v)
	for _, chain := range s.Chains {
		at := append(slices.Clone(rules[chain.Name]), v.fences[chain.Name])
		slices.Sort(at)
		for _, n := range slices.Backward(at) {
			c.add("-D %s %d", chain.Name, n)
		}
	}
	own := []string{baseChain}
	for _, chain := range s.Own {
		own = append(own, chain.Name)
	}
	c.drop(own...)
	if anyCount(carry) {
		c.kept(carryChain, carry)
	}
	return c.close()
}
