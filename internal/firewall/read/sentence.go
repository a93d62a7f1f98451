package read

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// words are tokens that are read from the left.
type words struct{ tokens []token }

// blank skips the ends of lines, which are in braces only.
func (w *words) blank() {
	for len(w.tokens) > 0 && (w.tokens[0].is("\n") || w.tokens[0].is(";")) {
		w.tokens = w.tokens[1:]
	}
}

func (w words) done() bool {
	w.blank()
	return len(w.tokens) == 0
}

func (w *words) peek() token {
	if len(w.tokens) == 0 {
		return token{quoted: true}
	}
	return w.tokens[0]
}

func (w *words) take(s string) bool {
	if !w.peek().is(s) {
		return false
	}
	w.tokens = w.tokens[1:]
	return true
}

// word returns the next token, an empty text at the end.
func (w *words) word() string {
	t := w.peek()
	w.tokens = w.tokens[min(1, len(w.tokens)):]
	return t.text
}

// counted reads what a counter has.
func (w *words) counted() (packets, bytes uint64) {
	if w.take("packets") {
		packets, _ = strconv.ParseUint(w.word(), 10, 64)
	}
	if w.take("bytes") {
		bytes, _ = strconv.ParseUint(w.word(), 10, 64)
	}
	return packets, bytes
}

// verdict reads a verdict of a map; false if it is another value.
func (w *words) verdict() (ruleset.Verdict, bool) {
	kinds := map[string]ruleset.Kind{"accept": ruleset.Accept, "drop": ruleset.Drop, "continue": ruleset.Continue,
		"return": ruleset.Return, "jump": ruleset.Jump, "goto": ruleset.Goto}
	kind, ok := kinds[w.peek().text]
	if !ok || w.peek().quoted {
		return ruleset.Verdict{}, false
	}
	v := ruleset.Verdict{Kind: kind}
	if w.word(); kind == ruleset.Jump || kind == ruleset.Goto {
		v.Chain = w.word()
	}
	return v, true
}

// bitwise reports whether an operator on bits is next. nft writes signs, and programs that
// translate rules of iptables the words of its grammar: mark and 0x8000 == 0x8000.
func (w *words) bitwise() bool {
	return !w.peek().quoted && slices.Contains([]string{"&", "|", "^", "<<", ">>", "and", "or", "xor", "lshift",
		"rshift"}, w.peek().text)
}

// group takes a token, or all up to the brace or parenthesis that closes.
func (w *words) group() (taken []token) {
	depth := 0
	for n, t := range w.tokens {
		switch {
		case t.is("{"), t.is("("):
			depth++
		case t.is("}"), t.is(")"):
			depth--
		}
		if depth <= 0 {
			taken, w.tokens = w.tokens[:n+1], w.tokens[n+1:]
			return taken
		}
	}
	taken, w.tokens = w.tokens, nil
	return taken
}

// metas are keys of meta that stand without that word.
var metas = []string{"iif", "iifname", "iiftype", "iifgroup", "oif", "oifname", "oiftype", "oifgroup", "mark", "skuid",
	"skgid", "pkttype", "nftrace", "rtclassid", "cpu", "cgroup", "ibrname", "obrname", "ibriport", "obriport"}

// headers are the headers whose fields are named by one word.
var headers = []string{"ip", "ip6", "tcp", "udp", "udplite", "sctp", "dccp", "th", "icmp", "icmpv6", "igmp", "arp",
	"ether", "vlan", "ah", "esp", "comp", "frag", "hbh", "mh", "dst", "vxlan", "geneve", "gre", "gretap"}

// key reads a term of the model.
func (w *words) key() (ruleset.Term, bool) {
	start := w.tokens
	t, ok := w.plainKey()
	if !ok {
		w.tokens = start
		return t, false
	}
	if (t.Field == ruleset.Source || t.Field == ruleset.Destination) && w.take("&") {
		a, err := netip.ParseAddr(w.peek().text)
		if err != nil || a.Zone() != "" {
			w.tokens = start
			return t, false
		}
		w.word()
		if t.Bits = maskBits(a); t.Bits == 0 {
			w.tokens = start
			return t, false
		}
	}
	return t, true
}

func (w *words) plainKey() (ruleset.Term, bool) {
	first := w.word()
	switch first {
	case "meta":
		switch k := w.word(); k {
		case "iif", "iifname":
			return ruleset.Term{Field: ruleset.InInterface, Header: k}, true
		case "oif", "oifname":
			return ruleset.Term{Field: ruleset.OutInterface, Header: k}, true
		case "l4proto":
			return ruleset.Term{Field: ruleset.Protocol, Header: "meta"}, true
		case "nfproto":
			return ruleset.Term{Field: ruleset.Family, Header: "meta"}, true
		}
	case "iif", "iifname":
		return ruleset.Term{Field: ruleset.InInterface, Header: first}, true
	case "oif", "oifname":
		return ruleset.Term{Field: ruleset.OutInterface, Header: first}, true
	case "ct":
		return ruleset.Term{Field: ruleset.State}, w.word() == "state"
	default:
		if slices.Contains(headers, first) {
			return payload(first, w.word())
		}
	}
	return ruleset.Term{}, false
}

// maskBits returns the length of the prefix, of 128 bits, that a mask keeps; 0 if it is none.
func maskBits(a netip.Addr) int {
	r := ruleset.Range{First: ruleset.Address(a), Last: ruleset.Value{}}
	bits := 0
	if a.Is4() {
		bits = 96
	}
	for i := bits / 8; i < 16; i++ {
		for m := byte(0x80); m > 0; m >>= 1 {
			if r.First[i]&m == 0 {
				for k := bits; k < 128; k++ {
					if r.First[k/8]&(0x80>>(k%8)) != 0 {
						return 0
					}
				}
				return bits
			}
			bits++
		}
	}
	return bits
}

// keys reads terms of the model that are joined by dots.
func (w *words) keys() ([]ruleset.Term, bool) {
	var all []ruleset.Term
	start := w.tokens
	for {
		t, ok := w.key()
		if !ok {
			w.tokens = start
			return nil, false
		}
		all = append(all, t)
		if !w.take(".") {
			return all, true
		}
	}
}

// rule reads one rule. What the reader does not know to its end stays one opaque statement.
func (p *listing) rule(c *ruleset.Chain, b body) error {
	made := new(ruleset.Rule)
	w := words{tokens: slices.DeleteFunc(slices.Clone(b.tokens), func(t token) bool { return t.is("\n") })}
	for len(w.tokens) > 0 {
		line := w.tokens[0].line
		if w.take("comment") {
			made.Comment = w.word()
			continue
		}
		s, err := p.statement(&w)
		if err != nil {
			return fmt.Errorf("line %d: chain %s: %w", line, c.Name, err)
		}
		made.Statements = append(made.Statements, s...)
	}
	c.Rules = append(c.Rules, made)
	return nil
}

// statement reads one statement, with the guard that nft does not print.
func (p *listing) statement(w *words) ([]ruleset.Statement, error) {
	start := w.tokens
	if v, ok := w.verdict(); ok {
		if (v.Kind == ruleset.Jump || v.Kind == ruleset.Goto) && v.Chain == "" {
			return nil, fmt.Errorf("no target")
		}
		return []ruleset.Statement{v}, nil
	}
	if w.take("counter") {
		if named := w.take("name"); named || w.peek().quoted && len(w.tokens) > 0 {
			name := w.word()
			for _, o := range p.table.Objects {
				if o.Kind == "counter" && o.Name == name {
					return []ruleset.Statement{o.Counter}, nil
				}
			}
			return []ruleset.Statement{&ruleset.Counter{Name: name}}, nil
		}
		n := new(ruleset.Counter)
		n.Packets, n.Bytes = w.counted()
		return []ruleset.Statement{n}, nil
	}
	if w.take("reject") {
		return p.reject(w), nil
	}
	if effect, ok := p.effect(w); ok {
		return []ruleset.Statement{effect}, nil
	}
	w.tokens = start
	if key, ok := w.keys(); ok {
		after := w.tokens
		if s, ok := p.compared(w, key); ok {
			return []ruleset.Statement{s}, nil
		}
		w.tokens = after
	}
	w.tokens = start
	return []ruleset.Statement{p.unmodelled(w)}, nil
}

// reject reads what follows the word.
func (p *listing) reject(w *words) []ruleset.Statement {
	v := ruleset.Verdict{Kind: ruleset.Reject}
	var all []ruleset.Statement
	if w.take("with") {
		how := w.word()
		if w.take("type"); how == "tcp" {
			v.Detail = "with tcp " + w.word()
		} else {
			v.Detail = "with " + how + " " + w.word()
		}
		if b := []byte(fmt.Sprintf(`{"type": %q}`, how)); how == "icmp" || how == "icmpv6" {
			if guard, ok := rejectGuard(p.table, "reject", b); ok {
				all = append(all, guard)
			}
		}
	}
	return append(all, v)
}

// effect reads a statement that the model does not compute and that is no comparison.
func (p *listing) effect(w *words) (ruleset.Opaque, bool) {
	start := w.tokens
	var o ruleset.Opaque
	done := func() (ruleset.Opaque, bool) {
		o.Text = p.raw(start[:len(start)-len(w.tokens)])
		return o, true
	}
	switch first := w.word(); first {
	case "log":
		o.Effect = ruleset.EffectLog
		for slices.Contains([]string{"prefix", "group", "snaplen", "queue-threshold", "level", "flags"}, w.peek().text) {
			if w.word() == "flags" && slices.Contains([]string{"tcp", "ip"}, w.peek().text) {
				w.word()
			}
			for w.word(); w.take(","); w.word() {
			}
		}
	case "limit", "quota":
		o.Effect, o.Conditional = ruleset.EffectLimit, true
		if w.take("name") {
			w.word()
			break
		}
		w.take("rate")
		for w.take("over") || w.take("until") {
		}
		if n := w.word(); !strings.Contains(n, "/") {
			w.word() // 10 mbytes/second, 10 mbytes
		}
		if w.take("burst") || w.take("used") {
			w.word()
			w.word()
		}
	case "masquerade", "snat", "dnat", "redirect", "tproxy":
		o.Effect, o.Ends = ruleset.EffectNAT, true
		o.Conditional = p.rest(w, "map")
	case "queue":
		o.Effect, o.Ends = ruleset.EffectQueue, true
		o.Conditional = p.rest(w, "map")
	case "dup", "fwd":
		o.Effect, o.Ends = ruleset.EffectOther, first == "fwd"
		o.Conditional = p.rest(w, "map")
	case "notrack":
		o.Effect = ruleset.EffectTrack
	case "flow", "synproxy":
		o.Effect = ruleset.EffectTrack
		p.rest(w, "")
	case "last", "reset":
		o.Effect = ruleset.EffectMark
		p.rest(w, "")
	case "add", "update", "delete", "set", "meter", "map":
		o.Effect = ruleset.EffectDynamic
		for len(w.tokens) > 0 && !w.peek().is("{") {
			w.word()
		}
		for _, t := range w.group() {
			o.Conditional = o.Conditional || t.is("limit") || t.is("quota") || t.is("count")
		}
		if w.take("size") {
			w.word()
		}
	case "ct":
		switch kind := w.word(); {
		case kind == "count":
			o.Effect, o.Conditional = ruleset.EffectLimit, true
			w.take("over")
			w.word()
		case slices.Contains([]string{"helper", "timeout", "expectation"}, kind) && w.take("set"):
			o.Effect = ruleset.EffectMark
			w.word()
		default:
			return o, false
		}
	case "xt":
		o.Effect, o.Conditional, o.Unprintable = ruleset.EffectOther, true, true
		kind := w.word()
		o.Ends = endingExtension(kind, w.word())
	default:
		return o, false
	}
	return done()
}

// rest takes the rest of a rule but for its comment, and reports whether a word is in it.
func (p *listing) rest(w *words, has string) (found bool) {
	for len(w.tokens) > 0 && !w.peek().is("comment") {
		found = w.peek().is(has) || found
		w.word()
	}
	return found
}

// operators compare.
var operators = map[string]string{"==": "==", "eq": "==", "!=": "!=", "ne": "!=", "<": "<", "lt": "<", ">": ">",
	"gt": ">", "<=": "<=", "le": "<=", ">=": ">=", "ge": ">="}

// compared reads the rest of a comparison of terms of the model.
func (p *listing) compared(w *words, key []ruleset.Term) (ruleset.Statement, bool) {
	if w.take("vmap") {
		set, ok := p.looked(w, key, true)
		return ruleset.VerdictMap{Key: key, Set: set}, ok
	}
	op := ""
	if o, ok := operators[w.peek().text]; ok && !w.peek().quoted {
		op = o
		w.word()
	}
	m := ruleset.Match{Key: key, Negated: op == "!="}
	if w.peek().is("{") || !w.peek().quoted && strings.HasPrefix(w.peek().text, "@") {
		var ok bool
		if m.Set, ok = p.looked(w, key, false); op != "" && op != "==" && op != "!=" {
			return nil, false
		}
		return m, ok
	}
	if len(key) != 1 || w.peek().is("set") {
		return nil, false
	}
	field := key[0].Field
	for {
		r, n, ok := rangeText(field, w.tokens)
		if !ok || key[0].Bits > 0 && r.First != r.Last {
			return nil, false
		}
		w.tokens = w.tokens[n:]
		m.Plain = append(m.Plain, r)
		if !w.take(",") {
			break
		}
	}
	if len(m.Plain) > 1 && (field != ruleset.State || op == "!=" || op == "==") {
		return nil, false
	}
	if slices.Contains([]string{"<", ">", "<=", ">="}, op) {
		r := m.Plain[0]
		return compared(key, op, []byte(strconv.FormatUint(r.First.Number(), 10)))
	}
	return m, true
}

// looked reads the set of a lookup.
func (p *listing) looked(w *words, key []ruleset.Term, mapped bool) (*ruleset.Set, bool) {
	if t := w.peek(); !t.quoted && strings.HasPrefix(t.text, "@") {
		w.word()
		s := p.table.Set(strings.TrimPrefix(t.text, "@"))
		return s, s != nil && len(s.Types) == len(key) && !slices.Contains(s.Fields(), 0)
	}
	if !w.peek().is("{") {
		return nil, false
	}
	tokens := w.group()
	if !tokens[len(tokens)-1].is("}") {
		return nil, false
	}
	fields := make([]ruleset.Field, len(key))
	for i, t := range key {
		fields[i] = t.Field
	}
	s := new(ruleset.Set)
	if mapped {
		s.Data = "verdict"
	}
	if p.elements(s, fields, mapped, tokens[1:len(tokens)-1]) != nil || s.Unprintable {
		return nil, false
	}
	order(s)
	return s, true
}

// unmodelled reads a comparison, or an assignment, of what the model does not have. If it does not
// know the first word, the rest of the rule is one statement.
func (p *listing) unmodelled(w *words) ruleset.Opaque {
	start := w.tokens
	o := ruleset.Opaque{Conditional: true}
	done := func() ruleset.Opaque {
		o.Text = p.raw(start[:len(start)-len(w.tokens)])
		return o
	}
	known := p.subject(w)
	o.Effect = subjectEffect(start[:len(start)-len(w.tokens)])
	if !known {
		p.rest(w, "")
		o.Effect = ruleset.EffectOther
		return done()
	}
	for w.bitwise() {
		w.word()
		w.group()
	}
	switch {
	case w.take("set"):
		o.Effect, o.Conditional = ruleset.EffectMark, false
		if value := w.tokens; !p.subject(w) {
			w.tokens = value
			w.group()
		}
		for w.bitwise() || w.peek().is("map") || w.peek().is(",") {
			o.Conditional = o.Conditional || w.peek().is("map")
			w.word()
			w.group()
		}
		return done()
	case w.take("vmap"), w.take("map"):
		w.group()
		o.Effect = ruleset.EffectOther
		return done()
	}
	if _, ok := operators[w.peek().text]; ok || w.peek().is("!") {
		w.word()
	}
	for w.group(); ; w.group() {
		if w.bitwise() {
			w.word()
			continue
		}
		if !w.take(",") && !w.take("/") && !w.take(".") && !w.take("==") && !w.take("!=") {
			return done()
		}
	}
}

// subject takes what an unmodelled comparison is about; false if it is unknown.
func (p *listing) subject(w *words) bool {
	for {
		switch first := w.word(); {
		case first == "":
			return false
		case slices.Contains(metas, first), strings.HasPrefix(first, "@") && strings.Contains(first, ","):
		case first == "meta", first == "rt":
			if w.word(); w.peek().is("nexthop") {
				w.word()
			}
		case first == "ct":
			if k := w.word(); k == "original" || k == "reply" {
				if k = w.word(); k == "ip" || k == "ip6" {
					w.word()
				}
			}
		case first == "tcp" && w.take("option"), first == "ip" && w.take("option"):
			if w.word(); !w.peek().quoted && slices.Contains([]string{"size", "kind", "length", "count", "left", "right",
				"tsval", "tsecr", "ptr", "addr", "type", "value"}, w.peek().text) {
				w.word()
			}
		case first == "exthdr":
			w.word()
		case first == "socket":
			if w.word() == "cgroupv2" && w.take("level") {
				w.word()
			}
		case first == "fib":
			for w.word(); w.take("."); w.word() {
			}
			w.word()
		case first == "numgen", first == "jhash", first == "symhash":
			for len(w.tokens) > 0 && w.word() != "mod" {
			}
			if w.word(); w.take("offset") {
				w.word()
			}
		case slices.Contains(headers, first):
			w.word()
		default:
			return false
		}
		if !w.take(".") {
			return true
		}
	}
}

// subjectEffect returns what the answer of a comparison depends on, beside the packet.
func subjectEffect(tokens []token) ruleset.Effect {
	for i, t := range tokens {
		switch {
		case t.is("numgen"), t.is("time"), t.is("hour"), t.is("day"):
			return ruleset.EffectTime
		case i == 0 && (t.is("fib") || t.is("rt") || t.is("socket")):
			return ruleset.EffectRoute
		case t.is("bytes"), t.is("packets"), t.is("avgpkt"), t.is("expiration"), t.is("count"):
			return ruleset.EffectLimit
		}
	}
	return ruleset.EffectNone
}
