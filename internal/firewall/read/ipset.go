package read

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// IPSet reads what ipset save prints. Sets of kinds that the model does not know (lists of sets,
// MAC addresses, marks) keep their name and no elements, and are unprintable.
func IPSet(r io.Reader) ([]*ruleset.Set, error) {
	var sets []*ruleset.Set
	byName := make(map[string]*ruleset.Set)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		words, err := split(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("read sets of ipset: line %d: %w", n, err)
		}
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		switch {
		case words[0] == "create" && len(words) >= 3:
			s := createSet(words[1], words[2], words[3:])
			byName[s.Name] = s
			sets = append(sets, s)
		case words[0] == "add" && len(words) >= 3:
			s := byName[words[1]]
			if s == nil {
				return nil, fmt.Errorf("read sets of ipset: line %d: set %s is not created", n, words[1])
			}
			if err := addElement(s, words[2], words[3:]); err != nil {
				return nil, fmt.Errorf("read sets of ipset: line %d: set %s: %w", n, s.Name, err)
			}
		default:
			return nil, fmt.Errorf("read sets of ipset: line %d: %.60q", n, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read sets of ipset: %w", err)
	}
	for _, s := range sets {
		s.Sort()
	}
	return sets, nil
}

// createSet reads create NAME TYPE OPTIONS.
func createSet(name, kind string, options []string) *ruleset.Set {
	s := &ruleset.Set{Name: name}
	address := "ipv4_addr"
	for i := 0; i < len(options); i++ {
		value := ""
		if i+1 < len(options) {
			value = options[i+1]
		}
		switch options[i] {
		case "family":
			if value == "inet6" {
				address = "ipv6_addr"
			}
		case "timeout":
			if n, err := strconv.ParseUint(value, 10, 31); err == nil && n > 0 {
				s.Timeout = time.Duration(n) * time.Second
			}
			s.Flags = append(s.Flags, "timeout")
		case "maxelem":
			s.Size, _ = strconv.ParseUint(value, 10, 64)
		case "counters":
			s.Counting = true
		}
	}
	method, dimensions, _ := strings.Cut(kind, ":")
	for d := range strings.SplitSeq(dimensions, ",") {
		switch d {
		case "ip":
			s.Types = append(s.Types, address)
		case "net":
			s.Types = append(s.Types, address)
			s.Flags = append(s.Flags, "interval")
		case "port":
			if method != "bitmap" {
				s.Types = append(s.Types, "inet_proto")
			}
			s.Types = append(s.Types, "inet_service")
		case "iface":
			s.Types = append(s.Types, "ifname")
		default:
			s.Types, s.Unprintable = nil, true
			return s
		}
	}
	return s
}

// addElement reads ELEMENT OPTIONS.
func addElement(s *ruleset.Set, text string, options []string) error {
	if s.Types == nil {
		return nil
	}
	var e ruleset.Element
	fields := s.Fields()
	parts := strings.Split(text, ",")
	for i := 0; i < len(fields); i++ {
		if len(parts) == 0 {
			return fmt.Errorf("element %q lacks a part", text)
		}
		part := parts[0]
		parts = parts[1:]
		if fields[i] == ruleset.Protocol {
			protocol, port, ok := strings.Cut(part, ":")
			if !ok {
				protocol, port = "tcp", part
			}
			r, err := valueOf(ruleset.Protocol, protocol)
			if err != nil {
				return err
			}
			e.Key = append(e.Key, r)
			part = port
			i++
		}
		r, err := ipsetRange(fields[i], part)
		if err != nil {
			return err
		}
		e.Key = append(e.Key, r)
	}
	if len(parts) > 0 {
		return fmt.Errorf("element %q has more parts than the set", text)
	}
	for i := 0; i < len(options); i++ {
		value := ""
		if i+1 < len(options) {
			value = options[i+1]
		}
		n, err := strconv.ParseUint(value, 10, 63)
		switch options[i] {
		case "nomatch":
			e.Excluded = true
			continue
		case "comment":
			e.Comment = value
			i++
			continue
		case "timeout":
			if n <= 1<<31 {
				e.Expires = time.Duration(n) * time.Second
			}
		case "packets":
			counterOf(&e).Packets = n
		case "bytes":
			counterOf(&e).Bytes = n
		case "skbmark", "skbprio", "skbqueue":
			i++
			continue
		default:
			return fmt.Errorf("option %q of element %q", options[i], text)
		}
		if err != nil {
			return fmt.Errorf("%s of element %q: %w", options[i], text, err)
		}
		i++
	}
	s.Elements = append(s.Elements, e)
	return nil
}

func counterOf(e *ruleset.Element) *ruleset.Counter {
	if e.Counter == nil {
		e.Counter = new(ruleset.Counter)
	}
	return e.Counter
}

// ipsetRange reads an address, a prefix, a port or a range of them.
func ipsetRange(f ruleset.Field, s string) (ruleset.Range, error) {
	s = strings.TrimPrefix(s, "physdev:")
	if from, to, ok := strings.Cut(s, "-"); ok && f != ruleset.InInterface {
		a, errA := valueOf(f, from)
		b, errB := valueOf(f, to)
		if errA != nil || errB != nil || a.First.Compare(b.Last) > 0 {
			return a, fmt.Errorf("range %q", s)
		}
		return ruleset.Range{First: a.First, Last: b.Last}, nil
	}
	if f == ruleset.Source {
		if a, err := netip.ParseAddr(s); err == nil {
			return ruleset.One(ruleset.Address(a.WithZone(""))), nil
		}
	}
	return valueOf(f, s)
}

// setKey returns the terms that a match on a set of ipset means by its directions.
func setKey(s *ruleset.Set, directions []string, family string) ([]ruleset.Term, bool) {
	if s.Types == nil {
		return nil, false
	}
	var key []ruleset.Term
	d := 0
	for _, t := range s.Types {
		if t == "inet_proto" {
			key = append(key, ruleset.Term{Field: ruleset.Protocol, Header: "meta"})
			continue
		}
		if d >= len(directions) {
			return nil, false
		}
		source := directions[d] == "src"
		d++
		var term ruleset.Term
		switch t {
		case "ipv4_addr", "ipv6_addr":
			term = ruleset.Term{Field: ruleset.Destination, Header: family}
			if source {
				term.Field = ruleset.Source
			}
		case "inet_service":
			term = ruleset.Term{Field: ruleset.DestinationPort, Header: "th"}
			if source {
				term.Field = ruleset.SourcePort
			}
		case "ifname":
			term = ruleset.Term{Field: ruleset.OutInterface, Header: "oifname"}
			if source {
				term = ruleset.Term{Field: ruleset.InInterface, Header: "iifname"}
			}
		}
		key = append(key, term)
	}
	return key, true
}
