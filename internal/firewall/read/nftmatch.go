package read

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

func (n *nftReader) match(b json.RawMessage) (ruleset.Statement, error) {
	var m struct {
		Op          string
		Left, Right json.RawMessage
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	if s, ok := n.modelled(m.Op, m.Left, m.Right); ok {
		return s, nil
	}
	left, okLeft := expression(decode(m.Left))
	right, okRight := expression(decode(m.Right))
	op := " " + m.Op + " "
	// Without an operator flags mean any of them, and with == exactly these.
	bits := left == "tcp flags" || left == "ct status"
	bits = bits && !isSet(m.Right) || bytes.Contains(m.Left, []byte(`"&"`))
	if m.Op == "==" && !bits || m.Op == "in" || m.Op == "" {
		op = " "
	}
	return ruleset.Opaque{Text: left + op + right, Effect: conditionEffect(m.Left), Conditional: true,
		Unprintable: !okLeft || !okRight}, nil
}

// modelled reads a match on the fields of the model.
func (n *nftReader) modelled(op string, left, right json.RawMessage) (ruleset.Statement, bool) {
	key, ok := terms(left)
	if !ok {
		return nil, false
	}
	m := ruleset.Match{Key: key}
	switch op {
	case "==", "in", "":
	case "!=":
		m.Negated = true
	case "<", ">", "<=", ">=":
		return compared(key, op, right)
	default:
		return nil, false
	}
	right = bytes.TrimSpace(right)
	if bytes.HasPrefix(right, []byte(`"@`)) || isSet(right) {
		if m.Set, ok = n.lookup(key, right, false); !ok {
			return nil, false
		}
		return m, true
	}
	if len(key) != 1 {
		return nil, false
	}
	// A list is a list of bits: the state is one of them.
	var list []json.RawMessage
	if json.Unmarshal(right, &list) != nil {
		list = []json.RawMessage{right}
	} else if key[0].Field != ruleset.State || m.Negated || op == "==" {
		return nil, false
	}
	for _, one := range list {
		r, err := rangeOf(key[0].Field, one)
		if err != nil {
			return nil, false
		}
		m.Plain = append(m.Plain, r)
	}
	return m, len(m.Plain) > 0
}

// compared reads an order comparison of numbers.
func compared(key []ruleset.Term, op string, right json.RawMessage) (ruleset.Statement, bool) {
	if len(key) != 1 || key[0].Bits > 0 {
		return nil, false
	}
	r, err := rangeOf(key[0].Field, right)
	if err != nil || r.First != r.Last {
		return nil, false
	}
	all := ruleset.Universe(key[0].Field)
	switch key[0].Field {
	case ruleset.SourcePort, ruleset.DestinationPort, ruleset.Protocol:
	default:
		return nil, false
	}
	ok := true
	switch op {
	case "<":
		all.Last, ok = r.First.Previous()
	case "<=":
		all.Last = r.First
	case ">":
		all.First, ok = r.First.Next()
	case ">=":
		all.First = r.First
	}
	if !ok || all.First.Compare(all.Last) > 0 {
		return nil, false
	}
	return ruleset.Match{Key: key, Plain: []ruleset.Range{all}}, true
}

func isSet(b json.RawMessage) bool {
	var o map[string]json.RawMessage
	if json.Unmarshal(b, &o) != nil {
		return false
	}
	_, ok := o["set"]
	return ok
}

// lookup returns the named or anonymous set that a match or a map uses.
func (n *nftReader) lookup(key []ruleset.Term, b json.RawMessage, mapped bool) (*ruleset.Set, bool) {
	var name string
	if json.Unmarshal(b, &name) == nil {
		s := n.table.Set(strings.TrimPrefix(name, "@"))
		// Elements of unknown types are not in the model, so a lookup in them is not either.
		if s == nil || len(s.Types) != len(key) || slices.Contains(s.Fields(), 0) {
			return nil, false
		}
		return s, true
	}
	var o struct{ Set json.RawMessage }
	if err := json.Unmarshal(b, &o); err != nil || o.Set == nil {
		return nil, false
	}
	var list []json.RawMessage
	if err := json.Unmarshal(o.Set, &list); err != nil {
		list = []json.RawMessage{o.Set} // a set of one
	}
	fields := make([]ruleset.Field, len(key))
	for i, t := range key {
		fields[i] = t.Field
	}
	s := new(ruleset.Set)
	if mapped {
		s.Data = "verdict"
	}
	if err := elements(s, fields, mapped, list); err != nil || s.Unprintable {
		return nil, false
	}
	order(s)
	return s, true
}

// order sorts the elements of a set without a name, and finds out whether it is one of intervals.
func order(s *ruleset.Set) {
	for _, e := range s.Elements {
		if slices.ContainsFunc(e.Key, func(r ruleset.Range) bool { return r.First != r.Last }) {
			s.Flags = []string{"interval"}
		}
	}
	// The kernel puts the elements of a hash set into an order of its own: keep what nft printed.
	printed := slices.Clone(s.Elements)
	if s.Sort(); !s.Interval() {
		s.Elements = printed
		s.Sort()
	}
}

// terms reads the left side of a match; false if it is not of the model.
func terms(b json.RawMessage) ([]ruleset.Term, bool) {
	var o struct {
		Concat []json.RawMessage
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return nil, false
	}
	if o.Concat == nil {
		t, ok := term(b)
		return []ruleset.Term{t}, ok
	}
	key := make([]ruleset.Term, len(o.Concat))
	for i, c := range o.Concat {
		var ok bool
		if key[i], ok = term(c); !ok {
			return nil, false
		}
	}
	return key, len(key) > 0
}

func term(b json.RawMessage) (ruleset.Term, bool) {
	var o struct {
		Payload *struct{ Protocol, Field string }
		Meta    *struct{ Key string }
		CT      *struct{ Key, Dir string } `json:"ct"`
		And     []json.RawMessage          `json:"&"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return ruleset.Term{}, false
	}
	switch {
	case o.And != nil:
		return masked(o.And)
	case o.Payload != nil:
		return payload(o.Payload.Protocol, o.Payload.Field)
	case o.Meta != nil:
		switch o.Meta.Key {
		case "iif", "iifname":
			return ruleset.Term{Field: ruleset.InInterface, Header: o.Meta.Key}, true
		case "oif", "oifname":
			return ruleset.Term{Field: ruleset.OutInterface, Header: o.Meta.Key}, true
		case "l4proto":
			return ruleset.Term{Field: ruleset.Protocol, Header: "meta"}, true
		case "nfproto":
			return ruleset.Term{Field: ruleset.Family, Header: "meta"}, true
		}
	case o.CT != nil && o.CT.Key == "state" && o.CT.Dir == "":
		return ruleset.Term{Field: ruleset.State}, true
	}
	return ruleset.Term{}, false
}

func payload(protocol, field string) (ruleset.Term, bool) {
	switch protocol {
	case "ip", "ip6":
		switch field {
		case "saddr":
			return ruleset.Term{Field: ruleset.Source, Header: protocol}, true
		case "daddr":
			return ruleset.Term{Field: ruleset.Destination, Header: protocol}, true
		case "protocol":
			return ruleset.Term{Field: ruleset.Protocol, Header: "ip"}, true
		}
	case "tcp", "udp", "sctp", "dccp", "udplite", "th":
		switch field {
		case "sport":
			return ruleset.Term{Field: ruleset.SourcePort, Header: protocol}, true
		case "dport":
			return ruleset.Term{Field: ruleset.DestinationPort, Header: protocol}, true
		}
	}
	return ruleset.Term{}, false
}

// masked reads an address of which a mask keeps a prefix.
func masked(sides []json.RawMessage) (ruleset.Term, bool) {
	if len(sides) != 2 {
		return ruleset.Term{}, false
	}
	t, ok := term(sides[0])
	var mask string
	if !ok || (t.Field != ruleset.Source && t.Field != ruleset.Destination) || json.Unmarshal(sides[1], &mask) != nil {
		return t, false
	}
	a, err := netip.ParseAddr(mask)
	if err != nil {
		return t, false
	}
	// IPv4-mapped addresses keep the 96 bits before theirs.
	v := ruleset.Address(a)
	if a.Is4() {
		v = ruleset.Value{}
		for i := range 12 {
			v[i] = 0xff
		}
		four := a.As4()
		copy(v[12:], four[:])
	}
	bits := 0
	for bits < 128 && v[bits/8]&(0x80>>(bits%8)) != 0 {
		bits++
	}
	for i := bits; i < 128; i++ {
		if v[i/8]&(0x80>>(i%8)) != 0 {
			return t, false
		}
	}
	t.Bits = bits
	return t, bits > 0
}

func decode(b json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}
