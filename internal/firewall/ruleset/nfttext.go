package ruleset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// ErrUnprintable reports a rule, set or object that has no text that its program would load.
var ErrUnprintable = errors.New("this version cannot write it")

// WriteNFT writes the tables as nft -f loads them and nft list ruleset prints them, with counters,
// comments and set elements. Handles are the kernel's choice and do not appear. A statement that
// only another program can print is an error that wraps [ErrUnprintable] and names the rule.
func WriteNFT(w io.Writer, r *Ruleset) error {
	b := bufio.NewWriter(w)
	var first error
	p := printer{w: b, failed: func(err error) {
		if first == nil {
			first = err
		}
	}}
	for i, t := range r.Tables {
		if i > 0 {
			p.line(0, "")
		}
		p.table(t)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	return first
}

type printer struct {
	w      *bufio.Writer
	failed func(error)
}

// line writes one line, indented by tabs.
func (p printer) line(depth int, format string, a ...any) {
	s := fmt.Sprintf(format, a...)
	if s != "" {
		s = strings.Repeat("\t", depth) + s
	}
	// The printer's buffer keeps the first error of its writer, which Flush returns.
	_, _ = p.w.WriteString(s + "\n")
}

func (p printer) table(t *Table) {
	p.line(0, "table %s %s {", t.Family, t.Name)
	if t.Comment != "" {
		p.line(1, "comment %s", quote(t.Comment))
	}
	if len(t.Flags) > 0 {
		p.line(1, "flags %s", strings.Join(t.Flags, ","))
	}
	blank := false
	space := func() {
		if blank {
			p.line(0, "")
		}
		blank = true
	}
	for _, o := range t.Objects {
		space()
		if o.Body == "" && o.Counter == nil {
			p.failed(fmt.Errorf("table %s %s: %s %s: %w", t.Family, t.Name, o.Kind, o.Name, ErrUnprintable))
		}
		p.line(1, "%s %s {", o.Kind, o.Name)
		if o.Counter != nil {
			p.line(2, "packets %d bytes %d", o.Counter.Packets, o.Counter.Bytes)
		} else {
			for _, l := range strings.Split(o.Body, "\n") {
				p.line(2, "%s", l)
			}
		}
		p.line(1, "}")
	}
	for _, s := range t.Sets {
		space()
		p.set(t, s)
	}
	for _, c := range t.Chains {
		space()
		p.chain(t, c)
	}
	p.line(0, "}")
}

func (p printer) set(t *Table, s *Set) {
	kind, types := "set", strings.Join(s.Types, " . ")
	if s.Data != "" {
		kind, types = "map", types+" : "+s.Data
	}
	if s.Unprintable {
		p.failed(fmt.Errorf("table %s %s: %s %s: %w", t.Family, t.Name, kind, s.Name, ErrUnprintable))
	}
	p.line(1, "%s %s {", kind, s.Name)
	p.line(2, "type %s", types)
	if s.Size > 0 {
		p.line(2, "size %d", s.Size)
	}
	if s.Policy != "" {
		p.line(2, "policy %s", s.Policy)
	}
	if len(s.Flags) > 0 {
		p.line(2, "flags %s", strings.Join(s.Flags, ","))
	}
	if s.Counting {
		p.line(2, "counter")
	}
	if s.Timeout > 0 {
		p.line(2, "timeout %s", span(s.Timeout))
	}
	if s.Merging {
		p.line(2, "auto-merge")
	}
	if s.Comment != "" {
		p.line(2, "comment %s", quote(s.Comment))
	}
	if len(s.Elements) > 0 {
		fields := s.Fields()
		for i, e := range s.Elements {
			begin, end := "\t     ", ","
			if i == 0 {
				begin = "elements = {"
			}
			if i == len(s.Elements)-1 {
				end = " }"
			}
			p.line(2, "%s %s%s", begin, e.text(fields, s.Data != ""), end)
		}
	}
	p.line(1, "}")
}

// Fields returns the fields that the set's elements are values of, by their types.
func (s *Set) Fields() []Field {
	fields := make([]Field, len(s.Types))
	for i, t := range s.Types {
		fields[i] = fieldOfType(t)
	}
	return fields
}

// TypeOf returns nft's type of a term.
func TypeOf(t Term) string {
	switch t.Field {
	case Source, Destination:
		if t.Header == "ip6" {
			return "ipv6_addr"
		}
		return "ipv4_addr"
	case SourcePort, DestinationPort:
		return "inet_service"
	case Protocol:
		return "inet_proto"
	case InInterface, OutInterface:
		if t.Header == "iif" || t.Header == "oif" {
			return "iface_index"
		}
		return "ifname"
	case State:
		return "ct_state"
	}
	return "nf_proto"
}

// fieldOfType returns a field that writes values of a type as nft does.
func fieldOfType(t string) Field {
	switch t {
	case "ipv4_addr", "ipv6_addr":
		return Source
	case "inet_service":
		return SourcePort
	case "inet_proto":
		return Protocol
	case "ifname", "iface_index":
		return InInterface
	case "ct_state":
		return State
	case "nf_proto":
		return Family
	}
	return 0
}

func (e Element) text(fields []Field, mapped bool) string {
	var parts []string
	for i, r := range e.Key {
		if i < len(fields) {
			parts = append(parts, fields[i].FormatRange(r))
		}
	}
	s := strings.Join(parts, " . ")
	if e.Counter != nil {
		s += " " + e.Counter.text()
	}
	if e.Timeout > 0 {
		s += " timeout " + span(e.Timeout)
	}
	if e.Expires > 0 {
		s += " expires " + span(e.Expires)
	}
	if e.Comment != "" {
		s += " comment " + quote(e.Comment)
	}
	if mapped {
		data := e.Data
		if e.Verdict.Kind != None {
			data = e.Verdict.Text()
		}
		s += " : " + data
	}
	return s
}

func (p printer) chain(t *Table, c *Chain) {
	p.line(1, "chain %s {", c.Name)
	if c.Comment != "" {
		p.line(2, "comment %s", quote(c.Comment))
	}
	if c.Hook != "" {
		device := ""
		switch {
		case len(c.Devices) == 1:
			device = " device " + strconv.Quote(c.Devices[0])
		case len(c.Devices) > 1:
			names := make([]string, len(c.Devices))
			for i, d := range c.Devices {
				names[i] = strconv.Quote(d)
			}
			device = " devices = { " + strings.Join(names, ", ") + " }"
		}
		policy := ""
		if c.Policy != None {
			policy = " policy " + c.Policy.String() + ";"
		}
		p.line(2, "type %s hook %s%s priority %s;%s", c.Type, c.Hook, device,
			PriorityName(t.Family, c.Hook, c.Priority), policy)
	}
	for _, r := range c.Rules {
		text, err := r.NFT()
		if err != nil {
			p.failed(fmt.Errorf("table %s %s chain %s: %w", t.Family, t.Name, c.Name, err))
		}
		p.line(2, "%s", text)
	}
	p.line(1, "}")
}

// priorities are the names of nft(8) for families other than bridge, with the hooks that nft knows
// them for.
var priorities = []struct {
	name  string
	value int
	hooks string
}{{"raw", -300, ""}, {"mangle", -150, ""}, {"dstnat", -100, "prerouting"}, {"filter", 0, ""},
	{"security", 50, ""}, {"srcnat", 100, "postrouting"}}

// PriorityName returns a chain's priority as nft writes it: a name, or a name with a distance up to
// ten, or a number.
func PriorityName(family, hook string, priority int) string {
	if family != "bridge" && family != "arp" && family != "netdev" {
		for _, n := range priorities {
			if n.hooks != "" && n.hooks != hook {
				continue
			}
			switch d := priority - n.value; {
			case d == 0:
				return n.name
			case d > 0 && d <= 10:
				return fmt.Sprintf("%s + %d", n.name, d)
			case d < 0 && d >= -10:
				return fmt.Sprintf("%s - %d", n.name, -d)
			}
		}
	}
	return strconv.Itoa(priority)
}

// NFT returns the rule as nft writes it. The error wraps [ErrUnprintable].
func (r *Rule) NFT() (string, error) {
	var parts []string
	var err error
	for _, s := range r.Statements {
		switch s := s.(type) {
		case Match:
			parts = append(parts, s.Text())
		case *Counter:
			parts = append(parts, s.text())
		case Verdict:
			parts = append(parts, s.Text())
			if s.Kind == Skip || s.Provisional {
				err = fmt.Errorf("rule %q: %s: %w", r.Comment, s.Kind, ErrUnprintable)
			}
		case VerdictMap:
			parts = append(parts, keyText(s.Key)+" vmap "+setText(s.Key, s.Set))
		case Opaque:
			parts = append(parts, s.Text)
			if s.Unprintable {
				err = fmt.Errorf("rule with %q, handle %d: %w", s.Text, r.Handle, ErrUnprintable)
			}
		}
	}
	if r.Comment != "" {
		parts = append(parts, "comment "+quote(r.Comment))
	}
	return strings.Join(parts, " "), err
}

func (c *Counter) text() string {
	if c.Name != "" {
		return "counter name " + quote(c.Name)
	}
	return fmt.Sprintf("counter packets %d bytes %d", c.Packets, c.Bytes)
}

// Text returns the verdict as nft writes it.
func (v Verdict) Text() string {
	switch v.Kind {
	case Jump, Goto:
		return v.Kind.String() + " " + v.Chain
	case Skip:
		return fmt.Sprintf("%s %d", v.Kind, v.Number)
	case Reject:
		return strings.TrimSpace("reject " + v.Detail)
	}
	return v.Kind.String()
}

// Text returns the match as nft writes it.
func (m Match) Text() string {
	op := " "
	if m.Negated {
		op = " != "
	}
	if m.Set != nil {
		return keyText(m.Key) + op + setText(m.Key, m.Set)
	}
	values := make([]string, len(m.Plain))
	for i, r := range m.Plain {
		values[i] = m.Key[0].Field.FormatRange(r)
	}
	s := strings.Join(values, ",")
	if len(m.Plain) > 1 && m.Key[0].Field != State {
		s = "{ " + strings.Join(values, ", ") + " }"
	}
	return keyText(m.Key) + op + s
}

func keyText(key []Term) string {
	parts := make([]string, len(key))
	for i, t := range key {
		parts[i] = t.String()
	}
	return strings.Join(parts, " . ")
}

// setText names a set, or writes an anonymous one out.
func setText(key []Term, s *Set) string {
	if s.Name != "" {
		return "@" + s.Name
	}
	fields := make([]Field, len(key))
	for i, t := range key {
		fields[i] = t.Field
	}
	parts := make([]string, len(s.Elements))
	for i, e := range s.Elements {
		parts[i] = e.text(fields, s.Data != "")
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// quote puts a text between quotes. nft knows no escapes, so a quote inside becomes an apostrophe,
// and the end of a line a space.
func quote(s string) string {
	return `"` + strings.NewReplacer(`"`, "'", "\n", " ").Replace(s) + `"`
}

// span writes a time as nft does: 1d2h3m4s, with milliseconds below a second.
func span(d time.Duration) string {
	var s string
	for _, u := range []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if n := d / u.size; n > 0 {
			s += fmt.Sprintf("%d%s", n, u.name)
			d -= n * u.size
		}
	}
	if s == "" {
		return "1ms"
	}
	return s
}
