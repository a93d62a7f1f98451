package tally

import (
	"cmp"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Most is how many counts a history keeps: a router with 64 houses has four counters for each.
const Most = 256

// longestText bounds what a count says of its rule, in bytes.
const longestText = 120

// Count is one counter.
type Count struct {
	Table   string `json:"table"`           // family and name
	Chain   string `json:"chain"`           // or the set or map that has the element
	Name    string `json:"name,omitempty"`  // of the comment, or of the counter; empty: it has none
	Match   string `json:"match,omitempty"` // what the rule compares, as its program writes it
	Packets uint64 `json:"packets_total"`
	Bytes   uint64 `json:"bytes_total"`
}

// identity is what distinguishes counts.
type identity struct{ table, chain, name, match string }

// Of returns at most the given number of counts of rulesets, and how many are left out.
func Of(all []*ruleset.Ruleset, most int) (counts []Count, left int) {
	at := make(map[identity]int)
	seen := make(map[*ruleset.Counter]bool)
	add := func(c Count, n *ruleset.Counter) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if n.Name != "" {
			c.Name, c.Chain, c.Match = n.Name, "", ""
		}
		if len(c.Match) > longestText {
			c.Match = strings.ToValidUTF8(c.Match[:longestText], "") + "…"
		}
		id := identity{c.Table, c.Chain, c.Name, c.Match}
		i, ok := at[id]
		if !ok {
			i = len(counts)
			at[id] = i
			counts = append(counts, c)
		}
		counts[i].Packets += n.Packets
		counts[i].Bytes += n.Bytes
	}
	for _, r := range all {
		for _, t := range r.Tables {
			table := t.Family + " " + t.Name
			keys := make(map[*ruleset.Set][]ruleset.Term)
			for _, c := range t.Chains {
				for _, rule := range c.Rules {
					of(table, c, rule, keys, add)
				}
			}
			for _, s := range t.Sets {
				elements(table, s.Name, s, keys[s], add)
			}
			for _, o := range t.Objects {
				add(Count{Table: table}, o.Counter)
			}
		}
	}
	sorting.StableFunc(counts, func(a, b Count) int {
		if named := cmp.Compare(min(len(b.Name), 1), min(len(a.Name), 1)); named != 0 {
			return named
		}
		if len(a.Name) > 0 {
			return 0
		}
		return cmp.Compare(b.Packets, a.Packets)
	})
	left = max(len(counts)-most, 0)
	return counts[:len(counts)-left], left
}

// of adds the counters of a rule, and notes what its sets are looked up by.
func of(table string, c *ruleset.Chain, rule *ruleset.Rule, keys map[*ruleset.Set][]ruleset.Term,
	add func(Count, *ruleset.Counter)) {
	var conditions []string
	count := func() Count {
		return Count{Table: table, Chain: c.Name, Name: rule.Comment, Match: strings.Join(conditions, " ")}
	}
	own := func(s *ruleset.Set) {
		if s.Name == "" {
			elements(table, c.Name, s, keys[s], add)
		}
	}
	for _, s := range rule.Statements {
		switch s := s.(type) {
		case ruleset.Match:
			if s.Set != nil {
				keys[s.Set] = s.Key
				own(s.Set)
			}
			conditions = append(conditions, s.Text())
		case ruleset.VerdictMap:
			keys[s.Set] = s.Key
			own(s.Set)
		case ruleset.Opaque:
			if s.Conditional {
				conditions = append(conditions, s.Text)
			}
		case *ruleset.Counter:
			add(count(), s)
		}
	}
}

// elements adds the counters of a set's elements.
func elements(table, holder string, s *ruleset.Set, key []ruleset.Term, add func(Count, *ruleset.Counter)) {
	for _, e := range s.Elements {
		if e.Counter == nil {
			continue
		}
		var parts []string
		for i, r := range e.Key {
			if i < len(key) {
				parts = append(parts, key[i].String()+" "+key[i].Field.FormatRange(r))
			} else if fields := s.Fields(); i < len(fields) {
				parts = append(parts, fields[i].FormatRange(r))
			}
		}
		add(Count{Table: table, Chain: holder, Name: e.Comment, Match: strings.Join(parts, " ")}, e.Counter)
	}
}
