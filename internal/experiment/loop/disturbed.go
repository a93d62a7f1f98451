package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/traffic"
)

// maxStealRatio is the share of stolen CPU time above which a segment says more about the
// neighbours than about the knob. It is also the share at which a diagnosis mentions steal. The
// loss of throughput is at least that of the time, and five per cent are several times the least
// useful effect.
const maxStealRatio = 0.05

// disturbed returns why a segment must not count: stolen CPU time, or a link that went down or up;
// empty if it counts. loss is the share of the rate, 0…1, that the reason can have cost at most; 0:
// unknown.
//
// Only what cannot come from the knob under test may discard a segment; otherwise discarding would
// choose the results. A change of class d3 moves the link itself, but before the segment and not
// during it.
//
// A flow is as fast as its slowest stage, and each stage runs on one CPU, so stolen time costs an
// end at most the share of its CPU that lost most. The two ends can lose at different times.
func disturbed(r *traffic.Result) (reason string, loss float64) {
	kept := 1.0
	for _, end := range []struct {
		name string
		end  traffic.End
	}{{"near", r.Ends.Local}, {"far", r.Ends.Remote}} {
		var steal, all, worst float64
		for _, c := range end.end.CPUs {
			if c.CPU < 0 {
				continue
			}
			steal += c.Steal
			all += c.Total()
			if total := c.Total(); total > 0 {
				worst = max(worst, c.Steal/total)
			}
		}
		kept *= 1 - worst
		if reason == "" && all > 0 && steal/all > maxStealRatio {
			reason = fmt.Sprintf("%.0f %% of the CPU time of the %s host was stolen", 100*steal/all, end.name)
		}
		for name, n := range end.end.Counters {
			if n > 0 && strings.HasPrefix(name, "nic.") && strings.HasSuffix(name, ".carrier_changes") {
				return fmt.Sprintf("link event on the %s host: %s moved by %d", end.name, name, n), 0
			}
		}
	}
	if reason == "" {
		return "", 0
	}
	return reason, 1 - kept
}

const (
	// crossShare is how much more than usual, as a share of the test's own bytes, other traffic may
	// be: a tenth of the link costs a tenth of the throughput.
	crossShare = 0.10
	// crossFloor never counts, in bytes per second: the background traffic of a host.
	crossFloor = 250_000
	// crossHistory is how many segments define the usual; fewer than crossFewest define nothing.
	crossHistory, crossFewest = 16, 4
	// readingSeconds is how much longer than the window the time between two readings of the
	// counters may be: the start and end of the test, its draining queue, and a late CPU. A fast
	// arm moves more in that time than a slow one, so it must not count.
	readingSeconds = 0.2
	// Sizes in bytes of the headers of a segment with timestamps (Ethernet, IPv6 and TCP) and of an
	// acknowledgement, one per two segments.
	headerBytes, ackBytes = 86, 86
)

// crossTraffic finds segments in which the NICs carried clearly more than the test and than usual.
// A production host always carries other traffic: constant traffic is in both arms, and only
// intermittent traffic can look like an effect.
type crossTraffic struct {
	cards [2]string            // near, far; empty: unknown
	past  map[[2]int][]foreign // by test and end: recent segments
}

// foreign is what a NIC carried beside the test in one segment.
type foreign struct {
	share  float64 // of the test's own bytes
	wrong  float64 // uncertainty of the share
	perSec float64 // bytes per second
}

// judge returns why a test must not count, or nothing. test is its place within the segment.
//
// It derives the test's own traffic from the sender's segments and not from the payload, so that a
// knob that changes segment sizes or retransmissions does not look like other traffic.
func (c *crossTraffic) judge(test int, r *traffic.Result) string {
	own, unsure := wireBytes(r)
	if own <= 0 || r.DurationSeconds <= 0 {
		return ""
	}
	if c.past == nil {
		c.past = map[[2]int][]foreign{}
	}
	reason := ""
	for i, end := range []struct {
		name string
		end  traffic.End
	}{{"near", r.Ends.Local}, {"far", r.Ends.Remote}} {
		card := c.cards[i]
		// A loopback counts all traffic twice, outgoing and incoming.
		if card == "" || card == "lo" || len(end.end.Counters) == 0 {
			continue
		}
		carried := float64(end.end.Counters["nic."+card+".rx_bytes"] + end.end.Counters["nic."+card+".tx_bytes"])
		now := foreign{share: carried/own - 1, wrong: unsure/own + readingSeconds/r.DurationSeconds,
			perSec: (carried - own) / r.DurationSeconds}
		key := [2]int{test, i}
		before := c.past[key]
		c.past[key] = append(before[max(0, len(before)-crossHistory+1):len(before):len(before)], now)
		if len(before) >= crossFewest && reason == "" {
			if more := now.beyond(before); more*own > crossFloor*r.DurationSeconds {
				reason = fmt.Sprintf("cross traffic on %s of the %s host: %.0f %% more than usual", card,
					end.name, 100*more)
			}
		}
	}
	return reason
}

// beyond returns how much more than usual this is, as a share of the test's own bytes; zero if it
// is not clearly more.
//
// Usual is the share or the rate, whichever is more: constant traffic is a small share of a fast
// arm and a large one of a slow arm. The uncertainty of earlier segments counts as well: with
// larger segments, headers that were overestimated before vanish.
func (f foreign) beyond(before []foreign) float64 {
	shares, rates, wrong := make([]float64, len(before)), make([]float64, len(before)), f.wrong
	for i, b := range before {
		shares[i], rates[i] = b.share, b.perSec
		wrong = max(wrong, b.wrong)
	}
	more := f.share - stats.Median(shares)
	if usual := stats.Median(rates); f.perSec > 0 {
		more = min(more, f.share*(1-usual/f.perSec))
	}
	if more <= crossShare+wrong {
		return 0
	}
	return more
}

// wireBytes estimates what a test put on the wire in both directions, and the uncertainty: NICs
// that split or merge segments count one header for several. It returns zero if that is unknown.
func wireBytes(r *traffic.Result) (own, unsure float64) {
	switch r.Test {
	case traffic.RR:
		// One segment of a byte in each direction, which also acknowledges the previous one.
		return r.TransactionsPerSec * r.DurationSeconds * 2 * (headerBytes + 1), 0
	case traffic.UDP:
		if r.UDP == nil {
			return 0, 0
		}
		const each = smallPacketBytes + headerBytes
		// whether a lost datagram was dropped before the NIC is unknown
		return float64(r.UDP.Sent) * each, float64(r.UDP.Lost) * each
	}
	var segments, acks float64
	for _, t := range slices.Concat(r.Ends.Local.TCP, r.Ends.Remote.TCP) {
		if t.Sender {
			segments += float64(t.SegsOut)
			acks += float64(t.SegsIn)
		}
	}
	headers := segments*headerBytes + acks*ackBytes
	return max(float64(r.Bytes), segments*float64(r.MSSBytes)) + headers, headers
}
