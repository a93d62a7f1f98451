package freebsd

import (
	"slices"
	"strconv"
	"strings"
)

// Interface is one interface as ifconfig prints it.
type Interface struct {
	Name         string
	Flags        []string // UP, RUNNING, …
	MTUBytes     int
	Options      []string // offloads that are on, in the kernel's words: TSO4, RXCSUM, …
	Capabilities []string // offloads that the driver can do; empty without ifconfig -m
	MAC          string
	Media        string // as printed: Ethernet autoselect (1000baseT <full-duplex>)
	Status       string // active, no carrier
}

// options are the words of ifconfig(8) for what the kernel calls otherwise.
var options = map[string]string{
	"rxcsum": "RXCSUM", "txcsum": "TXCSUM", "rxcsum6": "RXCSUM_IPV6", "txcsum6": "TXCSUM_IPV6",
	"tso4": "TSO4", "tso6": "TSO6", "lro": "LRO", "vlanhwtag": "VLAN_HWTAGGING", "vlanhwtso": "VLAN_HWTSO",
	"polling": "POLLING",
}

// Option returns whether an offload is on, whether the driver can do it, and whether its word is
// known. Without a list of capabilities what is on can be done.
func (i Interface) Option(word string) (on, able, known bool) {
	name, known := options[word]
	on = slices.Contains(i.Options, name)
	return on, on || slices.Contains(i.Capabilities, name), known
}

// Speed returns the negotiated rate in bits per second and the duplex mode (full, half), as far as
// the line of the medium names them: 1000baseT, 10Gbase-T, 2500Base-T. Zero: not known.
func (i Interface) Speed() (bitsPerSecond float64, duplex string) {
	_, chosen, ok := strings.Cut(i.Media, "(")
	if !ok {
		chosen = i.Media // a forced medium
	}
	for _, word := range []string{"full", "half"} {
		if strings.Contains(chosen, word+"-duplex") {
			duplex = word
		}
	}
	for f := range strings.FieldsSeq(chosen) {
		number, _, ok := strings.Cut(strings.ToLower(f), "base")
		if !ok {
			continue
		}
		scale := 1e6
		if g, ok := strings.CutSuffix(number, "g"); ok {
			number, scale = g, 1e9
		}
		if n, err := strconv.ParseFloat(number, 64); err == nil && n > 0 && n < 1e6 {
			return n * scale, duplex
		}
	}
	return 0, duplex
}

// ParseIfconfig reads the output of ifconfig, also with -m. It skips lines that it does not know.
func ParseIfconfig(text string) []Interface {
	var all []Interface
	known := false // the lines below describe the last of all
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if line[0] != ' ' && line[0] != '\t' {
			name, rest, ok := strings.Cut(line, ": ")
			known = ok && name != "" && strings.HasPrefix(rest, "flags=") && !strings.ContainsAny(name, " \t")
			if !known {
				continue
			}
			i := Interface{Name: name, Flags: angled(rest)}
			fields := strings.Fields(rest)
			for at, f := range fields {
				if f == "mtu" && at+1 < len(fields) {
					i.MTUBytes, _ = strconv.Atoi(fields[at+1]) // 0 where it is no number
				}
			}
			all = append(all, i)
			continue
		}
		if !known {
			continue
		}
		i := &all[len(all)-1]
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case strings.HasPrefix(word, "options="):
			i.Options = angled(line)
		case strings.HasPrefix(word, "capabilities="):
			i.Capabilities = angled(line)
		case word == "ether":
			i.MAC = strings.TrimSpace(rest)
		case word == "media:":
			i.Media = rest
		case word == "status:":
			i.Status = rest
		}
	}
	return all
}

// angled returns the words in angle brackets; of a list that is cut off, those that are whole.
func angled(line string) []string {
	_, rest, ok := strings.Cut(line, "<")
	if !ok {
		return nil
	}
	inside, _, whole := strings.Cut(rest, ">")
	words := strings.Split(inside, ",")
	if !whole {
		words = words[:len(words)-1]
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// Assigned returns what a file of assignments (loader.conf, rc.conf) gives a name: the last one
// counts.
func Assigned(text, name string) (string, bool) {
	value, found := "", false
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.TrimSpace(left) != name {
			continue
		}
		value, found = unquote(strings.TrimSpace(right)), true
	}
	return value, found
}

// unquote takes the quotes off, and a comment behind the value.
func unquote(s string) string {
	if s == "" {
		return s
	}
	if quote := s[0]; quote == '"' || quote == '\'' {
		inside, _, closed := strings.Cut(s[1:], string(quote))
		if closed {
			return inside
		}
		return s[1:]
	}
	s, _, _ = strings.Cut(s, "#")
	return strings.TrimSpace(s)
}
