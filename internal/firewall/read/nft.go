package read

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// errHalf reports a text that stops before its end.
var errHalf = errors.New("the text ends in the middle")

// newest is the version of nft's JSON that the reader knows.
const newest = 1

// NFT reads what nft -j list ruleset prints. The error says where the text is damaged, or that its
// JSON is of a newer version than this reader.
func NFT(r io.Reader) (*ruleset.Ruleset, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read rules of nft: %w", err)
	}
	var document struct {
		Objects []map[string]json.RawMessage `json:"nftables"`
	}
	if err := json.Unmarshal(b, &document); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset >= int64(len(bytes.TrimSpace(b))) {
			err = errHalf
		}
		return nil, fmt.Errorf("read rules of nft: %w", err)
	}
	if document.Objects == nil {
		return nil, fmt.Errorf("read rules of nft: no list \"nftables\" in the JSON")
	}
	n := nftReader{rules: &ruleset.Ruleset{Program: ruleset.NFT}}
	// Rules name sets that may be printed after them, and sets name nothing: sets first.
	for _, pass := range []func(string, json.RawMessage) error{n.place, n.rule} {
		for i, o := range document.Objects {
			for kind, content := range o {
				if err := pass(kind, content); err != nil {
					return nil, fmt.Errorf("read rules of nft: object %d: %s: %w", i+1, kind, err)
				}
			}
		}
	}
	return n.rules, nil
}

type nftReader struct {
	rules *ruleset.Ruleset
	// table is the one of the rule being read, and types the types of its terms.
	table *ruleset.Table
}

// head is what most objects begin with.
type head struct {
	Family, Table, Name, Chain, Comment string
	Handle                              uint64
}

// oneOrMany is a string, or a list of strings.
type oneOrMany []string

func (o *oneOrMany) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = oneOrMany{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

func (n *nftReader) find(h head) (*ruleset.Table, error) {
	if t := n.rules.Table(h.Family, h.Table); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: table %s %s is not in the text", h.Name, h.Family, h.Table)
}

// place reads everything but rules.
func (n *nftReader) place(kind string, b json.RawMessage) error {
	var h head
	if kind != "metainfo" {
		if err := json.Unmarshal(b, &h); err != nil {
			return err
		}
	}
	switch kind {
	case "metainfo":
		var m struct {
			Version string `json:"version"`
			Schema  int    `json:"json_schema_version"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			return err
		}
		if n.rules.Version = m.Version; m.Schema > newest {
			return fmt.Errorf("JSON of version %d, and this reader knows version %d", m.Schema, newest)
		}
		return nil
	case "table":
		var t struct{ Flags oneOrMany }
		if err := json.Unmarshal(b, &t); err != nil {
			return err
		}
		n.rules.Tables = append(n.rules.Tables, &ruleset.Table{Family: h.Family, Name: h.Name, Handle: h.Handle,
			Comment: h.Comment, Flags: t.Flags})
		return nil
	case "rule", "element":
		return nil
	}
	t, err := n.find(h)
	if err != nil {
		return err
	}
	switch kind {
	case "chain":
		return n.chain(t, h, b)
	case "set", "map":
		return n.set(t, h, kind, b)
	}
	o := ruleset.Object{Kind: kind, Name: h.Name, Handle: h.Handle}
	if kind == "counter" {
		o.Counter = &ruleset.Counter{Name: h.Name}
		if err := json.Unmarshal(b, o.Counter); err != nil {
			return err
		}
	} else if o.Body, err = objectBody(kind, b); err != nil {
		return err
	}
	t.Objects = append(t.Objects, o)
	return nil
}

func (n *nftReader) chain(t *ruleset.Table, h head, b json.RawMessage) error {
	var c struct {
		Type, Hook, Policy string
		Prio               int
		Dev                oneOrMany
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	made := &ruleset.Chain{Name: h.Name, Handle: h.Handle, Comment: h.Comment, Type: c.Type, Hook: c.Hook,
		Priority: c.Prio, Devices: c.Dev}
	switch c.Policy {
	case "accept":
		made.Policy = ruleset.Accept
	case "drop":
		made.Policy = ruleset.Drop
	}
	t.Chains = append(t.Chains, made)
	return nil
}

func (n *nftReader) set(t *ruleset.Table, h head, kind string, b json.RawMessage) error {
	var s struct {
		Type    json.RawMessage
		Map     string
		Flags   oneOrMany
		Timeout uint64
		Size    uint64
		Policy  string
		Merge   bool `json:"auto-merge"`
		Stmt    []map[string]json.RawMessage
		Elem    []json.RawMessage
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	made := &ruleset.Set{Name: h.Name, Handle: h.Handle, Comment: h.Comment, Data: s.Map, Flags: s.Flags,
		Timeout: time.Duration(s.Timeout) * time.Second, Size: s.Size, Policy: s.Policy, Merging: s.Merge}
	var types oneOrMany
	if err := json.Unmarshal(s.Type, &types); err != nil {
		// A type made with typeof is an expression that only newer programs print.
		made.Unprintable = true
	}
	made.Types = types
	for _, st := range s.Stmt {
		if _, ok := st["counter"]; ok {
			made.Counting = true
		} else {
			made.Unprintable = true
		}
	}
	fields := made.Fields()
	if slices.Contains(fields, 0) {
		made.Unprintable = true
	}
	if err := elements(made, fields, kind == "map", s.Elem); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	made.Sort()
	t.Sets = append(t.Sets, made)
	return nil
}

// elements adds elements to a set. Those that are not values of known fields make the set
// unprintable: only nft's own text is complete.
func elements(s *ruleset.Set, fields []ruleset.Field, mapped bool, list []json.RawMessage) error {
	s.Elements = make([]ruleset.Element, 0, len(list))
	for i, raw := range list {
		var e ruleset.Element
		key := raw
		if mapped {
			var pair [2]json.RawMessage
			if err := json.Unmarshal(raw, &pair); err != nil {
				return fmt.Errorf("element %d: %w", i+1, err)
			}
			key = pair[0]
			var err error
			if e.Verdict, err = verdictOf(pair[1]); err != nil {
				return fmt.Errorf("element %d: %w", i+1, err)
			}
			if e.Verdict.Kind == ruleset.None {
				var ok bool
				if e.Data, ok = expression(decode(pair[1])); !ok {
					s.Unprintable = true
				}
			}
		}
		if bytes.HasPrefix(key, []byte(`{"elem"`)) || bytes.HasPrefix(key, []byte(`{ "elem"`)) {
			var w struct {
				Elem struct {
					Val              json.RawMessage
					Timeout, Expires uint64
					Comment          string
					Counter          *ruleset.Counter
				}
			}
			if err := json.Unmarshal(key, &w); err != nil {
				return fmt.Errorf("element %d: %w", i+1, err)
			}
			key, e.Comment, e.Counter = w.Elem.Val, w.Elem.Comment, w.Elem.Counter
			e.Timeout, e.Expires = time.Duration(w.Elem.Timeout)*time.Second, time.Duration(w.Elem.Expires)*time.Second
		}
		var err error
		if e.Key, err = ranges(fields, key); err != nil {
			s.Unprintable = true
			continue
		}
		s.Elements = append(s.Elements, e)
	}
	return nil
}

// ranges reads the key of an element.
func ranges(fields []ruleset.Field, b json.RawMessage) ([]ruleset.Range, error) {
	if len(fields) == 1 {
		r, err := rangeOf(fields[0], b)
		return []ruleset.Range{r}, err
	}
	var c struct{ Concat []json.RawMessage }
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, err
	}
	if len(c.Concat) != len(fields) {
		return nil, fmt.Errorf("%d parts for %d fields", len(c.Concat), len(fields))
	}
	key := make([]ruleset.Range, len(fields))
	for i, p := range c.Concat {
		var err error
		if key[i], err = rangeOf(fields[i], p); err != nil {
			return nil, err
		}
	}
	return key, nil
}

// rule reads one rule.
func (n *nftReader) rule(kind string, b json.RawMessage) error {
	if kind != "rule" {
		return nil
	}
	var r struct {
		head
		Expr []map[string]json.RawMessage
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	t, err := n.find(r.head)
	if err != nil {
		return err
	}
	c := t.Chain(r.Chain)
	if c == nil {
		return fmt.Errorf("handle %d: chain %s of table %s %s is not in the text", r.Handle, r.Chain, t.Family, t.Name)
	}
	made := &ruleset.Rule{Handle: r.Handle, Comment: r.Comment}
	n.table = t
	for _, e := range r.Expr {
		for name, content := range e {
			if guard, ok := rejectGuard(t, name, content); ok {
				made.Statements = append(made.Statements, guard)
			}
			s, err := n.statement(name, content)
			if err != nil {
				return fmt.Errorf("chain %s handle %d: %s: %w", r.Chain, r.Handle, name, err)
			}
			made.Statements = append(made.Statements, s)
		}
	}
	c.Rules = append(c.Rules, made)
	return nil
}

// rejectGuard returns the match on the network protocol that a rejection by ICMP implies where
// packets of both families pass; nft does not print it.
func rejectGuard(t *ruleset.Table, name string, b json.RawMessage) (ruleset.Match, bool) {
	m := ruleset.Match{Key: []ruleset.Term{{Field: ruleset.Family, Header: "meta"}}}
	if name != "reject" || t.Family == "ip" || t.Family == "ip6" {
		return m, false
	}
	var how struct{ Type string }
	if json.Unmarshal(b, &how) != nil {
		return m, false
	}
	switch how.Type {
	case "icmp":
		m.Plain = []ruleset.Range{ruleset.One(ruleset.Number(ruleset.IPv4))}
	case "icmpv6":
		m.Plain = []ruleset.Range{ruleset.One(ruleset.Number(ruleset.IPv6))}
	default:
		return m, false
	}
	return m, true
}

func (n *nftReader) statement(name string, b json.RawMessage) (ruleset.Statement, error) {
	switch name {
	case "match":
		return n.match(b)
	case "counter":
		return n.counter(b)
	case "accept", "drop", "continue", "return", "jump", "goto", "reject":
		return verdictNamed(name, b)
	case "vmap":
		var v struct {
			Key  json.RawMessage
			Data json.RawMessage
		}
		if err := json.Unmarshal(b, &v); err != nil {
			return nil, err
		}
		key, ok := terms(v.Key)
		if ok {
			if set, ok := n.lookup(key, v.Data, true); ok {
				return ruleset.VerdictMap{Key: key, Set: set}, nil
			}
		}
		left, okLeft := expression(decode(v.Key))
		right, okRight := expression(decode(v.Data))
		return ruleset.Opaque{Text: left + " vmap " + right, Effect: ruleset.EffectOther, Conditional: true,
			Unprintable: !okLeft || !okRight}, nil
	}
	return opaque(name, b), nil
}

func (n *nftReader) counter(b json.RawMessage) (ruleset.Statement, error) {
	var name string
	if json.Unmarshal(b, &name) == nil && name != "" {
		for _, o := range n.table.Objects {
			if o.Kind == "counter" && o.Name == name {
				return o.Counter, nil
			}
		}
		return &ruleset.Counter{Name: name}, nil
	}
	c := new(ruleset.Counter)
	if string(b) == "null" {
		return c, nil
	}
	var anonymous struct{ Packets, Bytes uint64 }
	if err := json.Unmarshal(b, &anonymous); err != nil {
		return opaque("counter", b), nil // by an expression, of a newer nft
	}
	c.Packets, c.Bytes = anonymous.Packets, anonymous.Bytes
	return c, nil
}

// verdictOf reads the data of a map; None for what is no verdict.
func verdictOf(b json.RawMessage) (ruleset.Verdict, error) {
	var o map[string]json.RawMessage
	if json.Unmarshal(b, &o) != nil || len(o) != 1 {
		return ruleset.Verdict{}, nil
	}
	for name, content := range o {
		switch name {
		case "accept", "drop", "continue", "return", "jump", "goto":
			return verdictNamed(name, content)
		}
	}
	return ruleset.Verdict{}, nil
}

func verdictNamed(name string, b json.RawMessage) (ruleset.Verdict, error) {
	kinds := map[string]ruleset.Kind{"accept": ruleset.Accept, "drop": ruleset.Drop, "continue": ruleset.Continue,
		"return": ruleset.Return, "jump": ruleset.Jump, "goto": ruleset.Goto, "reject": ruleset.Reject}
	v := ruleset.Verdict{Kind: kinds[name]}
	switch v.Kind {
	case ruleset.Jump, ruleset.Goto:
		var to struct{ Target string }
		if err := json.Unmarshal(b, &to); err != nil {
			return v, err
		}
		if v.Chain = to.Target; v.Chain == "" {
			return v, errors.New("no target")
		}
	case ruleset.Reject:
		var how struct {
			Type string
			Expr any
		}
		if err := json.Unmarshal(b, &how); err != nil {
			return v, err
		}
		switch {
		case how.Type == "tcp reset":
			v.Detail = "with tcp reset"
		case how.Type != "":
			v.Detail = "with " + how.Type
			if how.Expr != nil {
				code, _ := expression(how.Expr)
				v.Detail += " " + code
			}
		}
	}
	return v, nil
}
