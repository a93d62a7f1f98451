package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/traffic"
)

// maxStealRatio is the share of stolen CPU time above which a segment says more about the
// neighbours than about the knob.
//
// It is the share at which a diagnosis mentions stolen time too. The loss of throughput is at least
// that of the time, and five per cent are several times the least useful effect.
const maxStealRatio = 0.05

// disturbed tells why a segment must not count: stolen CPU time, or a link that went down or up
// meanwhile.
//
// Only what cannot come from the knob under test may discard a segment, or discarding would choose
// the results. A change of class d3 moves the link itself, but before the segment and not within
// it.
func disturbed(r *traffic.Result) string {
	for _, end := range []struct {
		name string
		end  traffic.End
	}{{"near", r.Ends.Local}, {"far", r.Ends.Remote}} {
		var steal, all float64
		for _, c := range end.end.CPUs {
			if c.CPU < 0 {
				continue
			}
			steal += c.Steal
			all += c.User + c.System + c.IRQ + c.SoftIRQ + c.Steal + c.Idle
		}
		if all > 0 && steal/all > maxStealRatio {
			return fmt.Sprintf("%.0f %% of the CPU time of the %s host was stolen", 100*steal/all, end.name)
		}
		for name, n := range end.end.Counters {
			if n > 0 && strings.HasPrefix(name, "nic.") && strings.HasSuffix(name, ".carrier_changes") {
				return fmt.Sprintf("link event on the %s host: %s moved by %d", end.name, name, n)
			}
		}
	}
	return ""
}

const (
	// crossShare is how much more than usual, as a share of the test's own bytes, other traffic may
	// be: a tenth of the link taken away is a tenth of the throughput.
	crossShare = 0.10
	// crossFloor is what never counts, bytes per second: the talk of a host with its neighbours.
	crossFloor = 250_000
	// crossHistory is how many segments tell what is usual; fewer than crossFewest tell nothing.
	crossHistory, crossFewest = 16, 4
	// readingSeconds is how much longer than the window the time between two readings of the
	// counters may be: the test's own start and end, its queue that drains, and a processor that is
	// late. A fast arm puts more into it than a slow one, so that it must not count.
	readingSeconds = 0.2
	// Headers of a segment with timestamps, of Ethernet, IPv6 and TCP; and an acknowledgement for
	// every second one.
	headerBytes, ackBytes = 86, 86
)

// crossTraffic finds segments in which the cards carried clearly more than the test did and than
// they do at other times. A host in production always carries something: what is there all the time
// is in both arms alike, and only what comes and goes can be taken for an effect.
type crossTraffic struct {
	cards [2]string            // near, far; empty: not known
	past  map[[2]int][]foreign // by test and end: recent segments
}

// foreign is what a card carried beside the test in one segment.
type foreign struct {
	share  float64 // of the test's own bytes
	wrong  float64 // by how much the share may be wrong
	perSec float64 // bytes per second
}

// judge tells why a test must not count, or nothing. test is its place within the segment.
//
// What the test itself put on the wire is reckoned from the sender's segments and not from the
// payload, so that a knob that changes segment sizes or retransmissions does not look like other
// traffic.
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
		// A loopback carries everything twice, once out and once in.
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

// beyond is how much more than usual this is, as a share of the test's own bytes; zero: not clearly
// more.
//
// Usual is the share or the rate, whichever is more: traffic of a steady rate is a small share of a
// fast arm and a large one of a slow arm. The doubt of earlier segments counts as well: with larger
// segments the headers that were reckoned too high before are gone.
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

// wireBytes is about what a test put on the wire, both ways together, and by how much that may be
// wrong: cards that cut up or put together segments count one header for several. Zero where
// nothing is known of it.
func wireBytes(r *traffic.Result) (own, unsure float64) {
	switch r.Test {
	case traffic.RR:
		// Each way one segment of a byte, which acknowledges the one before.
		return r.TransactionsPerSec * r.DurationSeconds * 2 * (headerBytes + 1), 0
	case traffic.UDP:
		if r.UDP == nil {
			return 0, 0
		}
		const each = smallPacketBytes + headerBytes
		// where a lost one died, and whether before the card, is not asked
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
