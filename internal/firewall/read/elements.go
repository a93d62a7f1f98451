package read

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// set reads a named set or map.
func (p *listing) set(mapped bool) error {
	name, err := p.word()
	if err != nil {
		return err
	}
	if !p.take("{") {
		return p.fail("set %s: { is missing", name)
	}
	s := &ruleset.Set{Name: name}
	var elements []token
	for {
		p.ends()
		if p.take("}") {
			break
		}
		if p.next >= len(p.tokens) {
			return p.fail("set %s has no end", name)
		}
		line := p.replaced(p.line())
		if len(line) == 0 {
			return p.fail("set %s: a brace too many", name)
		}
		w := words{tokens: line[1:]}
		switch line[0].text {
		case "type", "typeof":
			key, data := line[1:], []token(nil)
			if i := slices.IndexFunc(key, func(t token) bool { return t.is(":") }); i >= 0 {
				key, data = key[:i], key[i+1:]
			}
			if s.Types, err = p.types(line[0].text, key); err != nil {
				return fmt.Errorf("set %s: %w", name, err)
			}
			if mapped {
				s.Data = p.raw(data)
			}
		case "flags":
			for _, t := range w.tokens {
				if !t.is(",") {
					s.Flags = append(s.Flags, t.text)
				}
			}
		case "timeout":
			s.Timeout = span(w.word())
		case "size":
			s.Size, _ = strconv.ParseUint(w.word(), 10, 64)
		case "policy":
			s.Policy = w.word()
		case "comment":
			s.Comment = w.word()
		case "auto-merge":
			s.Merging = true
		case "counter":
			s.Counting = true
		case "gc-interval", "limit", "last", "quota":
			s.Unprintable = true
		case "elements":
			w.take("=")
			if w.take("{") && len(w.tokens) > 0 {
				elements = w.tokens[:len(w.tokens)-1]
			}
		case "include":
			return fmt.Errorf("line %d: set %s: "+included, line[0].line, name)
		default:
			return fmt.Errorf("line %d: set %s: %.40q is unknown", line[0].line, name, line[0].text)
		}
	}
	if err := p.elements(s, s.Fields(), mapped, elements); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	s.Sort()
	p.table.Sets = append(p.table.Sets, s)
	return nil
}

// types returns the types of a set's key. Of typeof they are those of the expressions.
func (p *listing) types(how string, tokens []token) ([]string, error) {
	var all []string
	for len(tokens) > 0 {
		end := slices.IndexFunc(tokens, func(t token) bool { return t.is(".") })
		part := tokens
		if end >= 0 {
			part, tokens = tokens[:end], tokens[end+1:]
		} else {
			tokens = nil
		}
		if len(part) == 0 {
			return nil, p.fail("a type is missing")
		}
		if how == "type" {
			all = append(all, p.raw(part))
			continue
		}
		w := words{tokens: part}
		key, ok := w.key()
		if !ok || len(w.tokens) > 0 {
			all = append(all, "typeof "+p.raw(part))
			continue
		}
		all = append(all, ruleset.TypeOf(key))
	}
	return all, nil
}

// span reads a time as nft writes it: 1d2h3m4s, or seconds.
func span(s string) time.Duration {
	var sum time.Duration
	n := int64(0)
	for i := 0; i < len(s); i++ {
		unit := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}[s[i]]
		switch {
		case s[i] >= '0' && s[i] <= '9' && n < 1<<32:
			n = 10*n + int64(s[i]-'0')
		case strings.HasPrefix(s[i:], "ms"):
			return sum + time.Duration(n)*time.Millisecond
		case unit > 0:
			sum, n = sum+time.Duration(n)*unit, 0
		}
	}
	return sum + time.Duration(n)*time.Second
}

// elements reads the elements of a set.
func (p *listing) elements(s *ruleset.Set, fields []ruleset.Field, mapped bool, tokens []token) error {
	for len(tokens) > 0 {
		end, depth := 0, 0
		for ; end < len(tokens); end++ {
			if t := tokens[end]; t.is("{") {
				depth++
			} else if t.is("}") {
				depth--
			} else if depth == 0 && t.is(",") {
				break
			}
		}
		one := tokens[:end]
		tokens = tokens[min(end+1, len(tokens)):]
		w := words{tokens: one}
		if w.blank(); len(w.tokens) == 0 {
			continue
		}
		if err := p.element(s, fields, mapped, w); err != nil {
			return fmt.Errorf("line %d: %w", one[0].line, err)
		}
	}
	return nil
}

func (p *listing) element(s *ruleset.Set, fields []ruleset.Field, mapped bool, w words) error {
	var e ruleset.Element
	key := w.tokens
	at := slices.IndexFunc(key, func(t token) bool {
		return t.is(":") || t.is("timeout") || t.is("expires") || t.is("counter") || t.is("comment")
	})
	if at < 0 {
		at = len(key)
	}
	rest := words{tokens: key[at:]}
	known := true
	if key = key[:at]; len(key) == 1 && key[0].is("*") {
		known = false
	} else {
		for i, f := range fields {
			if i > 0 {
				if len(key) == 0 || !key[0].is(".") {
					known = false
					break
				}
				key = key[1:]
			}
			r, n, ok := rangeText(f, key)
			if !ok {
				known = false
				break
			}
			e.Key, key = append(e.Key, r), key[n:]
		}
		known = known && words{tokens: key}.done()
	}
	for rest.blank(); len(rest.tokens) > 0; rest.blank() {
		switch {
		case rest.take("timeout"):
			e.Timeout = span(rest.word())
		case rest.take("expires"):
			e.Expires = span(rest.word())
		case rest.take("comment"):
			e.Comment = rest.word()
		case rest.take("counter"):
			e.Counter = new(ruleset.Counter)
			e.Counter.Packets, e.Counter.Bytes = rest.counted()
		case mapped && rest.take(":"):
			v, ok := rest.verdict()
			if e.Verdict = v; !ok {
				e.Data = p.raw(rest.tokens)
				rest.tokens = nil
			}
		default:
			return fmt.Errorf("%.40q in an element", rest.tokens[0].text)
		}
	}
	if !known {
		s.Unprintable = true
		return nil
	}
	s.Elements = append(s.Elements, e)
	return nil
}

// rangeText reads a value, a prefix or a range, and returns how many tokens it has.
func rangeText(f ruleset.Field, tokens []token) (ruleset.Range, int, bool) {
	if len(tokens) == 0 || f == 0 {
		return ruleset.Range{}, 0, false
	}
	text := tokens[0].text
	if r, err := valueOf(f, text); err == nil {
		// Older versions write a range with blanks.
		if len(tokens) > 2 && tokens[1].is("-") {
			if last, err := valueOf(f, tokens[2].text); err == nil && r.First.Compare(last.Last) <= 0 {
				return ruleset.Range{First: r.First, Last: last.Last}, 3, true
			}
			return r, 0, false
		}
		return r, 1, true
	}
	for i := range len(text) {
		if text[i] != '-' {
			continue
		}
		first, err := valueOf(f, text[:i])
		last, errLast := valueOf(f, text[i+1:])
		if err == nil && errLast == nil {
			return ruleset.Range{First: first.First, Last: last.Last}, 1, first.First.Compare(last.Last) <= 0
		}
	}
	return ruleset.Range{}, 0, false
}
