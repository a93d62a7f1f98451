package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Line is a rule, or an element of a set, with its counters cut out.
type Line struct {
	Text     string // with a mark for each counter; of iptables what follows the chain's name
	Counters []int  `json:",omitempty"` // which counter of the plan stands at each mark, or counts the rule
}

// Chain is a chain with its rules.
type Chain struct {
	Name  string
	Rules []Line
}

// Set is a set or map with its elements, in the order of their texts.
type Set struct {
	Kind, Name string   // set or map
	Head       []string // the lines before the elements
	Elements   []Line
}

// State is one form of the rules of a table: those of the chains that a plan changes, and the
// chains and sets that this form has for itself.
type State struct {
	Value  knob.Value
	Chains []Chain
	Own    []Chain `json:",omitempty"`
	Sets   []Set   `json:",omitempty"`
}

// Count is the value of a counter.
type Count struct{ Packets, Bytes uint64 }

func (c Count) add(d Count) Count { return Count{c.Packets + d.Packets, c.Bytes + d.Bytes} }
func (c Count) sub(d Count) Count { return Count{c.Packets - d.Packets, c.Bytes - d.Bytes} }

// text is the counter as nft writes it.
func (c Count) text() string { return fmt.Sprintf("counter packets %d bytes %d", c.Packets, c.Bytes) }

// mark stands for a counter in a line. No rule holds it: nft refuses control characters.
const mark = "\x01"

// tagged is the value from which on a counter is a number of a counter and not a count.
const tagged = 1 << 62

var counterText = pattern.New(`counter packets (\d+) bytes (\d+)`)

// capturing prints rules of a table as lines, whose counters it numbers as it meets them.
type capturing struct {
	seen   []*ruleset.Counter
	values []Count
	known  map[*ruleset.Counter]bool
}

// tag gives a counter a number in place of its value, and returns it.
func (c *capturing) tag(n *ruleset.Counter) {
	if n == nil || n.Name != "" || c.known[n] {
		return
	}
	if c.known == nil {
		c.known = make(map[*ruleset.Counter]bool)
	}
	c.known[n] = true
	c.seen, c.values = append(c.seen, n), append(c.values, Count{n.Packets, n.Bytes})
	n.Packets = tagged + uint64(len(c.seen)-1)
	n.Bytes = n.Packets
}

// restore puts the values back.
func (c *capturing) restore() {
	for i, n := range c.seen {
		n.Packets, n.Bytes = c.values[i].Packets, c.values[i].Bytes
	}
}

// line cuts the counters out of a text.
func line(text string) Line {
	var l Line
	l.Text = counterText.ReplaceAllStringFunc(text, func(s string) string {
		m := counterText.FindStringSubmatch(s)
		n, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil || n < tagged || m[1] != m[2] {
			return s
		}
		l.Counters = append(l.Counters, int(n-tagged))
		return mark
	})
	return l
}

// rule prints a rule.
func (c *capturing) rule(r *ruleset.Rule) (Line, error) {
	if r.Text != "" {
		return c.xtLine(r)
	}
	plain := *r
	plain.Statements = nil
	var matches []string
	for _, s := range r.Statements {
		switch s := s.(type) {
		case *ruleset.Counter:
			c.tag(s)
		case ruleset.Match:
			// A rejection by ICMP implies a match that nft does not print; the reader adds it.
			if slices.Contains(matches, s.Text()) {
				continue
			}
			matches = append(matches, s.Text())
			c.anonymous(s.Key, s.Set)
		case ruleset.VerdictMap:
			c.anonymous(s.Key, s.Set)
		}
		plain.Statements = append(plain.Statements, s)
	}
	text, err := plain.NFT()
	return line(text), err
}

// anonymous puts the elements of a set that a rule has for itself in one order, and tags their
// counters. The kernel lists hashed elements in an order of its own.
func (c *capturing) anonymous(key []ruleset.Term, s *ruleset.Set) {
	if s == nil || s.Name != "" {
		return
	}
	name := func(e ruleset.Element) string {
		var b strings.Builder
		for i, r := range e.Key {
			b.WriteString(" " + key[min(i, len(key)-1)].Field.FormatRange(r))
		}
		return b.String()
	}
	sorting.StableFunc(s.Elements, func(a, b ruleset.Element) int { return strings.Compare(name(a), name(b)) })
	for _, e := range s.Elements {
		c.tag(e.Counter)
	}
}

// set prints a set with its elements.
func (c *capturing) set(t *ruleset.Table, s *ruleset.Set) (Set, error) {
	for _, e := range s.Elements {
		c.tag(e.Counter)
	}
	out := Set{Kind: "set", Name: s.Name}
	if s.Data != "" {
		out.Kind = "map"
	}
	var b strings.Builder
	err := ruleset.WriteNFT(&b, &ruleset.Ruleset{Program: ruleset.NFT,
		Tables: []*ruleset.Table{{Family: t.Family, Name: t.Name, Sets: []*ruleset.Set{s}}}})
	if err != nil {
		return out, err
	}
	const begin = "elements = {"
	among := false
	for l := range strings.Lines(b.String()) {
		l = strings.TrimSpace(l)
		if rest, ok := strings.CutPrefix(l, begin); ok && !among {
			among, l = true, strings.TrimSpace(rest)
		}
		switch {
		case among && l == "}":
			among = false
		case among:
			if inner, last := strings.CutSuffix(l, " }"); last {
				among, l = false, inner
			}
			out.Elements = append(out.Elements, line(strings.TrimSuffix(l, ",")))
		case l != "}" && !strings.HasSuffix(l, "{"):
			out.Head = append(out.Head, l)
		}
	}
	if len(out.Elements) != len(s.Elements) {
		return out, fmt.Errorf("%s %s: %d of %d elements can be printed", out.Kind, s.Name, len(out.Elements),
			len(s.Elements))
	}
	sorting.Func(out.Elements, func(a, b Line) int { return strings.Compare(a.Text, b.Text) })
	return out, nil
}

// seal gives a state its value: the number of its rules and a digest of all of it but counts.
func (s *State) seal() {
	n := 0
	for _, c := range slices.Concat(s.Chains, s.Own) {
		n += len(c.Rules)
	}
	content, err := json.Marshal(State{Chains: stripped(s.Chains), Own: stripped(s.Own), Sets: bare(s.Sets)})
	if err != nil {
		panic(err) // strings and numbers always have a form
	}
	sum := sha256.Sum256(content)
	s.Value = knob.Value(fmt.Sprintf("%d rules sha256:%s", n, hex.EncodeToString(sum[:8])))
}

func stripped(chains []Chain) []Chain {
	out := slices.Clone(chains)
	for i, c := range out {
		out[i].Rules = without(c.Rules)
	}
	return out
}

func bare(sets []Set) []Set {
	out := slices.Clone(sets)
	for i, s := range out {
		out[i].Elements = without(s.Elements)
	}
	return out
}

func without(lines []Line) []Line {
	out := make([]Line, len(lines))
	for i, l := range lines {
		out[i].Text = l.Text
	}
	return out
}

// filled returns the text of a line with the values of its counters.
func (l Line) filled(values []Count) string {
	if len(l.Counters) == 0 {
		return l.Text
	}
	var b strings.Builder
	for i, part := range strings.Split(l.Text, mark) {
		if i > 0 {
			b.WriteString(values[l.Counters[i-1]].text())
		}
		b.WriteString(part)
	}
	return b.String()
}
