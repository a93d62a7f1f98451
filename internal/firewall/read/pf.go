package read

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// PF reads what pfctl -vvsr prints: each rule with its number, followed by its counters.
func PF(r io.Reader) (*ruleset.Ruleset, error) {
	c := &ruleset.Chain{Name: "rules", Type: "filter", Hook: BSDHook, Policy: ruleset.Accept, LastMatch: true}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	var counter *ruleset.Counter
	counted := true
	for n := 1; lines.Scan(); n++ {
		s := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(s, "@"):
			if !counted {
				return nil, fmt.Errorf("read rules of pf: line %d: the rule before has no counters: list the rules "+
					"with pfctl -vvsr", n)
			}
			rule, err := pfRule(s)
			if err != nil {
				return nil, fmt.Errorf("read rules of pf: line %d: %w", n, err)
			}
			counter, counted = rule.Counters()[0], false
			c.Rules = append(c.Rules, rule)
		case strings.HasPrefix(s, "[ Evaluations:") && len(c.Rules) > 0:
			values := pfValues(s)
			c.Rules[len(c.Rules)-1].Evaluations = values["Evaluations"]
			counter.Packets, counter.Bytes = values["Packets"], values["Bytes"]
			counted = true
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read rules of pf: %w", err)
	}
	switch {
	case len(c.Rules) == 0:
		return nil, errors.New("read rules of pf: no rule with a number in the text: list the rules with pfctl -vvsr")
	case !counted:
		return nil, fmt.Errorf("read rules of pf: the last rule has no counters: %w", errHalf)
	}
	return &ruleset.Ruleset{Program: ruleset.PF,
		Tables: []*ruleset.Table{{Family: "inet", Name: "pf", Chains: []*ruleset.Chain{c}}}}, nil
}

// pfValues reads "[ Evaluations: 10 Packets: 5 … ]".
func pfValues(s string) map[string]uint64 {
	values := make(map[string]uint64)
	words := strings.Fields(s)
	for i := 0; i+1 < len(words); i++ {
		if name, ok := strings.CutSuffix(words[i], ":"); ok {
			if n, err := strconv.ParseUint(words[i+1], 10, 64); err == nil {
				values[name] = n
			}
		}
	}
	return values
}

func pfRule(s string) (*ruleset.Rule, error) {
	words, err := split(s)
	if err != nil {
		return nil, err
	}
	number, _, _ := strings.Cut(words[0][1:], "(") // older versions print a checksum: @12(1000)
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || len(words) < 2 {
		return nil, fmt.Errorf("%.60q is no rule", s)
	}
	b := &bsdRule{words: words[1:]}
	v := ruleset.Verdict{Provisional: true}
	switch action := b.next(); action {
	case "pass":
		v.Kind = ruleset.Accept
	case "block":
		v.Kind = ruleset.Drop
		for strings.HasPrefix(b.peek(), "return") {
			v.Kind = ruleset.Reject
			b.next()
		}
		b.taken("drop")
	case "match", "scrub", "anchor":
		b.statements = append(b.statements, ruleset.Opaque{Text: action, Effect: ruleset.EffectOther, Unprintable: true})
	default:
		return nil, fmt.Errorf("action %.40q is not known", action)
	}
	if strings.HasSuffix(s, "{") {
		return nil, errors.New("an anchor with rules of its own: list them with pfctl -a NAME -vvsr")
	}
	rule := &ruleset.Rule{Number: int(n), Text: s}
	for len(b.words) > 0 {
		pfWord(b, &v, rule)
	}
	rule.Statements = append(rule.Statements, b.conditions...)
	rule.Statements = append(rule.Statements, new(ruleset.Counter))
	rule.Statements = append(rule.Statements, b.statements...)
	if v.Kind != ruleset.None {
		rule.Statements = append(rule.Statements, v)
	}
	return rule, nil
}

// pfWord reads one word with its values.
func pfWord(b *bsdRule, v *ruleset.Verdict, rule *ruleset.Rule) {
	switch w := b.next(); w {
	case "in", "out":
		b.condition(ruleset.Match{Key: []ruleset.Term{{Field: ruleset.OutInterface, Header: "oifname"}}, Negated: w == "out",
			Plain: []ruleset.Range{ruleset.One(ruleset.Value{})}})
	case "quick":
		v.Provisional = false
	case "log":
		b.statements = append(b.statements, ruleset.Opaque{Text: w, Effect: ruleset.EffectLog, Unprintable: true})
		b.parentheses()
	case "all":
	case "on":
		negated := b.taken("!")
		name := b.next()
		prefix := ""
		if negated {
			prefix = "! "
		}
		if name == "rdomain" {
			name += " " + b.next()
		}
		// The interface is the one of the packet's direction, which the words before have.
		field := ruleset.InInterface
		for _, c := range b.conditions {
			if m, ok := c.(ruleset.Match); ok && m.Key[0].Field == ruleset.OutInterface && m.Negated {
				field = ruleset.OutInterface
			}
		}
		// A name that does not end in a digit may be that of a group of interfaces, like egress.
		if last := name[max(len(name)-1, 0):]; len(b.conditions) == 0 || strings.Contains(name, " ") ||
			strings.Trim(last, "0123456789") != "" {
			b.unknown("on "+prefix+name, ruleset.EffectNone)
			return
		}
		b.interfaceIs(field, name, negated)
	case "inet", "inet6":
		b.setProtocol(w, false)
	case "proto":
		b.setProtocol(b.next(), false)
	case "from", "to":
		address, port := ruleset.Source, ruleset.SourcePort
		if w == "to" {
			address, port = ruleset.Destination, ruleset.DestinationPort
		}
		negated := b.taken("!")
		from := b.next()
		if b.taken("-") {
			from += "-" + b.next()
		}
		b.addresses(address, []string{from}, negated)
		if b.taken("port") {
			pfPorts(b, port)
		}
	case "label":
		rule.Comment = b.next()
	case "flags", "icmp-type", "icmp6-type", "code", "user", "group", "os", "tos", "tagged", "received-on", "prio",
		"max-pkt-rate", "!":
		b.unknown(w+" "+b.next(), ruleset.EffectNone)
	case "keep", "modulate", "synproxy":
		b.statements = append(b.statements, ruleset.Opaque{Text: w + " " + b.next(),
			Effect: ruleset.EffectTrack, Unprintable: true})
		b.parentheses()
	case "no":
		b.next() // no state
	case "probability":
		b.unknown(w+" "+b.next(), ruleset.EffectTime)
	case "fragment", "allow-opts":
		b.unknown(w, ruleset.EffectNone)
	default:
		b.statements = append(b.statements, ruleset.Opaque{Text: w, Effect: ruleset.EffectOther, Unprintable: true})
	}
}

// pfPorts reads what follows the word port: a comparison, a range or an interval.
func pfPorts(b *bsdRule, f ruleset.Field) {
	op := b.next()
	if from, to, ok := strings.Cut(op, ":"); ok {
		b.ports(f, from+"-"+to, false)
		return
	}
	value := b.next()
	n, err := strconv.ParseUint(value, 10, 16)
	switch {
	case op == "=":
		b.ports(f, value, false)
	case op == "!=":
		b.ports(f, value, true)
	case err == nil && op == ">" && n < 65535:
		b.ports(f, fmt.Sprintf("%d-65535", n+1), false)
	case err == nil && op == ">=":
		b.ports(f, fmt.Sprintf("%d-65535", n), false)
	case err == nil && op == "<" && n > 0:
		b.ports(f, fmt.Sprintf("0-%d", n-1), false)
	case err == nil && op == "<=":
		b.ports(f, fmt.Sprintf("0-%d", n), false)
	default:
		b.unknown(fmt.Sprintf("%s %s %s", f, op, value), ruleset.EffectNone)
	}
}

// parentheses takes options in parentheses, (all, to pflog1), if they follow.
func (b *bsdRule) parentheses() {
	if strings.HasPrefix(b.peek(), "(") {
		for len(b.words) > 0 && !strings.HasSuffix(b.next(), ")") {
			continue
		}
	}
}
