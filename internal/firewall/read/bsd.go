package read

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// BSDHook is the only hook of rules of ipfw and pf: they see a packet when it comes in and when it
// goes out, with the same rules.
const BSDHook = "in, out"

// bsdRule is a rule of ipfw or pf being read.
type bsdRule struct {
	words      []string
	statements []ruleset.Statement
	conditions []ruleset.Statement
	protocol   string
}

func (b *bsdRule) peek() string {
	if len(b.words) == 0 {
		return ""
	}
	return b.words[0]
}

// next takes a word, which may be empty: pf prints an empty label as "".
func (b *bsdRule) next() string {
	w := b.peek()
	if len(b.words) > 0 {
		b.words = b.words[1:]
	}
	return w
}

func (b *bsdRule) taken(word string) bool {
	if b.peek() != word {
		return false
	}
	b.next()
	return true
}

func (b *bsdRule) condition(s ruleset.Statement) { b.conditions = append(b.conditions, s) }

// unknown keeps a condition as it was printed.
func (b *bsdRule) unknown(text string, e ruleset.Effect) {
	b.condition(ruleset.Opaque{Text: text, Effect: e, Conditional: true, Unprintable: true})
}

// setProtocol adds the match on the protocol of ipfw or pf.
func (b *bsdRule) setProtocol(word string, negated bool) {
	family := uint64(0)
	switch word {
	case "ip", "all", "any", "ip46":
		return
	case "ip4", "ipv4", "inet":
		family = ruleset.IPv4
	case "ip6", "ipv6", "inet6":
		family = ruleset.IPv6
	}
	if family != 0 {
		b.condition(ruleset.Match{Key: []ruleset.Term{{Field: ruleset.Family, Header: "meta"}}, Negated: negated,
			Plain: []ruleset.Range{ruleset.One(ruleset.Number(family))}})
		return
	}
	r, err := valueOf(ruleset.Protocol, word)
	if err != nil {
		b.unknown("proto "+word, ruleset.EffectNone)
		return
	}
	if !negated {
		b.protocol = word
	}
	b.condition(ruleset.Match{Key: []ruleset.Term{{Field: ruleset.Protocol, Header: "meta"}}, Negated: negated,
		Plain: []ruleset.Range{r}})
}

// portHeader is the header that ports are read from.
func (b *bsdRule) portHeader() string {
	if b.protocol == "tcp" || b.protocol == "udp" || b.protocol == "sctp" {
		return b.protocol
	}
	return "th"
}

// addresses adds a match on addresses, as ipfw and pf name them; words that are no address are
// kept.
func (b *bsdRule) addresses(f ruleset.Field, words []string, negated bool) {
	if slices.Contains(words, "any") || slices.Contains(words, "all") {
		return
	}
	m := ruleset.Match{Key: []ruleset.Term{{Field: f, Header: "ip"}}, Negated: negated}
	for _, w := range words {
		r, err := xtAddressRange(w)
		if err != nil {
			side := "from "
			if f == ruleset.Destination {
				side = "to "
			}
			effect := ruleset.EffectNone
			if strings.Contains(w, "me") || strings.HasPrefix(w, "(") {
				effect = ruleset.EffectRoute // the addresses that the host has now
			}
			b.unknown(side+strings.Join(words, ","), effect)
			return
		}
		if !r.First.Addr().Is4() {
			m.Key[0].Header = "ip6"
		}
		m.Plain = append(m.Plain, r)
	}
	b.condition(m)
}

// ports adds a match on ports.
func (b *bsdRule) ports(f ruleset.Field, text string, negated bool) {
	m := ruleset.Match{Key: []ruleset.Term{{Field: f, Header: b.portHeader()}}, Negated: negated}
	for w := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(w, "-")
		if !ok {
			to = from
		}
		a, errA := valueOf(ruleset.SourcePort, from)
		z, errZ := valueOf(ruleset.SourcePort, to)
		if errA != nil || errZ != nil || a.First.Compare(z.Last) > 0 {
			b.unknown(fmt.Sprintf("%s %s", f, text), ruleset.EffectNone)
			return
		}
		m.Plain = append(m.Plain, ruleset.Range{First: a.First, Last: z.Last})
	}
	b.condition(m)
}

func (b *bsdRule) interfaceIs(f ruleset.Field, name string, negated bool) {
	header := "iifname"
	if f == ruleset.OutInterface {
		header = "oifname"
	}
	b.condition(ruleset.Match{Key: []ruleset.Term{{Field: f, Header: header}}, Negated: negated,
		Plain: []ruleset.Range{ruleset.Names(name)}})
}

// isPorts reports whether a word is a list of ports.
func isPorts(w string) bool {
	if w == "" {
		return false
	}
	for p := range strings.SplitSeq(w, ",") {
		for one := range strings.SplitSeq(p, "-") {
			if _, err := valueOf(ruleset.SourcePort, one); err != nil {
				return false
			}
		}
	}
	return true
}

// IPFW reads what ipfw -a list (or ipfw show) prints.
func IPFW(r io.Reader) (*ruleset.Ruleset, error) {
	c := &ruleset.Chain{Name: "rules", Type: "filter", Hook: BSDHook, Policy: ruleset.Drop}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if words[0] == "##" {
			break // dynamic rules follow, which are states
		}
		rule, err := ipfwRule(words, strings.TrimSpace(lines.Text()))
		if err != nil {
			return nil, fmt.Errorf("read rules of ipfw: line %d: %w", n, err)
		}
		if k := len(c.Rules); k > 0 && c.Rules[k-1].Number > rule.Number {
			return nil, fmt.Errorf("read rules of ipfw: line %d: rule %d after rule %d", n, rule.Number, c.Rules[k-1].Number)
		}
		c.Rules = append(c.Rules, rule)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read rules of ipfw: %w", err)
	}
	if len(c.Rules) == 0 {
		return nil, errors.New("read rules of ipfw: no rule in the text")
	}
	// The last rule is the default one, which the kernel keeps: a list without it was cut.
	if last := c.Rules[len(c.Rules)-1]; last.Number != 65535 {
		return nil, fmt.Errorf("read rules of ipfw: rule 65535 is missing: %w", errHalf)
	}
	return &ruleset.Ruleset{Program: ruleset.IPFW,
		Tables: []*ruleset.Table{{Family: "inet", Name: "ipfw", Chains: []*ruleset.Chain{c}}}}, nil
}

func ipfwRule(words []string, text string) (*ruleset.Rule, error) {
	number, err := strconv.ParseUint(words[0], 10, 16)
	if err != nil || len(words) < 4 {
		return nil, fmt.Errorf("%.60q is no rule with counters", text)
	}
	packets, errP := strconv.ParseUint(words[1], 10, 64)
	bytes, errB := strconv.ParseUint(words[2], 10, 64)
	if errP != nil || errB != nil {
		return nil, fmt.Errorf("rule %d has no counters: list the rules with ipfw -a list", number)
	}
	rule := &ruleset.Rule{Number: int(number), Text: words[0] + " " + strings.Join(words[3:], " ")}
	b := &bsdRule{words: words[3:]}
	if i := slices.Index(b.words, "//"); i >= 0 {
		rule.Comment = strings.Join(b.words[i+1:], " ")
		b.words = b.words[:i]
	}
	if b.taken("set") {
		b.next()
	}
	if b.taken("prob") {
		b.unknown("prob "+b.next(), ruleset.EffectTime)
	}
	action, err := ipfwAction(b)
	if err != nil {
		return nil, fmt.Errorf("rule %d: %w", number, err)
	}
	if b.taken("log") && b.taken("logamount") {
		b.next()
	}
	ipfwBody(b)
	rule.Statements = append(rule.Statements, b.conditions...)
	rule.Statements = append(rule.Statements, &ruleset.Counter{Packets: packets, Bytes: bytes})
	if strings.Contains(rule.Text, " log ") {
		rule.Statements = append(rule.Statements, ruleset.Opaque{Text: "log", Effect: ruleset.EffectLog, Unprintable: true})
	}
	rule.Statements = append(rule.Statements, b.statements...)
	if action != nil {
		rule.Statements = append(rule.Statements, action)
	}
	return rule, nil
}

func ipfwAction(b *bsdRule) (ruleset.Statement, error) {
	word := b.next()
	switch word {
	case "allow", "accept", "pass", "permit":
		return ruleset.Verdict{Kind: ruleset.Accept}, nil
	case "deny", "drop":
		return ruleset.Verdict{Kind: ruleset.Drop}, nil
	case "reject", "reset", "reset6":
		return ruleset.Verdict{Kind: ruleset.Reject}, nil
	case "unreach", "unreach6":
		return ruleset.Verdict{Kind: ruleset.Reject, Detail: b.next()}, nil
	case "count":
		return nil, nil //nolint:nilnil // a rule that only counts has no action
	case "skipto":
		to := b.next()
		n, err := strconv.ParseUint(to, 10, 16)
		if err != nil {
			return ruleset.Opaque{Text: "skipto " + to, Effect: ruleset.EffectOther, Unprintable: true}, nil
		}
		return ruleset.Verdict{Kind: ruleset.Skip, Number: int(n)}, nil
	case "check-state":
		if strings.HasPrefix(b.peek(), ":") {
			b.next()
		}
		b.words = nil
		b.unknown("check-state", ruleset.EffectTrack)
		return ruleset.Verdict{Kind: ruleset.Accept}, nil
	case "divert", "tee", "pipe", "queue", "nat", "fwd", "netgraph", "ngtee", "setfib", "setdscp",
		"call", "tag", "untag", "altq", "setmark":
		effects := map[string]ruleset.Effect{"nat": ruleset.EffectNAT, "divert": ruleset.EffectQueue,
			"pipe": ruleset.EffectQueue, "queue": ruleset.EffectQueue, "setfib": ruleset.EffectMark,
			"setdscp": ruleset.EffectMark, "tag": ruleset.EffectMark}
		effect := effects[word]
		if effect == "" {
			effect = ruleset.EffectOther
		}
		// With one_pass, the default, a pipe, a queue and nat end the rules.
		ends := word == "fwd" || word == "pipe" || word == "queue" || word == "nat" || word == "divert" || word == "netgraph"
		return ruleset.Opaque{Text: word + " " + b.next(), Effect: effect, Ends: ends, Unprintable: true}, nil
	case "reass", "return":
		return ruleset.Opaque{Text: word, Effect: ruleset.EffectOther, Unprintable: true}, nil
	}
	return nil, fmt.Errorf("action %.40q is not known", word)
}

// ipfwBody reads protocol, addresses, ports and options.
func ipfwBody(b *bsdRule) {
	b.setProtocol(b.next(), false)
	for _, side := range []struct {
		word          string
		address, port ruleset.Field
	}{{"from", ruleset.Source, ruleset.SourcePort}, {"to", ruleset.Destination, ruleset.DestinationPort}} {
		if !b.taken(side.word) {
			continue
		}
		negated := b.taken("not")
		b.addresses(side.address, ipfwAddress(b), negated)
		if isPorts(b.peek()) {
			b.ports(side.port, b.next(), false)
		}
	}
	direction := ""
	for len(b.words) > 0 {
		negated := b.taken("not")
		w := b.next()
		prefix := ""
		if negated {
			prefix = "not "
		}
		switch w {
		case "in":
			direction = "in"
			b.condition(ruleset.Match{Key: []ruleset.Term{{Field: ruleset.OutInterface, Header: "oifname"}}, Negated: negated,
				Plain: []ruleset.Range{ruleset.One(ruleset.Value{})}})
		case "out":
			direction = "out"
			b.condition(ruleset.Match{Key: []ruleset.Term{{Field: ruleset.OutInterface, Header: "oifname"}}, Negated: !negated,
				Plain: []ruleset.Range{ruleset.One(ruleset.Value{})}})
		case "via", "recv", "xmit":
			name := b.next()
			switch {
			case strings.ContainsAny(strings.TrimSuffix(name, "*"), "(.:?[*"):
				b.unknown(prefix+w+" "+name, ruleset.EffectNone)
			case w == "recv" || w == "via" && direction == "in":
				b.interfaceIs(ruleset.InInterface, name, negated)
			case w == "xmit" || direction == "out":
				b.interfaceIs(ruleset.OutInterface, name, negated)
			default:
				b.unknown(prefix+"via "+name, ruleset.EffectNone)
			}
		case "dst-port":
			b.ports(ruleset.DestinationPort, b.next(), negated)
		case "src-port":
			b.ports(ruleset.SourcePort, b.next(), negated)
		case "proto":
			b.setProtocol(b.next(), negated)
		case "keep-state", "limit", "record-state", "defer-immediate-action":
			text := w
			if w == "limit" {
				text += " " + b.next() + " " + b.next()
			}
			if strings.HasPrefix(b.peek(), ":") {
				text += " " + b.next()
			}
			b.statements = append(b.statements, ruleset.Opaque{Text: text, Effect: ruleset.EffectTrack, Unprintable: true})
		case "established", "setup", "frag", "diverted", "antispoof", "verrevpath":
			b.unknown(prefix+w, ruleset.EffectNone)
		default:
			// An option with the value that follows it, if one does, or a block: { a or b }.
			text := prefix + w
			for len(b.words) > 0 && (w == "{" && !strings.HasSuffix(text, " }") || w != "{" &&
				!slices.Contains([]string{"in", "out", "via", "recv", "xmit", "not", "keep-state", "established"}, b.peek())) {
				text += " " + b.next()
			}
			b.unknown(text, ruleset.EffectOther)
		}
	}
}

// ipfwAddress reads an address, a list or a block { a or b }.
func ipfwAddress(b *bsdRule) []string {
	w := b.next()
	if w != "{" {
		return strings.Split(w, ",")
	}
	var all []string
	for len(b.words) > 0 {
		switch w := b.next(); w {
		case "}":
			return all
		case "or":
		default:
			all = append(all, w)
		}
	}
	return all
}
