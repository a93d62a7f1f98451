package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// ErrRefused reports rules that are not put in place, with the reason.
var ErrRefused = errors.New("not applied")

// Plan is a change of one table from one form of its rules to another.
type Plan struct {
	Program  ruleset.Program
	Family   string
	Table    string
	Flags    []string `json:",omitempty"`
	Counters int      // how many counters both forms share
	States   []State  // the old form, then the new one
}

// ID returns the knob of a table: firewall:nft/inet/filter.
func (p *Plan) ID() knob.ID {
	return knob.ID(fmt.Sprintf("%s:%s/%s/%s", knob.KindFirewall, p.Program, p.Family, p.Table))
}

// From and To return the values of both forms.
func (p *Plan) From() knob.Value { return p.States[0].Value }

// To returns the value of the new form.
func (p *Plan) To() knob.Value { return p.States[len(p.States)-1].Value }

// check refuses plans that no transaction of ours could carry out.
func (p *Plan) check() error {
	if p.Program != ruleset.NFT && !xtables(p.Program) || len(p.States) != 2 || p.From() == p.To() || p.Counters < 0 {
		return errors.New("plan of rules: damaged")
	}
	for _, s := range p.States {
		for _, c := range slices.Concat(s.Chains, s.Own) {
			if !plainName(c.Name) {
				return fmt.Errorf("plan of rules: chain %q", c.Name)
			}
			for _, l := range c.Rules {
				if err := p.checkLine(l); err != nil {
					return err
				}
			}
		}
		for _, set := range s.Sets {
			if !plainName(set.Name) || set.Kind != "set" && set.Kind != "map" {
				return fmt.Errorf("plan of rules: set %q", set.Name)
			}
			for _, l := range set.Elements {
				if err := p.checkLine(l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkLine makes sure that a line stays one: it becomes part of a command.
func (p *Plan) checkLine(l Line) error {
	marks := strings.Count(l.Text, mark)
	if xtables(p.Program) {
		marks = min(len(l.Counters), 1)
	}
	if marks != len(l.Counters) || strings.ContainsAny(l.Text, "\n\r\x00") {
		return fmt.Errorf("plan of rules: line %q", l.Text)
	}
	for _, n := range l.Counters {
		if n < 0 || n >= p.Counters {
			return fmt.Errorf("plan of rules: counter %d of %d", n, p.Counters)
		}
	}
	return nil
}

// plainName reports whether a name needs no quotes.
func plainName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("._-/\\", c)
	})
}

// scope is what a change of a table is about.
type scope struct {
	changed []string // chains of both forms whose rules differ
	own     []string // chains of the new form alone
	sets    []string // sets of the new form alone
}

// scopeOf compares two forms of a table that share the rules which did not change.
func scopeOf(before, after *ruleset.Table) scope {
	var s scope
	for _, c := range after.Chains {
		old := before.Chain(c.Name)
		switch {
		case old == nil:
			s.own = append(s.own, c.Name)
		case !slices.Equal(old.Rules, c.Rules):
			s.changed = append(s.changed, c.Name)
		}
	}
	for _, set := range after.Sets {
		if before.Set(set.Name) == nil {
			s.sets = append(s.sets, set.Name)
		}
	}
	slices.Sort(s.changed)
	slices.Sort(s.own)
	slices.Sort(s.sets)
	return s
}

// suits returns why the rules of a table are not changed while packets pass; nil if they are.
func (s scope) suits(before, after *ruleset.Table) error {
	if len(before.Flags) > 0 {
		return fmt.Errorf("%w: table %s %s has the flag %s", ErrRefused, before.Family, before.Name, before.Flags[0])
	}
	for _, c := range before.Chains {
		for _, r := range c.Rules {
			if word := restarts(r.Text); word != "" {
				return fmt.Errorf("%w: chain %s of table %s %s has a rule with -m %s, whose count would start anew", ErrRefused,
					c.Name, before.Family, before.Name, word)
			}
		}
		if strings.HasPrefix(c.Name, ownPrefix) {
			return fmt.Errorf("%w: table %s %s holds chain %s of an earlier change: undo that first", ErrRefused,
				before.Family, before.Name, c.Name)
		}
	}
	counted := make(map[*ruleset.Counter]int)
	for _, name := range s.changed {
		for _, r := range before.Chain(name).Rules {
			for _, st := range r.Statements {
				if o, ok := st.(ruleset.Opaque); ok && keepsCount(o.Text) {
					return fmt.Errorf("%w: chain %s %s %s has a rule with %q, whose count would start anew", ErrRefused,
						before.Family, before.Name, name, o.Text)
				}
			}
			counters(r, func(c *ruleset.Counter) { counted[c]++ })
		}
	}
	now := make(map[*ruleset.Counter]int)
	for _, name := range slices.Concat(s.changed, s.own) {
		for _, r := range after.Chain(name).Rules {
			counters(r, func(c *ruleset.Counter) { now[c]++ })
		}
	}
	for _, name := range s.sets {
		for _, e := range after.Set(name).Elements {
			if e.Counter != nil {
				now[e.Counter]++
			}
		}
	}
	for c, n := range counted {
		if n != 1 || now[c] != 1 {
			return fmt.Errorf("%w: a counter of table %s %s is in %d old and %d new rules", ErrRefused, before.Family,
				before.Name, n, now[c])
		}
	}
	return nil
}

// keepsCount reports whether a statement remembers packets or connections. A limit remembers only
// the last moments, which refill.
func keepsCount(text string) bool {
	for _, word := range []string{"quota", "ct count", "meter", "last"} {
		if strings.HasPrefix(text, word) && !strings.HasPrefix(text, word+" name") {
			return true
		}
	}
	return false
}

// restarts returns the match of a rule of iptables that remembers packets or connections, and
// forgets them with its rule, in iptables-legacy with its table; empty if there is none.
func restarts(text string) string {
	for _, word := range []string{"quota", "connlimit", "statistic"} {
		if strings.Contains(text, "-m "+word+" ") && (word != "statistic" || strings.Contains(text, "--mode nth")) {
			return word
		}
	}
	return ""
}

// counters calls f for the counters without a name in a rule and in the sets that it has for
// itself.
func counters(r *ruleset.Rule, f func(*ruleset.Counter)) {
	set := func(s *ruleset.Set) {
		if s == nil || s.Name != "" {
			return
		}
		for _, e := range s.Elements {
			if e.Counter != nil {
				f(e.Counter)
			}
		}
	}
	for _, s := range r.Statements {
		switch s := s.(type) {
		case *ruleset.Counter:
			if s.Name == "" {
				f(s)
			}
		case ruleset.Match:
			set(s.Set)
		case ruleset.VerdictMap:
			set(s.Set)
		}
	}
}
