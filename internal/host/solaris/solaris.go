package solaris

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrFormat reports an output that is empty, cut off, or not what the program prints.
var ErrFormat = errors.New("not the expected form")

// Fields splits a line of the parsable form: colons part fields, and a backslash stands before a
// colon or a backslash that belongs to a field.
func Fields(line string) []string {
	fields := []string{""}
	escaped := false
	for _, c := range strings.TrimRight(line, "\r\n") {
		last := len(fields) - 1
		switch {
		case escaped:
			fields[last] += string(c)
			escaped = false
		case c == '\\':
			escaped = true
		case c == ':':
			fields = append(fields, "")
		default:
			fields[last] += string(c)
		}
	}
	return fields
}

// Property is one property of a protocol or of a link.
type Property struct {
	Writable   bool
	Current    string
	Persistent string // what the next start sets; empty: nothing is recorded
	Default    string
	Possible   string // 4096-1048576, or words parted by commas; empty: the program does not know
}

// Columns are what ParseProperty expects, for the option -o of ipadm; dladm calls the second VALUE
// and has no third.
const Columns = "PERM,CURRENT,PERSISTENT,DEFAULT,POSSIBLE"

// LinkColumns are the columns of dladm.
const LinkColumns = "PERM,VALUE,DEFAULT,POSSIBLE"

// ParseProperty reads one line with Columns or LinkColumns.
func ParseProperty(text string) (Property, error) {
	line, rest, _ := strings.Cut(text, "\n")
	f := Fields(line)
	if strings.TrimSpace(rest) != "" || len(f) != 4 && len(f) != 5 {
		return Property{}, fmt.Errorf("%q: %w", cut(text), ErrFormat)
	}
	if len(f) == 4 {
		f = []string{f[0], f[1], "", f[2], f[3]}
	}
	for i := range f {
		if f[i] == "--" || f[i] == "?" {
			f[i] = ""
		}
	}
	if len(f[0]) < 2 || f[0][0] != 'r' && f[0][0] != '-' {
		return Property{}, fmt.Errorf("%q: no permissions: %w", cut(text), ErrFormat)
	}
	return Property{Writable: f[0][1] == 'w', Current: f[1], Persistent: f[2], Default: f[3], Possible: f[4]}, nil
}

func cut(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// Allows reports whether a value is among the possible ones. What it cannot judge, it allows.
func (p Property) Allows(value string) bool {
	if p.Possible == "" || p.Possible == value {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	for part := range strings.SplitSeq(p.Possible, ",") {
		low, high, ranged := strings.Cut(part, "-")
		l, errLow := strconv.ParseInt(low, 10, 64)
		h, errHigh := strconv.ParseInt(high, 10, 64)
		switch {
		case part == value:
			return true
		case ranged && errLow == nil && errHigh == nil && err == nil && l <= n && n <= h:
			return true
		}
	}
	return false
}

// ParseKstat reads `kstat -p`: module:instance:name:statistic, a tab, and the value. Texts and
// times are left out.
func ParseKstat(text string) (map[string]uint64, error) {
	counts := make(map[string]uint64)
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if !ok || strings.Count(name, ":") < 3 {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
			counts[name] = n
		}
	}
	if len(counts) == 0 {
		return nil, fmt.Errorf("kstat: no counter: %w", ErrFormat)
	}
	return counts, nil
}

// Card is where a card lost packets.
type Card struct {
	Missed   uint64 // found no room in the card: the host was too slow
	NoBuffer uint64 // no memory for a received packet
	CRC      uint64 // damaged on the wire
	Other    uint64 // other damage
	PauseIn  uint64 // pause frames received
	PauseOut uint64 // pause frames sent
}

// CardCounters sorts the counters of one card, e1000g:0 or igb:1, among those of ParseKstat. The
// drivers spell the same counter with a capital letter or without. False: the card has none of
// them.
func CardCounters(counts map[string]uint64, card string) (Card, bool) {
	found := false
	sum := make(map[string]uint64)
	for name, n := range counts {
		rest, ok := strings.CutPrefix(name, card+":")
		if !ok {
			continue
		}
		group, statistic, _ := strings.Cut(rest, ":")
		if group == "mac" || group == "statistics" {
			sum[group+":"+strings.ToLower(statistic)] = n
			found = true
		}
	}
	return Card{
		Missed:   sum["statistics:recv_missed_packets"],
		NoBuffer: sum["statistics:rx allocb failure"] + sum["mac:norcvbuf"],
		CRC:      sum["mac:fcs_errors"],
		Other: sum["mac:align_errors"] + sum["statistics:recv_length_errors"] + sum["statistics:recv_symbol_errors"] +
			sum["statistics:rx error"],
		PauseIn: sum["statistics:xoffs_recvd"], PauseOut: sum["statistics:xoffs_xmitd"],
	}, found
}

// Conf finds the number of one instance in a file of driver.conf(5): MaxFrameSize=0,0,3; is a list
// with one number for each instance. At and end are the place of its bytes. False: the file has no
// such property, or its list has no such place.
func Conf(text, property string, instance int) (value string, at, end int, found bool) {
	for place := 0; place < len(text); {
		// A comment reaches to the end of its line, and a property to its semicolon.
		switch c := text[place]; {
		case c == '#':
			place = after(text, place, '\n')
			continue
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';':
			place++
			continue
		}
		stop := place
		for stop < len(text) && text[stop] != ';' && text[stop] != '#' {
			stop++
		}
		name, list, ok := strings.Cut(text[place:stop], "=")
		if ok && strings.TrimSpace(name) == property {
			from := place + len(name) + 1
			left := instance
			for number := range strings.SplitSeq(list, ",") {
				trimmed := strings.TrimSpace(number)
				if left == 0 {
					if _, err := strconv.ParseUint(trimmed, 0, 32); err != nil {
						return "", 0, 0, false
					}
					from += strings.Index(number, trimmed)
					// The last one counts, as for the kernel.
					value, at, end, found = trimmed, from, from+len(trimmed), true
				}
				left--
				from += len(number) + 1
			}
		}
		place = stop
		if place < len(text) && text[place] == ';' {
			place++
		}
	}
	return value, at, end, found
}

// after returns the place behind the next byte c.
func after(text string, from int, c byte) int {
	if i := strings.IndexByte(text[from:], c); i >= 0 {
		return from + i + 1
	}
	return len(text)
}
