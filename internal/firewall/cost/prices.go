package cost

import (
	"math"
	"slices"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Prices are CPU times in nanoseconds, for each packet that takes the step. Those of nftables hold
// for iptables-nft too, whose rules are nftables' own but for [Prices.Foreign].
type Prices struct {
	Chain   float64 `json:"chain"`   // the way into a base chain of nftables, and its policy
	Rule    float64 `json:"rule"`    // from one rule to the next
	Compare float64 `json:"compare"` // of an address, a port or a prefix that the kernel loads with one instruction
	Mask    float64 `json:"mask"`    // beside Compare: a mask or a prefix that ends within a byte
	// Beside Compare: a field that the kernel copies: IPv6 addresses, prefixes of three bytes.
	Copy      float64 `json:"copy"`
	Meta      float64 `json:"meta"`      // of a protocol, a family or an interface's number
	Name      float64 `json:"name"`      // of an interface's name
	State     float64 `json:"state"`     // of a connection's state
	Range     float64 `json:"range"`     // beside Compare: two ends
	Statement float64 `json:"statement"` // a counter, a verdict, or what is not named here
	Bitmap    float64 `json:"bitmap"`    // a lookup in a set or map of ports or protocols
	Hash      float64 `json:"hash"`      // the same of addresses and other values
	Joined    float64 `json:"joined"`    // a lookup by several fields, or by an IPv6 address
	Interval  float64 `json:"interval"`  // a lookup in a set or map of intervals, which is a tree
	Step      float64 `json:"step"`      // each level of that tree
	Product   float64 `json:"product"`   // a lookup in a set of concatenated intervals
	Jump      float64 `json:"jump"`      // to another chain and back
	Limit     float64 `json:"limit"`     // limit, quota, connlimit
	Log       float64 `json:"log"`       // a line in the kernel's log
	Foreign   float64 `json:"foreign"`   // a match of iptables-nft that only x_tables can make

	Table float64 `json:"table"` // the way into a table of iptables-legacy, and its policy
	// A rule of iptables-legacy, ipfw or pf with its addresses, interfaces and protocol.
	Legacy      float64 `json:"legacy"`
	LegacyMatch float64 `json:"legacy_match"` // of it: each match of a module
	LegacyHit   float64 `json:"legacy_hit"`   // of it: the counter, where the rule matches
	LegacyJump  float64 `json:"legacy_jump"`  // of it: to another chain and back

	Tracking float64 `json:"tracking"` // of connections, once a packet, if any rule needs it
}

// Measured are the built-in prices: Linux 6.18 on a virtual machine with two CPUs of an AMD EPYC,
// as package measure calibrates them. Log is an estimate: the kernel logs nothing of the namespaces
// that are measured. ipfw and pf, which take the prices of iptables-legacy, were not measured.
func Measured() Prices {
	return Prices{Chain: 85, Rule: 1.6, Compare: 4.2, Mask: 1.8, Copy: 32.5, Meta: 11.8, Name: 34, State: 12.5,
		Range: 27.5, Statement: 12, Bitmap: 52, Hash: 58, Joined: 88, Interval: 28, Step: 30, Product: 155, Jump: 24,
		Limit: 72, Log: 2000, Foreign: 40, Table: 50, Legacy: 2.7, LegacyMatch: 20.6, LegacyHit: 4.9, LegacyJump: 11,
		Tracking: 300}
}

// All returns the prices one by one, always in the same order.
func (p *Prices) All() []*float64 {
	return []*float64{&p.Chain, &p.Rule, &p.Compare, &p.Mask, &p.Copy, &p.Meta, &p.Name, &p.State, &p.Range, &p.Statement,
		&p.Bitmap, &p.Hash, &p.Joined, &p.Interval, &p.Step, &p.Product, &p.Jump, &p.Limit, &p.Log, &p.Foreign,
		&p.Table, &p.Legacy, &p.LegacyMatch, &p.LegacyHit, &p.LegacyJump, &p.Tracking}
}

// entry is the price of a base chain without rules.
func (p *Prices) entry(program ruleset.Program) float64 {
	switch program {
	case ruleset.NFT, ruleset.IPTablesNFT:
		return p.Chain
	case ruleset.IPTablesLegacy:
		return p.Table
	}
	return 0
}

// Missed returns the price of one look at a rule that does not match.
func (p *Prices) Missed(program ruleset.Program, t *ruleset.Table, r *ruleset.Rule) float64 {
	missed, _ := p.rule(program, t, r)
	return missed
}

// Met returns the prices of one look at a rule: of one that does not match, and of one that does.
func (p *Prices) Met(program ruleset.Program, t *ruleset.Table, r *ruleset.Rule) (missed, matched float64) {
	return p.rule(program, t, r)
}

// Typical returns the price of one look at a rule that does not match, where only the number of
// rules is known: the mean of one that compares an address and one that compares a port, in a table
// of both network protocols.
func (p *Prices) Typical(program ruleset.Program) float64 {
	sum := 0.0
	for _, t := range []ruleset.Term{{Field: ruleset.Source, Header: "ip"},
		{Field: ruleset.DestinationPort, Header: "tcp"}} {
		m := ruleset.Match{Key: []ruleset.Term{t}, Plain: []ruleset.Range{{}}}
		sum += p.Missed(program, &ruleset.Table{Family: "inet"}, &ruleset.Rule{Statements: []ruleset.Statement{m}})
	}
	return sum / 2
}

// Lookup returns the price of one look at a rule of nftables that looks a field up among some keys:
// single values, or intervals.
func (p *Prices) Lookup(keys int, intervals bool) float64 {
	if intervals {
		return p.Rule + p.Compare + p.tree(keys)
	}
	return p.Rule + p.Compare + p.Hash
}

// tree is the price of a lookup among intervals, in a tree of both ends of each.
func (p *Prices) tree(intervals int) float64 {
	return p.Interval + p.Step*math.Log2(2*float64(intervals)+1)
}

// rule returns the price of one look at a rule, without a match and with one. A packet that does
// not match is taken to have the protocol that the rule names, and to fail at the first other
// condition.
func (p *Prices) rule(program ruleset.Program, t *ruleset.Table, r *ruleset.Rule) (missed, matched float64) {
	l := look{prices: p, foreign: r.Text != "", mixed: t.Family != "ip" && t.Family != "ip6", sum: p.Rule}
	if program != ruleset.NFT && program != ruleset.IPTablesNFT {
		l.legacy, l.sum = true, p.Legacy
	}
	missed = l.sum
	settled := false
	for _, s := range r.Statements {
		condition, selective := l.statement(s)
		if condition && !settled {
			missed, settled = l.sum, selective
		}
		if m, ok := s.(ruleset.VerdictMap); ok {
			l.verdictOf(m.Set)
		}
	}
	return missed, l.sum
}

// look adds up what a packet meets in one rule.
type look struct {
	prices                  *Prices
	legacy, foreign         bool // a rule of x_tables; one of iptables-nft
	mixed                   bool // the table has packets of several network protocols
	familyKnown, protoKnown bool // the rule compared it already
	sum                     float64
}

// statement adds a statement. condition is set if a packet can fail at it, and selective unless it
// is about a protocol.
func (l *look) statement(s ruleset.Statement) (condition, selective bool) {
	p := l.prices
	switch s := s.(type) {
	case ruleset.Match:
		selective = s.Key[0].Field != ruleset.Protocol && s.Key[0].Field != ruleset.Family
		if l.legacy {
			l.legacyMatch(s)
		} else {
			l.match(s)
		}
		return true, selective
	case ruleset.VerdictMap:
		for _, t := range s.Key {
			l.load(t, nil)
		}
		l.lookup(s.Set)
		return true, true
	case *ruleset.Counter:
		if l.legacy {
			l.sum += p.LegacyHit
		} else {
			l.sum += p.Statement
		}
	case ruleset.Verdict:
		jumps := s.Kind == ruleset.Jump || s.Kind == ruleset.Goto
		switch {
		case l.legacy && jumps:
			l.sum += p.LegacyJump
		case l.legacy: // the verdict is part of the rule
		case jumps:
			l.sum += p.Jump
		default:
			l.sum += p.Statement
		}
	case ruleset.Opaque:
		switch {
		case s.Effect == ruleset.EffectLog:
			l.sum += p.Log
		case s.Effect == ruleset.EffectLimit:
			l.sum += p.Limit
		case l.legacy:
			l.sum += p.LegacyMatch
		case l.foreign:
			l.sum += p.Foreign
		default:
			l.sum += p.Statement
		}
		return s.Conditional, s.Conditional
	}
	return false, false
}

// verdictOf adds what follows a verdict map that had an element for the packet.
func (l *look) verdictOf(s *ruleset.Set) {
	if slices.ContainsFunc(s.Elements, func(e ruleset.Element) bool { return e.Verdict.Chain != "" }) {
		l.sum += l.prices.Jump
	}
}

// legacyMatch adds a condition of x_tables, which compares addresses, interfaces and protocol in
// one go.
func (l *look) legacyMatch(m ruleset.Match) {
	if m.Set != nil {
		l.sum += l.prices.LegacyMatch
		l.lookup(m.Set)
		return
	}
	switch m.Key[0].Field {
	case ruleset.SourcePort, ruleset.DestinationPort, ruleset.State:
		l.sum += l.prices.LegacyMatch
	}
}

// match adds a condition of nftables.
func (l *look) match(m ruleset.Match) {
	if l.foreign {
		// Of these iptables-nft makes no rule of nftables.
		state := m.Key[0].Field == ruleset.State
		ports := len(m.Plain) > 1 && (m.Key[0].Field == ruleset.SourcePort || m.Key[0].Field == ruleset.DestinationPort)
		if state || ports || m.Set != nil {
			l.sum += l.prices.Foreign
			if m.Set != nil {
				l.lookup(m.Set)
			}
			return
		}
	}
	for _, t := range m.Key {
		l.load(t, m.Plain)
	}
	if m.Set != nil {
		l.lookup(m.Set)
	}
}

// load adds one field, and its comparison with plain values.
func (l *look) load(t ruleset.Term, plain []ruleset.Range) {
	p := l.prices
	switch t.Header {
	case "ip", "ip6":
		if l.mixed && !l.familyKnown {
			l.sum += p.Meta
		}
		l.familyKnown = true
	case "tcp", "udp", "sctp", "dccp", "udplite":
		if !l.protoKnown {
			l.sum += p.Meta
		}
		l.protoKnown = true
	}
	switch t.Field {
	case ruleset.Source, ruleset.Destination:
		l.address(t, plain)
	case ruleset.SourcePort, ruleset.DestinationPort:
		l.sum += p.Compare
		if len(plain) == 1 && plain[0].First != plain[0].Last {
			l.sum += p.Range
		}
	case ruleset.Protocol:
		l.protoKnown = true
		if t.Header == "ip" || t.Header == "ip6" {
			l.sum += p.Compare
		} else {
			l.sum += p.Meta
		}
	case ruleset.InInterface, ruleset.OutInterface:
		if t.Header == "iif" || t.Header == "oif" {
			l.sum += p.Meta
		} else {
			l.sum += p.Name
		}
	case ruleset.State:
		l.sum += p.State
	case ruleset.Family:
		l.familyKnown = true
		l.sum += p.Meta
	}
}

// address adds an address. nft loads only the bytes that a prefix covers, and the kernel has a
// short way for one, two and four bytes of IPv4 (nft_payload_select_ops).
func (l *look) address(t ruleset.Term, plain []ruleset.Range) {
	p := l.prices
	l.sum += p.Compare
	if t.Header == "ip6" {
		l.sum += p.Copy
	}
	if t.Bits > 0 {
		l.sum += p.Mask
	}
	if len(plain) != 1 || t.Bits > 0 {
		return
	}
	bits, ok := prefix(plain[0])
	switch bits -= 96; {
	case !ok:
		l.sum += p.Range
	case t.Header == "ip6":
	case bits == 24:
		l.sum += p.Copy
	case bits%8 != 0:
		l.sum += p.Mask
	}
}

// prefix returns the length of the prefix, of 128 bits, that a range is; false if it is none.
func prefix(r ruleset.Range) (bits int, ok bool) {
	for bits < 128 && (r.First[bits/8]^r.Last[bits/8])&(0x80>>(bits%8)) == 0 {
		bits++
	}
	for i := bits; i < 128; i++ {
		mask := byte(0x80 >> (i % 8))
		if r.First[i/8]&mask != 0 || r.Last[i/8]&mask == 0 {
			return bits, false
		}
	}
	return bits, true
}

// lookup adds a lookup in a set or a map.
func (l *look) lookup(s *ruleset.Set) {
	p := l.prices
	joined := len(s.Types) > 1 || len(s.Elements) > 0 && len(s.Elements[0].Key) > 1
	switch {
	case !s.Interval() && (joined || slices.Contains(s.Types, "ipv6_addr")):
		l.sum += p.Joined
	case !s.Interval() && slices.ContainsFunc(s.Types, func(t string) bool {
		return t == "inet_service" || t == "inet_proto"
	}):
		l.sum += p.Bitmap // of keys of two bytes at most the kernel makes no table (nft_bitmap_estimate)
	case !s.Interval():
		l.sum += p.Hash
	case joined:
		l.sum += p.Product
	default:
		l.sum += p.tree(len(s.Elements))
	}
	if s.Counting || slices.ContainsFunc(s.Elements[:min(1, len(s.Elements))], func(e ruleset.Element) bool {
		return e.Counter != nil
	}) {
		l.sum += p.Statement
	}
}
