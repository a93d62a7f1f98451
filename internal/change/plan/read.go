package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/host"
)

// MaxBytes is the largest text that ReadSituation takes: a situation has six lines.
const MaxBytes = 64 << 10

// The least and the most that a situation may have. A number without its unit is below the least.
// The most are the fastest tests of linerate, the memory that the 52 bits of a physical address
// reach, and the longest retransmission timer of TCP (TCP_RTO_MAX).
const (
	LeastLink     = unit.KilobitPerSecond
	LeastMemory   = unit.Bytes(1 << 20)
	MostLink      = 10000 * unit.GigabitPerSecond
	MostMemory    = unit.Bytes(1 << 52)
	MostRoundTrip = 2 * time.Minute
)

// Given is a situation as it was written, before the system and the role were looked up.
type Given struct {
	OS, Release, Role string
	Situation         // without System and Role

	hostOS, hostNIC string // of the host that Present is from
}

// keys are the lines of a situation, with the names that users write.
var keys = map[string]string{
	"link": "link", "link speed": "link", "speed": "link",
	"round trip": "rtt", "round-trip": "rtt", "roundtrip": "rtt", "rtt": "rtt",
	"memory": "memory", "ram": "memory", "role": "role", "os": "os", "system": "os", "release": "release",
	"version": "release", "connections": "connections", "mtu": "mtu", "interface": "interface", "driver": "driver",
}

// ReadSituation reads a situation of a few lines: KEY: VALUE, KEY = VALUE or KEY VALUE, with
// comments after #. The error names the line and what is wrong with it.
func ReadSituation(text []byte) (Given, error) {
	var g Given
	if len(text) > MaxBytes {
		return g, fmt.Errorf("more than %s: no situation of a few lines", unit.Bytes(MaxBytes))
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return g, fmt.Errorf("holds zero bytes: no text")
	}
	seen := map[string]int{}
	s := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	for n := 1; s.Scan(); n++ {
		line, _, _ := strings.Cut(s.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value := pair(line)
		key := keys[strings.ToLower(name)]
		switch {
		case key == "":
			return g, fmt.Errorf("line %d: %q: not one of link, round trip, memory, role, os, release, connections, mtu, "+
				"interface, driver", n, visible(name))
		case seen[key] > 0:
			return g, fmt.Errorf("line %d: %s: line %d has it already", n, name, seen[key])
		case value == "":
			return g, fmt.Errorf("line %d: %s: has no value", n, name)
		}
		seen[key] = n
		if err := g.Put(key, value); err != nil {
			return g, fmt.Errorf("line %d: %s: %w", n, name, err)
		}
	}
	if err := s.Err(); err != nil {
		return g, err
	}
	if len(seen) == 0 {
		return g, fmt.Errorf("has no line of a situation, such as `link: 10G`")
	}
	return g, nil
}

// pair splits a line into its key and its value.
func pair(line string) (name, value string) {
	if at := strings.IndexAny(line, ":="); at >= 0 {
		return strings.TrimSpace(line[:at]), strings.TrimSpace(line[at+1:])
	}
	words := strings.Fields(line)
	for n := min(2, len(words)); n > 0; n-- {
		if name := strings.Join(words[:n], " "); keys[strings.ToLower(name)] != "" {
			return name, strings.Join(words[n:], " ")
		}
	}
	return line, ""
}

// Put sets one of link, rtt, memory, role, os, release, connections, mtu, interface and driver.
func (g *Given) Put(key, value string) error {
	var err error
	positive := true
	switch key {
	case "link":
		g.Link, err = unit.ParseBitRate(value)
		positive = g.Link > 0
		// A number alone is a rate in bits per second: 10 for 10G must not become a plan.
		if err == nil && positive && g.Link < LeastLink {
			return fmt.Errorf("%q: slower than any link (%v); write the unit, as in 10G", visible(value), LeastLink)
		}
		if g.Link > MostLink {
			return fmt.Errorf("%q: faster than any link (%v)", visible(value), MostLink)
		}
	case "rtt":
		var span unit.Span
		span, err = unit.ParseSpan(value)
		g.RoundTrip = span.Duration()
		positive = g.RoundTrip > 0
		// A number alone is a time in seconds, and ping prints milliseconds.
		if err == nil && positive && !strings.ContainsFunc(value, unicode.IsLetter) {
			return fmt.Errorf("%q: write the unit, as in 20ms", visible(value))
		}
		if g.RoundTrip > MostRoundTrip {
			return fmt.Errorf("%q: longer than any round trip (%v)", visible(value), MostRoundTrip)
		}
	case "memory":
		g.Memory, err = unit.ParseBytes(value)
		positive = g.Memory > 0
		if err == nil && positive && g.Memory < LeastMemory {
			return fmt.Errorf("%q: less than any host has (%v); write the unit, as in 32GiB", visible(value), LeastMemory)
		}
		if g.Memory > MostMemory {
			return fmt.Errorf("%q: more than any host has (%v)", visible(value), MostMemory)
		}
	case "connections":
		var n float64
		n, err = unit.ParseCount(value)
		if err == nil && n > 1e8 {
			return fmt.Errorf("%s: more than 100 million", value)
		}
		g.Connections = int(n)
		positive = g.Connections > 0
	case "mtu":
		g.MTU, err = strconv.Atoi(value)
		if err != nil || g.MTU < 576 || g.MTU > 65535 {
			return fmt.Errorf("%q: must be a number from 576 to 65535", visible(value))
		}
	case "role":
		g.Role = value
	case "os":
		g.OS = value
	case "release":
		g.Release = value
	case "interface":
		// A name becomes part of commands.
		if len(value) > 64 || value[0] == '-' || strings.ContainsFunc(value, func(r rune) bool { return !nameRune(r) }) {
			return fmt.Errorf("%q: no name of an interface", visible(value))
		}
		g.Interface = value
	case "driver":
		if len(value) > 32 || strings.ContainsFunc(value, func(r rune) bool { return !nameRune(r) || r == ' ' }) {
			return fmt.Errorf("%q: no name of a driver", visible(value))
		}
		g.Driver = value
	}
	if err == nil && !positive {
		err = fmt.Errorf("%q: must be more than 0", visible(value))
	}
	return err
}

// nameRune reports whether a character may be in the name of an interface; Windows has blanks in
// them.
func nameRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._- @", r)
}

// visible cuts a text for a message.
func visible(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return s
}

// Resolve looks up the system and the role.
func (g *Given) Resolve() (Situation, error) {
	s := g.Situation
	var err error
	if s.Role, err = ParseRole(g.Role); err != nil {
		return s, err
	}
	if s.System, err = ParseSystem(g.OS, g.Release); err != nil {
		return s, err
	}
	if s.System.OS != advice.Windows && strings.Contains(s.Interface, " ") {
		return s, fmt.Errorf("interface %q: has a blank, which only Windows allows", s.Interface)
	}
	if s.Present != nil && string(s.System.OS) != g.hostOS {
		s.Present, s.RingMax, s.Queues = nil, 0, 0
		if s.Interface == g.hostNIC {
			s.Interface, s.Driver = "", ""
		}
	}
	return s, nil
}

// OfHost returns what a snapshot shows of a situation: memory, system, and the link of an
// interface; without a name, of the fastest one that is up. The round trip and the role are not
// part of a snapshot.
func OfHost(h *host.Snapshot, nic string) (Given, error) {
	g := Given{OS: h.OS, Release: h.Kernel, hostOS: h.OS}
	g.Memory = unit.Bytes(h.MemoryBytes)
	g.Present = map[string]string{}
	for _, s := range h.Settings {
		g.Present[s.Knob] = strings.Join(strings.Fields(s.Value), " ")
	}
	var names []string
	var best *host.Interface
	for i := range h.Interfaces {
		x := &h.Interfaces[i]
		names = append(names, x.Name)
		if nic == x.Name || nic == "" && x.Up && !x.Virtual && (best == nil || x.SpeedBitsPerSec > best.SpeedBitsPerSec) {
			best = x
		}
	}
	if best == nil && nic != "" {
		return g, fmt.Errorf("interface %q: the host has %s", nic, strings.Join(slices.Sorted(slices.Values(names)), ", "))
	}
	if best == nil {
		return g, nil
	}
	g.hostNIC = best.Name
	g.Interface, g.Driver, g.Link = best.Name, best.Driver, unit.BitRate(best.SpeedBitsPerSec)
	g.Present["link:"+best.Name+"/mtu"] = strconv.Itoa(best.MTUBytes)
	if best.Rings != nil {
		g.Present["ethtool:"+best.Name+"/ring.rx"] = strconv.FormatUint(uint64(best.Rings.Rx.Current), 10)
		g.RingMax = int(best.Rings.Rx.Max)
	}
	if c := best.Channels; c != nil {
		g.Present["ethtool:"+best.Name+"/channels.combined"] = strconv.FormatUint(uint64(c.Combined), 10)
		g.Queues = min(int(c.MaxCombined), len(h.CPUs))
	}
	for name, value := range best.Coalesce {
		text := strconv.FormatUint(uint64(value), 10)
		if strings.HasPrefix(name, "adaptive-") {
			text = map[uint32]string{0: "off", 1: "on"}[value]
		}
		g.Present["ethtool:"+best.Name+"/coalesce."+name] = text
	}
	return g, nil
}
