package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// ipfw makes blocks of rules behind skipto tablearg. A block ends with a skipto to the rule behind
// all of them.
func (b *builder) ipfw(c *ruleset.Chain, items []*item) ([]*ruleset.Rule, float64) {
	aims := make(map[int]bool) // rules that another rule skips to
	for _, it := range items {
		for _, s := range it.rule.Statements {
			if v, ok := s.(ruleset.Verdict); ok && v.Kind == ruleset.Skip {
				i := slices.IndexFunc(c.Rules, func(r *ruleset.Rule) bool { return r.Number >= v.Number })
				aims[i] = true
			}
		}
	}
	var out []*ruleset.Rule
	length := 0.0
	for from := 0; from < len(items); {
		to := from
		for to < len(items) && !items[to].barrier && (to == from || !aims[to]) && items[to].rule.Number < 65535 {
			to++
		}
		if to == from {
			out, length, from = append(out, items[from].rule), length+1, from+1
			continue
		}
		var least made
		for i, f := range []ruleset.Field{ruleset.InInterface, ruleset.OutInterface, ruleset.Source, ruleset.Destination} {
			m := b.blocks(c, items[from:to], f, to)
			if i == 0 || m.length < least.length {
				least = m
			}
		}
		out, length, from = append(out, least.rules...), length+least.length, to
	}
	// Sets of forms that were not kept are left out.
	b.sets = slices.DeleteFunc(b.sets, func(s *ruleset.Set) bool {
		return !slices.ContainsFunc(out, func(r *ruleset.Rule) bool {
			m, ok := r.Statements[0].(ruleset.VerdictMap)
			return ok && m.Set == s
		})
	})
	return out, length
}

// blocks rewrites a run of rules, with numbers from that of its first rule to below that of the
// rule behind it.
func (b *builder) blocks(c *ruleset.Chain, items []*item, first ruleset.Field, behind int) made {
	fields := append([]ruleset.Field{first}, ruleset.InInterface, ruleset.OutInterface,
		ruleset.Source, ruleset.Destination)
	slots := arrange(items, func(it *item) (string, ruleset.Field) {
		if it.nests {
			for _, f := range fields {
				if r, ok := it.on(f); ok && splits(f, r) {
					return f.String(), f
				}
			}
		}
		return "", 0
	}, func(s *slot, it *item) bool { return laminar(s, s.tree, it) })
	flat := made{length: float64(len(items))}
	for _, it := range items {
		flat.rules = append(flat.rules, it.rule)
	}
	// Numbers: one for each place and each block, and one behind the blocks of a place.
	need := 0
	for _, s := range slots {
		need++
		if s.tree != 0 {
			need += len(groups(s.tree, s.members)) + 2
		}
	}
	low, high := items[0].rule.Number, 65535
	if behind < len(c.Rules) {
		high = c.Rules[behind].Number
	}
	if high-low < need {
		return flat
	}
	step := max(1, min(100, (high-low)/need))
	number := low - step
	next := func() int {
		number += step
		return number
	}
	var out made
	for i, s := range slots {
		all := groups(s.tree, s.members)
		if s.tree == 0 || len(all) < 3 || len(s.members) <= few {
			at := next()
			for _, m := range s.members {
				out.rules = append(out.rules, numbered(m.rule, at))
			}
			out.length += float64(len(s.members))
			continue
		}
		table := &ruleset.Set{Name: b.named("lr_" + word(ruleset.Term{Field: s.tree})), Data: "verdict", Counting: false,
			Types: []string{ruleset.TypeOf(ruleset.Term{Field: s.tree})}}
		if s.tree == ruleset.Source || s.tree == ruleset.Destination {
			table.Flags = []string{"interval"}
		}
		key := ruleset.Term{Field: s.tree, Header: s.members[0].header(s.tree)}
		if slices.ContainsFunc(s.members, func(m *item) bool { return m.header(s.tree) != key.Header }) {
			key.Header = "" // one table of ipfw has addresses of IPv4 and of IPv6
		}
		table.Sort()
		enter := next()
		past := next()
		var inner []*ruleset.Rule
		behindAll := past + (len(all)+1)*step
		if i == len(slots)-1 {
			behindAll = high
		}
		for _, g := range all {
			at := next()
			to := ruleset.Verdict{Kind: ruleset.Skip, Number: at}
			table.Elements = append(table.Elements, ruleset.Element{Key: []ruleset.Range{g.at}, Verdict: to})
			decided := false
			for _, m := range g.members {
				inner = append(inner, numbered(m.rule, at))
				r, _ := m.on(s.tree)
				decided = decided || m.decides && len(m.rule.Statements) == 3 && r == g.at
			}
			if !decided {
				inner = append(inner, skip(at, behindAll))
			}
		}
		table.Sort()
		b.sets = append(b.sets, table)
		text := fmt.Sprintf("%05d skipto tablearg ip %s", enter, lookedUp(s.tree, table.Name))
		out.rules = append(out.rules, &ruleset.Rule{Number: enter, Text: text,
			Statements: []ruleset.Statement{ruleset.VerdictMap{Key: []ruleset.Term{key}, Set: table}}}, skip(past, behindAll))
		out.rules = append(out.rules, inner...)
		out.length += 2 + float64(len(inner))/float64(len(all))
	}
	if out.length >= flat.length {
		return flat
	}
	return out
}

func numbered(r *ruleset.Rule, n int) *ruleset.Rule {
	if r.Number == n {
		return r
	}
	moved := *r
	_, rest, _ := strings.Cut(r.Text, " ")
	moved.Number, moved.Text = n, fmt.Sprintf("%05d %s", n, rest)
	return &moved
}

func skip(at, to int) *ruleset.Rule {
	return &ruleset.Rule{Number: at, Text: fmt.Sprintf("%05d skipto %d ip from any to any", at, to),
		Statements: []ruleset.Statement{new(ruleset.Counter), ruleset.Verdict{Kind: ruleset.Skip, Number: to}}}
}

// lookedUp is the body of a rule of ipfw that looks a field up in a table.
func lookedUp(f ruleset.Field, table string) string {
	switch f {
	case ruleset.Source:
		return "from table(" + table + ") to any"
	case ruleset.Destination:
		return "from any to table(" + table + ")"
	case ruleset.OutInterface:
		return "from any to any out xmit table(" + table + ")"
	}
	return "from any to any recv table(" + table + ")"
}

// pf joins rules that decide at once and differ in one address.
func (b *builder) pf(items []*item) ([]*ruleset.Rule, float64) {
	field := func(it *item) (ruleset.Field, string) {
		if !it.simple || !it.decides {
			return 0, ""
		}
		for _, f := range []ruleset.Field{ruleset.Source, ruleset.Destination} {
			r, ok := it.on(f)
			text := f.FormatRange(r)
			side := " from "
			if f == ruleset.Destination {
				side = " to "
			}
			if _, rest, found := strings.Cut(it.rule.Text+" ", " "); ok && found && strings.Count(" "+rest, side+text+" ") == 1 {
				return f, strings.Replace(" "+rest, side+text+" ", side+"<> ", 1)
			}
		}
		return 0, ""
	}
	slots := arrange(items, func(it *item) (string, ruleset.Field) {
		f, form := field(it)
		return form, f
	}, func(s *slot, it *item) bool {
		return !slices.ContainsFunc(s.members, func(m *item) bool { return m.region.Meets(&it.region) })
	})
	var out []*ruleset.Rule
	for _, s := range slots {
		if len(s.members) < 3 {
			for _, m := range s.members {
				out = append(out, m.rule)
			}
			continue
		}
		first := s.members[0]
		table := &ruleset.Set{Name: b.named("lr_" + word(ruleset.Term{Field: s.tree})), Counting: true,
			Flags: []string{"interval"},
			Types: []string{ruleset.TypeOf(ruleset.Term{Field: s.tree, Header: first.header(s.tree)})}}
		for _, m := range s.members {
			r, _ := m.on(s.tree)
			table.Elements = append(table.Elements, ruleset.Element{Key: []ruleset.Range{r}, Counter: m.counter,
				Comment: m.rule.Comment})
		}
		table.Sort()
		b.sets = append(b.sets, table)
		joined := &ruleset.Rule{Number: first.rule.Number, Text: fmt.Sprintf("@%d %s", first.rule.Number,
			strings.TrimSpace(strings.Replace(s.form, "<>", "<"+table.Name+">", 1)))}
		// The lookup comes last, because it counts.
		for _, st := range first.rule.Statements {
			switch st := st.(type) {
			case ruleset.Match:
				if st.Key[0].Field != s.tree {
					joined.Statements = append(joined.Statements, st)
				}
			case ruleset.Verdict:
				joined.Statements = append(joined.Statements, ruleset.Match{
					Key: []ruleset.Term{{Field: s.tree, Header: first.header(s.tree)}}, Set: table}, st)
			}
		}
		out = append(out, joined)
	}
	return out, float64(len(out))
}
