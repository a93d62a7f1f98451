package ruleset

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Program is the packet filter that rules were read from.
type Program string

// The programs that are read. Rules of iptables-nft are rules of nftables whose matches only
// iptables can print.
const (
	NFT            Program = "nft"
	IPTablesLegacy Program = "iptables-legacy"
	IPTablesNFT    Program = "iptables-nft"
	IPFW           Program = "ipfw"
	PF             Program = "pf"
)

// Ruleset is everything that one program filters with in one network namespace.
type Ruleset struct {
	Program    Program
	Version    string // of the program that printed it; empty: unknown
	Generation uint64 // of nftables when it was read; 0: unknown
	Tables     []*Table
}

// Table returns a table by family and name, nil if there is none.
func (r *Ruleset) Table(family, name string) *Table {
	for _, t := range r.Tables {
		if t.Family == family && t.Name == name {
			return t
		}
	}
	return nil
}

// Hooked returns the base chains of a hook with their tables, in the order in which a packet of a
// family passes them: by priority, then as they were read.
func (r *Ruleset) Hooked(hook string, family uint64) []Hooked {
	var all []Hooked
	for _, t := range r.Tables {
		if !t.sees(family) {
			continue
		}
		for _, c := range t.Chains {
			if c.Hook == hook {
				all = append(all, Hooked{t, c})
			}
		}
	}
	sorting.StableFunc(all, func(a, b Hooked) int { return cmp.Compare(a.Chain.Priority, b.Chain.Priority) })
	return all
}

// Hooked is a base chain and its table.
type Hooked struct {
	Table *Table
	Chain *Chain
}

// Table is a table, or all rules of a program without tables.
type Table struct {
	Family  string // ip, ip6, inet, arp, bridge, netdev
	Name    string
	Handle  uint64
	Comment string
	Flags   []string
	Chains  []*Chain
	Sets    []*Set
	Objects []Object
}

// Chain returns a chain by name, nil if there is none.
func (t *Table) Chain(name string) *Chain {
	for _, c := range t.Chains {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Set returns a named set or map, nil if there is none.
func (t *Table) Set(name string) *Set {
	for _, s := range t.Sets {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// sees reports whether IP packets of a family pass the table. Rules of bridge and netdev see them
// too, at hooks of their own.
func (t *Table) sees(family uint64) bool {
	switch t.Family {
	case "ip":
		return family == IPv4
	case "ip6":
		return family == IPv6
	}
	return t.Family != "arp"
}

// Object is a named counter, quota, limit, flowtable and the like, as nft writes it.
type Object struct {
	Kind, Name string
	Handle     uint64
	Body       string // what is inside the braces; empty if the reader cannot print it
	Counter    *Counter
}

// Chain is a list of rules. Base chains have a hook.
type Chain struct {
	Name     string
	Handle   uint64
	Type     string // filter, nat, route; empty without a hook
	Hook     string // ingress, prerouting, input, forward, output, postrouting, egress
	Priority int
	Devices  []string // of ingress and egress
	Policy   Kind     // Accept or Drop; None without a hook
	Counter  *Counter // of the policy, which iptables keeps
	Comment  string
	Rules    []*Rule
	// LastMatch: the last rule that matches decides, unless one is quick, as in pf.
	LastMatch bool
}

// Rule is a row of statements.
type Rule struct {
	Handle     uint64
	Number     int // of ipfw and pf; 0 otherwise
	Comment    string
	Statements []Statement
	// Text is the rule as its own program printed it, without counters; empty for nft, whose rules
	// are written from their statements.
	Text string
	// Evaluations counts how often the rule was looked at, which pf keeps; 0 otherwise.
	Evaluations uint64
}

// Counters returns the rule's own counters, without those of elements of sets.
func (r *Rule) Counters() []*Counter {
	var all []*Counter
	for _, s := range r.Statements {
		if c, ok := s.(*Counter); ok {
			all = append(all, c)
		}
	}
	return all
}

// Barrier reports whether a statement has an effect that is not modelled, so that no rewrite may
// move the rule, or another across it.
func (r *Rule) Barrier() bool {
	return slices.ContainsFunc(r.Statements, func(s Statement) bool {
		switch s := s.(type) {
		case Opaque:
			return s.Effect != EffectNone
		case Match:
			return s.Set != nil && s.Set.Dynamic()
		case VerdictMap:
			return s.Set.Dynamic()
		}
		return false
	})
}

// Statement is a [Match], [*Counter], [Verdict], [VerdictMap] or [Opaque].
type Statement interface{ statement() }

func (Match) statement()      {}
func (*Counter) statement()   {}
func (Verdict) statement()    {}
func (VerdictMap) statement() {}
func (Opaque) statement()     {}

// Counter counts the packets that reach it. Its address is its identity.
type Counter struct {
	Packets, Bytes uint64
	Name           string // of a named counter, which several rules may share
}

// Kind is what follows a rule.
type Kind uint8

// The kinds of verdict. None is the absence of one.
const (
	None     Kind = iota
	Accept        // this base chain is over, the next one of the hook follows
	Drop          // the packet is gone
	Reject        // the same, with an answer to its sender
	Return        // back to the rule after the jump; in a base chain the policy
	Jump          // to a chain, and back
	Goto          // to a chain, and back to where the last jump came from
	Continue      // with the next rule
	Skip          // to the rule of a number, as ipfw's skipto
)

// String returns the verdict as nft writes it.
func (k Kind) String() string {
	names := [...]string{"", "accept", "drop", "reject", "return", "jump", "goto", "continue", "skipto"}
	if int(k) < len(names) {
		return names[k]
	}
	return "verdict"
}

// Verdict says what follows a rule that matched.
type Verdict struct {
	Kind   Kind
	Chain  string // of Jump and Goto
	Number int    // of Skip
	Detail string // of Reject: the rest of the statement
	// Provisional verdicts of pf stand unless a later rule matches.
	Provisional bool
}

// Effect is a side effect that the model does not compute.
type Effect string

// The effects. EffectNone is a condition on something unmodelled: the same packet meets the same
// answer wherever the rule stands, unless an effect lies between.
const (
	EffectNone    Effect = ""
	EffectLimit   Effect = "limit"   // limit, quota, connlimit, meter: the answer depends on past packets
	EffectMark    Effect = "mark"    // marks, priorities and other fields written
	EffectLog     Effect = "log"     // a line in a log for each packet
	EffectNAT     Effect = "nat"     // addresses rewritten
	EffectQueue   Effect = "queue"   // handed to a program
	EffectTime    Effect = "time"    // the answer depends on the clock or on chance
	EffectRoute   Effect = "route"   // the answer depends on the routing table
	EffectDynamic Effect = "dynamic" // elements added to sets
	EffectTrack   Effect = "track"   // connection tracking avoided, helped or offloaded
	EffectOther   Effect = "other"   // copies, redirection to a device, and what the reader does not know
)

// Opaque is a statement that is not modelled.
type Opaque struct {
	Text        string // as its program writes it
	Effect      Effect
	Conditional bool // it may end the rule
	Ends        bool // it ends the chain, as masquerade does
	Unprintable bool // Text only describes it, and cannot be loaded
}

// Term is a field as a match names it.
type Term struct {
	Field Field
	// Header is the header that nft reads the field from: ip, ip6, tcp, udp, udplite, sctp, dccp, th;
	// meta; iif or iifname, oif or oifname; empty for states.
	Header string
	// Bits keeps this many bits from the left of the 128 before comparing, as ip saddr &
	// 255.255.255.0 does; 0 keeps all.
	Bits int
}

// Match is a condition on fields: a plain comparison, or a lookup in a set.
type Match struct {
	Key     []Term
	Negated bool
	// Plain are the values of the only term without a set. More than one are bits of a state, or of
	// ports in iptables' multiport and lists of ipfw.
	Plain []Range
	Set   *Set // nil for a plain comparison; anonymous if it has no name
}

// VerdictMap chooses a verdict by fields.
type VerdictMap struct {
	Key []Term
	Set *Set
}

// Set is a set or a map.
type Set struct {
	Name     string // empty for an anonymous one
	Handle   uint64
	Comment  string
	Types    []string // of the key, as nft names them: ipv4_addr, inet_service …
	Data     string   // of a map: the type of its data, verdict for a verdict map
	Flags    []string // interval, constant, timeout, dynamic
	Timeout  time.Duration
	Size     uint64
	Policy   string
	Merging  bool // adjacent and overlapping elements are joined when they are added
	Counting bool // every element has a counter
	Elements []Element
	// Unprintable is set if an element or a property cannot be written back.
	Unprintable bool

	sorted bool // Elements are disjoint and in order
}

// Interval reports whether keys may be intervals.
func (s *Set) Interval() bool { return slices.Contains(s.Flags, "interval") }

// Dynamic reports whether packets or time change the set.
func (s *Set) Dynamic() bool {
	return slices.Contains(s.Flags, "dynamic") || slices.Contains(s.Flags, "timeout") || s.Timeout > 0
}

// Element is one entry of a set or map.
type Element struct {
	Key              []Range // one for each term
	Verdict          Verdict // of a verdict map
	Data             string  // of another map, as nft writes it
	Counter          *Counter
	Timeout, Expires time.Duration
	Comment          string
	Excluded         bool // ipset's nomatch
}

// Sort orders the elements for the search of [Set.Find]; call it again after a change. Sets of
// concatenations, and those whose elements overlap, stay as they are.
func (s *Set) Sort() {
	s.sorted = false
	if len(s.Elements) == 0 || len(s.Elements[0].Key) != 1 {
		return
	}
	order := slices.Clone(s.Elements)
	sorting.StableFunc(order, func(a, b Element) int { return a.Key[0].First.Compare(b.Key[0].First) })
	for i, e := range order {
		if e.Excluded || i > 0 && order[i-1].Key[0].Overlaps(e.Key[0]) {
			return
		}
	}
	s.Elements, s.sorted = order, true
}

// Find returns the element that holds the values, nil if there is none. Where several do, it is the
// one with the smallest range, as the longest prefix is in ipset.
func (s *Set) Find(values []Value) *Element {
	if s.sorted && len(values) == 1 {
		i, exact := slices.BinarySearchFunc(s.Elements, values[0], func(e Element, v Value) int {
			return e.Key[0].First.Compare(v)
		})
		if !exact {
			i--
		}
		if i >= 0 && s.Elements[i].Key[0].Contains(values[0]) {
			return &s.Elements[i]
		}
		return nil
	}
	var best *Element
	for i := range s.Elements {
		e := &s.Elements[i]
		if holds(e.Key, values) && (best == nil || best.Key[0].Covers(e.Key[0])) {
			best = e
		}
	}
	if best != nil && best.Excluded {
		return nil
	}
	return best
}

func holds(key []Range, values []Value) bool {
	if len(key) != len(values) {
		return false
	}
	for i, r := range key {
		if !r.Contains(values[i]) {
			return false
		}
	}
	return true
}

// Value returns the packet's value of a term; false if the packet lacks the field or the header.
func (t Term) Value(p Packet) (Value, bool) {
	switch {
	case t.Header == "ip" && p.Family() != IPv4, t.Header == "ip6" && p.Family() != IPv6:
		return Value{}, false
	case t.Field == SourcePort || t.Field == DestinationPort:
		if n, ok := t.protocol(); ok && n != uint64(p.Protocol) {
			return Value{}, false
		}
	}
	v, ok := p.Value(t.Field)
	if ok && t.Bits > 0 {
		v = v.masked(t.Bits)
	}
	return v, ok
}

// Implied returns the other fields that a term also tests: ip saddr holds for IPv4 only, tcp dport
// for TCP only, and th dport for protocols with ports.
func (t Term) Implied() map[Field][]Range {
	switch t.Header {
	case "ip":
		return map[Field][]Range{Family: {One(Number(IPv4))}}
	case "ip6":
		return map[Field][]Range{Family: {One(Number(IPv6))}}
	}
	if t.Field == SourcePort || t.Field == DestinationPort {
		if n, ok := t.protocol(); ok {
			return map[Field][]Range{Protocol: {One(Number(n))}}
		}
		return map[Field][]Range{Protocol: {Numbers(6, 6), Numbers(17, 17), Numbers(33, 33), Numbers(132, 132),
			Numbers(136, 136)}}
	}
	return nil
}

// protocol is the one that the header belongs to.
func (t Term) protocol() (uint64, bool) {
	switch t.Header {
	case "tcp", "udp", "sctp", "dccp", "udplite":
		return ProtocolNumber(t.Header)
	}
	return 0, false
}

// String returns the term as nft writes it.
func (t Term) String() string {
	var s string
	switch t.Field {
	case InInterface, OutInterface:
		s = t.Header
	case Source:
		s = t.Header + " saddr"
	case Destination:
		s = t.Header + " daddr"
	case Protocol:
		switch t.Header {
		case "ip":
			s = "ip protocol"
		case "ip6":
			s = "ip6 nexthdr"
		default:
			s = "meta l4proto"
		}
	case SourcePort:
		s = t.Header + " sport"
	case DestinationPort:
		s = t.Header + " dport"
	case State:
		s = "ct state"
	case Family:
		s = "meta nfproto"
	}
	if t.Bits > 0 {
		s += " & " + t.mask()
	}
	return s
}

// mask returns the mask of the term's bits as an address.
func (t Term) mask() string {
	ones := Value{}.filled(0).masked(t.Bits)
	if t.Header == "ip" {
		return netip.AddrFrom4([4]byte(ones[12:])).String()
	}
	return netip.AddrFrom16(ones).String()
}

// hits returns the packet's values of a key.
func hits(key []Term, p Packet) ([]Value, bool) {
	values := make([]Value, len(key))
	for i, t := range key {
		v, ok := t.Value(p)
		if !ok {
			return nil, false
		}
		values[i] = v
	}
	return values, true
}

// Holds reports whether the packet matches, and which element of the set it met.
func (m Match) Holds(p Packet) (bool, *Element) {
	if m.Set == nil {
		v, ok := m.Key[0].Value(p)
		return ok && slices.ContainsFunc(m.Plain, func(r Range) bool { return r.Contains(v) }) != m.Negated, nil
	}
	values, ok := hits(m.Key, p)
	if !ok {
		return false, nil
	}
	e := m.Set.Find(values)
	return (e != nil) != m.Negated, e
}

// Allowed returns the values of the only term that the match holds for. It is false for a match of
// several terms, for sets of the kernel's own changing, and for masks.
func (m Match) Allowed() (Field, []Range, bool) {
	if len(m.Key) != 1 || m.Key[0].Bits > 0 || m.Set != nil && m.Set.Dynamic() {
		return 0, nil, false
	}
	ranges := m.Plain
	if m.Set != nil {
		ranges = nil
		for _, e := range m.Set.Elements {
			if len(e.Key) != 1 || e.Excluded {
				return 0, nil, false
			}
			ranges = append(ranges, e.Key[0])
		}
	}
	if m.Negated {
		return m.Key[0].Field, Without(m.Key[0].Field, ranges), true
	}
	return m.Key[0].Field, Merge(ranges), true
}
