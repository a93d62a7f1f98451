package names

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/resolver/message"
)

// Read reads questions from a list, a query log, or a packet capture (pcap, pcapng). A line of a
// list is a name, a type, and optionally what the answer must say: a response code or an address.
// Empty lines are skipped, and what is behind a word that begins with # or ; is a comment. Lines of
// a log that are not about queries are skipped.
//
// The first line that is a query of one of the known logs makes the file a log.
func Read(r io.Reader, o message.QueryOptions) (*Set, error) {
	s := newSet(o)
	in := bufio.NewReader(r)
	begin, _ := in.Peek(6) // a shorter file, or an error of reading, shows below
	if isCapture(string(begin)) {
		if err := s.readCapture(in); err != nil {
			return nil, err
		}
		return s, nil
	}
	if why := foreign(string(begin)); why != "" {
		return nil, fmt.Errorf("%w: the file is %s", ErrNames, why)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), 1<<16)
	var log *pattern.Pattern
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, byteOrderMark)
		}
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if log == nil && s.Len() == 0 {
			log = logOf(line)
		}
		if log != nil {
			if err := s.addLogged(log, line); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		if err := s.addListed(line); err != nil {
			// A log may begin with lines about its server's start, which are no list.
			if s.Len() == 0 && looksLogged(line) {
				continue
			}
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: a line has more than 65 536 octets", ErrNames)
	case err != nil:
		return nil, fmt.Errorf("read names: %w", err)
	case s.Len() == 0:
		return nil, fmt.Errorf("%w: it has no question", ErrNames)
	}
	return s, nil
}

// byteOrderMark is what some programs write at the begin of UTF-8.
const byteOrderMark = "\ufeff"

// foreign returns what a file is that is no text, and what helps, by how it begins; "": it may be
// text.
func foreign(begin string) string {
	for magic, what := range map[string]string{
		"\xff\xfe": "UTF-16: save it as UTF-8 or ASCII", "\xfe\xff": "UTF-16: save it as UTF-8 or ASCII",
		"\x1f\x8b": "compressed: pass it through gzip -dc", "\x28\xb5\x2f\xfd": "compressed: pass it through zstd -dc",
		"\xfd7zXZ": "compressed: pass it through xz -dc",
	} {
		if strings.HasPrefix(begin, magic) {
			return what
		}
	}
	return ""
}

// addListed adds a line of a list.
func (s *Set) addListed(line string) error {
	fields := strings.Fields(line)
	for i, f := range fields {
		if i > 0 && (f[0] == ';' || f[0] == '#') {
			fields = fields[:i]
			break
		}
	}
	if len(fields) < 2 || len(fields) > 3 {
		return fmt.Errorf("%w: %.80q is not a name, a type and at most one expectation", ErrNames, line)
	}
	t, err := message.ParseType(fields[1])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNames, err)
	}
	var e Expectation
	if len(fields) == 3 {
		if a, err := netip.ParseAddr(fields[2]); err == nil {
			e = Expectation{HasCode: true, Address: a.AsSlice()}
		} else if code, err := message.ParseRCode(fields[2]); err == nil {
			e = Expectation{HasCode: true, Code: code}
		} else {
			return fmt.Errorf("%w: expectation %.80q is neither a response code nor an address", ErrNames, fields[2])
		}
	}
	return s.add(fields[0], t, e)
}

// logs are the lines of query logs, as their programs write them. Each has a name and a type.
var logs = []*pattern.Pattern{
	// BIND 9: client @0x7f… 192.0.2.1#4711 (www.example.org): query: www.example.org IN A +E(0)K
	// (192.0.2.53); with views: …: view internal: query: …; before 9.9 without the name in brackets
	pattern.New(`client \S.*?: (?:view \S+: )?query: (?P<name>\S+) IN (?P<type>\S+)(?: |$)`),
	// Unbound: [1700000000] unbound[1:0] info: 192.0.2.1 www.example.org. A IN; through the log of the
	// system: host unbound[1]: [1:0] info: …
	pattern.New(`\[\d+:[\da-f]+\] (?:info|query): [\da-fA-F.:]+ (?P<name>\S+) (?P<type>\S+) IN$`),
	// dnsmasq: Nov 24 02:00:00 dnsmasq[1]: query[A] www.example.org from 192.0.2.1
	pattern.New(`query\[(?P<type>[^\]]+)\] (?P<name>\S+) from `),
}

// logOf returns the pattern of the log that a line is of, or nil.
func logOf(line string) *pattern.Pattern {
	for _, l := range logs {
		if l.MatchString(line) {
			return l
		}
	}
	return nil
}

// looksLogged reports whether a line is of a log: more words than a list has.
func looksLogged(line string) bool { return len(strings.Fields(line)) > 3 }

// addLogged adds the question of a line of a log, if it has one.
func (s *Set) addLogged(log *pattern.Pattern, line string) error {
	m := log.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	t, err := message.ParseType(m[log.SubexpIndex("type")])
	if err != nil {
		return nil // the type of a query is whatever its client wrote
	}
	err = s.add(m[log.SubexpIndex("name")], t, Expectation{})
	if errors.Is(err, message.ErrName) {
		return nil // so is the name, which the log may have shortened
	}
	return err
}
