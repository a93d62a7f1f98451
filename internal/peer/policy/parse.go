package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
)

const (
	maxBytes = 64 << 10
	maxItems = 1000
)

// ErrFormat reports a file that is not a policy; the text names the line.
var ErrFormat = errors.New("not a policy")

// entry is one key with its words.
type entry struct {
	line  int
	words []string
	list  bool
}

// Parse reads a policy. What the text does not mention is as in Default. Every error is an
// ErrFormat.
func Parse(data []byte) (Policy, error) {
	p := Default()
	entries, err := scan(data)
	if err != nil {
		return Policy{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if v, ok := entries["version"]; !ok || v.list || v.words[0] != "1" {
		return Policy{}, fmt.Errorf("%w: want the line \"version: 1\"", ErrFormat)
	}
	for _, key := range keysOf(entries) {
		e := entries[key]
		set, known := fields[key]
		if !known {
			return Policy{}, fmt.Errorf("%w: line %d: unknown key %q", ErrFormat, e.line, key)
		}
		if e.list != lists[key] {
			return Policy{}, fmt.Errorf("%w: line %d: %s: want %s", ErrFormat, e.line, key,
				map[bool]string{true: "a list", false: "one word"}[lists[key]])
		}
		if err := set(&p, e.words); err != nil {
			return Policy{}, fmt.Errorf("%w: line %d: %s: %w", ErrFormat, e.line, key, err)
		}
	}
	return p, nil
}

// keysOf returns the keys in the order of their lines.
func keysOf(entries map[string]entry) []string {
	byLine := make(map[int]string, len(entries))
	last := 0
	for k, e := range entries {
		byLine[e.line] = k
		last = max(last, e.line)
	}
	var keys []string
	for i := range last + 1 {
		if k, ok := byLine[i]; ok {
			keys = append(keys, k)
		}
	}
	return keys
}

var lists = map[string]bool{"tests.peers": true, "changes.allow": true, "changes.deny": true}

var fields = map[string]func(*Policy, []string) error{
	"version":     func(*Policy, []string) error { return nil },
	"kill_switch": func(p *Policy, w []string) (err error) { p.KillSwitch, err = onOff(w[0]); return err },
	"tests.max_share_ratio": func(p *Policy, w []string) (err error) {
		p.Tests.MaxShareRatio, err = strconv.ParseFloat(w[0], 64)
		if err != nil || !(p.Tests.MaxShareRatio >= 0 && p.Tests.MaxShareRatio <= 1) {
			return fmt.Errorf("%q: want a number from 0 to 1", w[0])
		}
		return nil
	},
	"tests.link_rate": func(p *Policy, w []string) error {
		rate, err := unit.ParseBitRate(w[0])
		if err != nil || rate < 1e6 {
			return fmt.Errorf("%q: want a rate from 1M on, such as 10G", w[0])
		}
		p.Tests.LinkRate = float64(rate)
		return nil
	},
	"tests.max_seconds_per_hour": func(p *Policy, w []string) (err error) {
		p.Tests.MaxSecondsPerHour, err = number(w[0], 0, 3600)
		return err
	},
	"tests.hours":   func(p *Policy, w []string) (err error) { p.Tests.Hours, err = hours(w[0]); return err },
	"tests.peers":   func(p *Policy, w []string) error { p.Tests.Peers = w; return peers(w) },
	"changes.allow": func(p *Policy, w []string) (err error) { p.Changes.Allow, err = patterns(w); return err },
	"changes.deny":  func(p *Policy, w []string) (err error) { p.Changes.Deny, err = patterns(w); return err },
	"changes.max_class": func(p *Policy, w []string) (err error) {
		p.Changes.MaxClass, err = knob.ParseDisturbance(w[0])
		return err
	},
	"changes.max_deadline": func(p *Policy, w []string) (err error) {
		p.Changes.MaxDeadline, err = time.ParseDuration(w[0])
		if err != nil || p.Changes.MaxDeadline < order.MinDeadline || p.Changes.MaxDeadline > order.MaxDeadline {
			return fmt.Errorf("%q: want %v to %v", w[0], order.MinDeadline, order.MaxDeadline)
		}
		return nil
	},
	"changes.hours":   func(p *Policy, w []string) (err error) { p.Changes.Hours, err = hours(w[0]); return err },
	"changes.persist": func(p *Policy, w []string) (err error) { p.Changes.Persist, err = onOff(w[0]); return err },
	"changes.signatures": func(p *Policy, w []string) (err error) {
		p.Changes.Signatures, err = number(w[0], 1, 4)
		return err
	},
	"changes.signatures_disturbing": func(p *Policy, w []string) (err error) {
		p.Changes.SignaturesDisturbing, err = number(w[0], 1, 4)
		return err
	},
}

func onOff(s string) (bool, error) {
	switch s {
	case "on", "true":
		return true, nil
	case "off", "false":
		return false, nil
	}
	return false, fmt.Errorf("%q: want on or off", s)
}

func number(s string, low, high int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high || strconv.Itoa(n) != s {
		return 0, fmt.Errorf("%q: want a number from %d to %d", s, low, high)
	}
	return n, nil
}

func hours(s string) (Hours, error) {
	if s == "any" {
		return Hours{}, nil
	}
	from, to, ok := strings.Cut(s, "-")
	a, errA := minute(from)
	b, errB := minute(to)
	if !ok || errA != nil || errB != nil || a == b {
		return Hours{}, fmt.Errorf("%q: want any, or a window such as 22:00-06:00", s)
	}
	return Hours{a, b}, nil
}

func minute(s string) (int, error) {
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != 5 {
		return 0, errors.New("want hours and minutes")
	}
	return t.Hour()*60 + t.Minute(), nil
}

func peers(words []string) error {
	for _, w := range words {
		if group, ok := strings.CutPrefix(w, "group:"); ok && order.ValidName(group) {
			continue
		}
		if _, err := prefixOf(w); err != nil {
			return fmt.Errorf("%q: want group:NAME, an address or a prefix", w)
		}
	}
	return nil
}

// patterns refuses what matches no knob of the catalogue: a misspelt pattern in deny would protect
// nothing.
func patterns(words []string) ([]knob.ID, error) {
	ids := make([]knob.ID, 0, len(words))
	for _, w := range words {
		found := false
		for _, d := range knob.Catalogue().Own() {
			if found = fits(d.Pattern, knob.ID(w)) || knob.Overlap(string(d.Pattern), w); found {
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("%q matches no knob; see `linerate knobs`", w)
		}
		ids = append(ids, knob.ID(w))
	}
	return ids, nil
}

// scan reads the lines into keys with their section, "changes.allow".
func scan(data []byte) (map[string]entry, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("more than %d bytes", maxBytes)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	entries := make(map[string]entry)
	sections := make(map[string]bool)
	section, open := "", "" // open: the key whose list continues with dashes
	n := 0
	for text := range strings.Lines(string(data)) {
		n++
		body, indent, err := strip(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if body == "" {
			continue
		}
		if item, ok := strings.CutPrefix(body, "- "); ok && open != "" && indent == 4 {
			word, err := scalar(strings.TrimSpace(item))
			e := entries[open]
			if err == nil && len(e.words) == maxItems {
				err = fmt.Errorf("more than %d items", maxItems)
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			e.words = append(e.words, word)
			entries[open] = e
			continue
		}
		if open != "" && len(entries[open].words) == 0 {
			return nil, fmt.Errorf("line %d: %s has no items", n, open)
		}
		open = ""
		key, rest, ok := strings.Cut(body, ":")
		if !ok || !plainKey(key) || rest != "" && rest[0] != ' ' {
			return nil, fmt.Errorf("line %d: want KEY: WORD", n)
		}
		rest = strings.TrimSpace(rest)
		switch {
		case indent == 0 && rest == "":
			if sections[key] {
				return nil, fmt.Errorf("line %d: %s: a second time", n, key)
			}
			section, sections[key] = key, true
			continue
		case indent == 0:
			section = ""
		case indent != 2 || section == "":
			return nil, fmt.Errorf("line %d: want no blanks before a section, two before its keys, four before items", n)
		}
		name := key
		if section != "" {
			name = section + "." + key
		}
		if _, twice := entries[name]; twice || sections[name] {
			return nil, fmt.Errorf("line %d: %s: a second time", n, name)
		}
		e := entry{line: n}
		switch {
		case rest == "":
			open, e.list = name, true
		case rest[0] == '[':
			e.list = true
			e.words, err = flow(rest)
		default:
			e.words = make([]string, 1)
			e.words[0], err = scalar(rest)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		entries[name] = e
	}
	if open != "" && len(entries[open].words) == 0 {
		return nil, fmt.Errorf("%s has no items", open)
	}
	for s := range sections {
		if s != "tests" && s != "changes" {
			return nil, fmt.Errorf("unknown section %q", s)
		}
	}
	return entries, nil
}

// strip returns a line without its end, indentation and comment.
func strip(text string) (body string, indent int, err error) {
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff {
			return "", 0, fmt.Errorf("%q is not allowed", r)
		}
	}
	indent = len(text) - len(strings.TrimLeft(text, " "))
	body = text[indent:]
	quote := rune(0)
	previous := ' '
	for i, r := range body {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case (r == '"' || r == '\'') && strings.ContainsRune(" [,", previous):
			quote = r
		case r == '#' && previous == ' ':
			return strings.TrimRight(body[:i], " "), indent, nil
		}
		previous = r
	}
	return strings.TrimRight(body, " "), indent, nil
}

func plainKey(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && r != '_' {
			return false
		}
	}
	return s != ""
}

// flow reads [a, "b"].
func flow(s string) ([]string, error) {
	inner, ok := strings.CutSuffix(s[1:], "]")
	if !ok {
		return nil, errors.New("a list in brackets ends on its line with ]")
	}
	words := []string{}
	if strings.TrimSpace(inner) == "" {
		return words, nil
	}
	for part := range strings.SplitSeq(inner, ",") {
		w, err := scalar(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if words = append(words, w); len(words) > maxItems {
			return nil, fmt.Errorf("more than %d items", maxItems)
		}
	}
	return words, nil
}

// scalar reads one plain or quoted word.
func scalar(s string) (string, error) {
	if s == "" {
		return "", errors.New("a word is missing")
	}
	if q := s[0]; q == '"' || q == '\'' {
		if len(s) < 3 || s[len(s)-1] != q || strings.ContainsAny(s[1:len(s)-1], `"'\,`) {
			return "", fmt.Errorf("%s: want one word in quotes, without quotes, commas and backslashes in it", s)
		}
		return s[1 : len(s)-1], nil
	}
	first := s[0]
	plain := first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z' || first >= '0' && first <= '9'
	for _, r := range s {
		plain = plain && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-/:*+", r))
	}
	if !plain || s[len(s)-1] == ':' {
		return "", fmt.Errorf("%.70q: put it in quotes", s)
	}
	return s, nil
}
