package printed

import (
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host"
)

// ParseQdiscs parses "tc -s qdisc show": a head "qdisc KIND HANDLE: dev NIC root|parent CLASS
// refcnt 2 PARAMETERS" and indented lines with totals (print_qdisc and print_tcstats2_attr of
// iproute2). Lines that a kind adds, such as the flows of fq_codel, are left out.
func ParseQdiscs(text string) []Qdisc {
	var all []Qdisc
	var q *Qdisc
	for line := range lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		// Older versions do not indent every line, so the word identifies a head.
		if words[0] == "qdisc" {
			q = nil // An unreadable head must not pass its totals to the one before it.
			if head, ok := parseQdisc(words[1:]); ok {
				all = append(all, head)
				q = &all[len(all)-1]
			}
			continue
		}
		if q == nil {
			continue
		}
		switch {
		// " Sent 123 bytes 4 pkt (dropped 0, overlimits 0 requeues 0)"
		case words[0] == "Sent":
			q.Bytes, _ = totalAfter(words, "Sent")
			q.Packets, _ = totalAfter(words, "bytes")
			q.Drops, _ = totalAfter(words, "dropped")
			q.Overlimits, _ = totalAfter(words, "overlimits")
			q.Requeues, _ = totalAfter(words, "requeues")
		// " backlog 12Kb 8p requeues 0". Old versions, and all where a discipline estimates its rate,
		// have that before it: " rate 0bit 0pps backlog 0b 0p requeues 0".
		case words[0] == "backlog", words[0] == "rate":
			if at := slices.Index(words, "backlog"); at >= 0 && len(words) >= at+3 {
				q.BacklogBytes, _ = size(words[at+1])
				q.BacklogPackets, _ = count(strings.TrimSuffix(words[at+2], "p"))
			}
		}
	}
	return all
}

// parseQdisc parses the head.
func parseQdisc(words []string) (Qdisc, bool) {
	var q Qdisc
	if len(words) < 2 {
		return q, false
	}
	q.Kind = words[0]
	var ok bool
	if q.Handle, ok = handle(words[1]); !ok {
		return q, false
	}
	if q.Interface, ok = after(words, "dev"); !ok {
		return q, false
	}
	// After the place in the tree come refcnt and the parameters; words before it could be mistaken
	// for them.
	rest := words[2:]
	switch parent, isChild := after(words, "parent"); {
	case isChild:
		if q.Parent, ok = handle(parent); !ok {
			return q, false
		}
		rest = words[slices.Index(words, "parent")+2:]
	case slices.Contains(words, "root"):
		q.Parent = root
		rest = words[slices.Index(words, "root")+1:]
	}
	q.Parameters = parseParameters(q.Kind, rest)
	return q, true
}

// root is the parent of a discipline at the root of its interface (TC_H_ROOT).
const root = 0xffffffff

// handle parses "8001:", "8001:1", ":1", both parts hexadecimal. The kernel's own disciplines have
// the handle "0:".
func handle(text string) (uint32, bool) {
	major, minor, ok := strings.Cut(text, ":")
	part := func(digits string) uint32 {
		if digits == "" {
			return 0
		}
		n, err := strconv.ParseUint(digits, 16, 16)
		ok = ok && err == nil
		return uint32(n)
	}
	n := part(major)<<16 | part(minor)
	return n, ok
}

// totalAfter returns the number after a word, without brackets and commas.
func totalAfter(words []string, key string) (uint64, bool) {
	for i, w := range words[:max(len(words)-1, 0)] {
		if strings.TrimLeft(w, "(") == key {
			return count(strings.TrimRight(words[i+1], ",)"))
		}
	}
	return 0, false
}

// size parses tc's form of bytes: "0b", "12Kb", "3Mb", in powers of 1024 (sprint_size of iproute2).
func size(text string) (uint64, bool) {
	for _, unit := range []struct {
		suffix string
		times  float64
	}{{"Mb", 1 << 20}, {"Kb", 1 << 10}, {"b", 1}} {
		if number, ok := strings.CutSuffix(text, unit.suffix); ok {
			n, err := strconv.ParseFloat(number, 64)
			// 2⁴⁰ megabytes are more than a kernel counts; above that the conversion has no defined
			// result.
			if err != nil || !(n >= 0 && n < 1<<40) {
				return 0, false
			}
			return uint64(n * unit.times), true
		}
	}
	return 0, false
}

// unit is the form of a parameter in tc's output.
type unit int

const (
	plain   unit = iota // a number, followed by p for packets, b or Kb for bytes, or nothing
	micros              // a time, given in microseconds
	rate                // a rate, given in bits per second
	present             // a single word that means on
	absent              // a single word that means off
)

// parameters are those of the kinds that package host knows, as tc prints them (q_fq.c,
// q_fq_codel.c, q_fifo.c of iproute2). Switches that tc omits at their usual value get that value.
// cake, whose text has another style, is left out.
var parameters = map[string][]struct {
	word, name string
	unit       unit
}{
	"pfifo": {{"limit", "limit", plain}},
	"bfifo": {{"limit", "limit", plain}},
	"fq_codel": {
		{"limit", "limit", plain}, {"flows", "flows", plain}, {"quantum", "quantum", plain},
		{"target", "target", micros}, {"interval", "interval", micros},
		{"ce_threshold", "ce_threshold", micros}, {"memory_limit", "memory_limit", plain},
		{"drop_batch", "drop_batch", plain}, {"ecn", "ecn", present},
	},
	"fq": {
		{"limit", "limit", plain}, {"flow_limit", "flow_limit", plain}, {"buckets", "buckets", plain},
		{"orphan_mask", "orphan_mask", plain},
		{"quantum", "quantum", plain}, {"initial_quantum", "initial_quantum", plain}, {"maxrate", "maxrate", rate},
		{"low_rate_threshold", "low_rate_threshold", rate}, {"refill_delay", "refill_delay", micros},
		{"timer_slack", "timer_slack", plain},
		{"horizon", "horizon", micros}, {"horizon_drop", "horizon_drop", present}, {"nopacing", "pacing", absent},
	},
}

// parseParameters converts the words after the head to the words and units of package host. tc
// rounds times and rates, so these are rounded too.
func parseParameters(kind string, words []string) map[string]string {
	// All of these kinds have this parameter, and tc always prints it: without it the head is
	// incomplete, and a missing switch means nothing.
	if !slices.Contains(words, "limit") {
		return nil
	}
	found := make(map[string]string)
	for _, p := range parameters[kind] {
		at := slices.Index(words, p.word)
		there := at >= 0
		switch {
		case p.unit == present:
			found[p.name] = onOff(there)
		case p.unit == absent:
			found[p.name] = onOff(!there)
		case there && at+1 < len(words):
			if v, ok := value(words[at+1], p.unit); ok {
				found[p.name] = strconv.FormatUint(v, 10)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// onOff returns package host's word for a switch; tc has a pair of words for each.
func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// value parses one parameter's text in its unit.
func value(text string, u unit) (uint64, bool) {
	switch u {
	case micros:
		return microseconds(text)
	case rate:
		for _, unit := range []struct {
			suffix string
			times  float64
		}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"Kbit", 1e3}, {"bit", 1}} {
			if number, ok := strings.CutSuffix(text, unit.suffix); ok {
				n, err := strconv.ParseFloat(number, 64)
				if err != nil || !(n >= 0 && n < 1e9) {
					return 0, false
				}
				return uint64(n * unit.times), true
			}
		}
		return 0, false
	}
	// A bare number, or one of packets; newer versions print the b of bytes that older ones omit.
	if n, ok := count(strings.TrimSuffix(text, "p")); ok {
		return n, true
	}
	return size(text)
}

// microseconds parses "5ms", "100us", "10s", the forms of tc (sprint_time). tc rounds: the 4999 µs
// that codel makes of its default are "5ms".
func microseconds(text string) (uint64, bool) {
	for _, unit := range []struct {
		suffix string
		times  float64
	}{{"us", 1}, {"ms", 1e3}, {"s", 1e6}} {
		number, ok := strings.CutSuffix(text, unit.suffix)
		if n, err := strconv.ParseFloat(number, 64); ok && err == nil && n >= 0 && n < 1e9 {
			return uint64(n*unit.times + 0.5), true
		}
	}
	return 0, false
}

// Qdisc is one queueing discipline, with the keys of linerate/qdiscs.json in an archive of package
// host. Parent and handle are tc's numbers, major in the upper half.
type Qdisc struct {
	Interface string `json:"interface"`
	Kind      string `json:"kind"`
	Parent    uint32 `json:"parent"`
	Handle    uint32 `json:"handle"`
	host.QdiscState
}
