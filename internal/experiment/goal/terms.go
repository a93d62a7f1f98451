package goal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
)

// The names under which segments report the quantities of terms.
const (
	GuardP50RTT       = "rtt_p50_seconds"
	GuardP99RTT       = "rtt_p99_seconds"
	GuardLoadedRTT    = "rtt_loaded_seconds"
	GuardCPU          = "cpu_busiest_ratio"
	GuardCPUTotal     = "cpu_total_ratio"
	GuardCPUPerGB     = "cpu_seconds_per_gigabyte"
	GuardRetransmits  = "retransmit_ratio"
	GuardDrops        = "drops_per_gigabyte"
	GuardLoss         = "loss_ratio"
	GuardThroughput   = "throughput_bits_per_second"
	GuardLatency      = "transaction_seconds"
	GuardTransactions = "transactions_per_second"
	GuardPackets      = "packets_per_second"
)

// dimension is the notation of the values of a term.
type dimension struct {
	example string
	parse   func(string) (float64, error)
	format  func(float64) string
}

var (
	seconds = dimension{"5ms", parseSeconds, unit.FormatSeconds}
	ratio   = dimension{"80%", unit.ParsePercent, unit.FormatPercent}
	bitRate = dimension{"1Gb/s", func(s string) (float64, error) {
		r, err := unit.ParseBitRate(s)
		return float64(r), err
	}, func(v float64) string { return unit.BitRate(v).String() }}
	perSecond          = dimension{"20k/s", counted("/s", "per second"), withUnit("/s")}
	perGigabyte        = dimension{"100/GB", counted("/GB", "per gigabyte"), withUnit("/GB")}
	secondsPerGigabyte = dimension{"2s/GB", func(s string) (float64, error) {
		return parseSeconds(cutAny(s, "/GB", "per gigabyte"))
	}, func(v float64) string { return unit.FormatSeconds(v) + "/GB" }}
)

// parseSeconds requires a unit: a bare 5 for a round trip is hardly ever seconds.
func parseSeconds(s string) (float64, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("time %q: %w: no unit", s, unit.ErrSyntax)
	}
	return unit.ParseSeconds(s)
}

// counted returns a parser for a count with one of the endings.
func counted(endings ...string) func(string) (float64, error) {
	return func(s string) (float64, error) { return unit.ParseCount(cutAny(s, endings...)) }
}

func withUnit(ending string) func(float64) string {
	return func(v float64) string { return unit.FormatCount(v) + ending }
}

func cutAny(s string, endings ...string) string {
	for _, e := range endings {
		if len(s) < len(e) || !strings.EqualFold(s[len(s)-len(e):], e) {
			continue
		}
		return strings.TrimSpace(s[:len(s)-len(e)])
	}
	return s
}

// term is one quantity that a bound may limit.
type term struct {
	guard   string
	what    string
	more    bool // more of it is better
	goal    Goal // the goal with this quantity; empty: none
	written dimension
	none    bool // zero is a possible value
}

// terms are the quantities by the names that users type.
var terms = map[string]term{
	"p50_rtt":   {guard: GuardP50RTT, what: "median round trip under the load", written: seconds},
	"p99_rtt":   {guard: GuardP99RTT, what: "99th percentile of round trips under the load", written: seconds},
	"rtt":       {guard: GuardLoadedRTT, what: "mean round trip of the loaded flow itself", written: seconds},
	"cpu":       {guard: GuardCPU, what: "share of the busiest CPU of either host", written: ratio},
	"cpu_total": {guard: GuardCPUTotal, what: "share of all CPUs of the busier host", written: ratio},
	"cpu_per_gigabyte": {guard: GuardCPUPerGB, what: "CPU time of both hosts per gigabyte",
		written: secondsPerGigabyte},
	"retransmits": {guard: GuardRetransmits, what: "share of retransmitted segments", written: ratio, none: true},
	"drops": {guard: GuardDrops, what: "packets that either host dropped, per gigabyte",
		written: perGigabyte, none: true},
	"loss": {guard: GuardLoss, what: "share of datagrams that did not arrive", written: ratio, none: true},
	"throughput": {guard: GuardThroughput, what: "received payload", more: true, goal: Throughput,
		written: bitRate},
	"latency": {guard: GuardLatency, what: "mean time of a transaction of one byte each way", goal: Latency,
		written: seconds},
	"transactions": {guard: GuardTransactions, what: "transactions of one byte each way", more: true, goal: Latency,
		written: perSecond},
	"packets": {guard: GuardPackets, what: "received small datagrams", more: true, goal: Packets,
		written: perSecond},
}

// termOrder is the order of the terms in messages.
var termOrder = [...]string{
	"p50_rtt", "p99_rtt", "rtt", "cpu", "cpu_total", "cpu_per_gigabyte", "retransmits", "drops", "loss", "throughput",
	"latency", "transactions", "packets",
}

// Terms returns one line per term: the notation of a bound on it, and its meaning.
func Terms() []string {
	lines := make([]string, len(termOrder))
	for i, name := range termOrder {
		t := terms[name]
		op := Less
		if t.more {
			op = More
		}
		lines[i] = fmt.Sprintf("%-24s %s", name+string(op)+t.written.example, t.what)
	}
	return lines
}

// aliases are other words that users try for terms and goals.
var aliases = map[string]string{
	"p99": "p99_rtt", "p50": "p50_rtt", "rtt_p99": "p99_rtt", "rtt_p50": "p50_rtt", "loaded_rtt": "rtt",
	"retransmit": "retransmits", "retrans": "retransmits",
	"drop": "drops", "cpu_busiest": "cpu", "bandwidth": "throughput", "speed": "throughput", "rate": "throughput",
	"pps": "packets", "tps": "transactions",
	"packet": "packets", "rr": "latency",
}

// nearest returns the known word that is probably intended; empty if none is similar.
func nearest(word string, known []string) string {
	if a, ok := aliases[word]; ok && slices.Contains(known, a) {
		return a
	}
	for _, k := range known {
		if len(word) >= 3 && (strings.HasPrefix(k, word) || strings.HasPrefix(word, k)) {
			return k
		}
	}
	for _, k := range known {
		if oneEdit(word, k) {
			return k
		}
	}
	return ""
}

// oneEdit reports whether words differ by one letter: extra, missing or wrong.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return i < len(a) && a[i+1:] == b[i+1:]
	}
	return a[i:] == b[i+1:]
}
