package loop

import (
	"time"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic"
)

// The length of a segment follows from the round trip: a flow needs some tens of round trips to
// reach its rate (slow start doubles once a round trip; bbr drains and probes in cycles of eight),
// and the part that counts must hold several of those cycles.
const (
	warmUpRoundTrips  = 25
	segmentRoundTrips = 50

	leastWarmUp  = 200 * time.Millisecond
	leastSegment = 800 * time.Millisecond
)

// Below 200 ms the start of the connections themselves would count; above 3 s an experiment of a
// hundred segments takes longer than anybody waits.
func warmUpFor(v *Verdict) time.Duration {
	return clamp(warmUpRoundTrips*roundTrip(v), leastWarmUp, 3*time.Second)
}

// At least 0.8 s, because the counters of processor time tick at 100 Hz and the cost per gigabyte
// of a shorter segment would hang on a few ticks; at most 8 s for the same reason as the warm-up.
func segmentFor(v *Verdict) time.Duration {
	return clamp(segmentRoundTrips*roundTrip(v), leastSegment, 8*time.Second)
}

// roundTrip is the idle round trip as far as it is known, else what the loaded stream saw as its
// least.
//
// A median for the ping, since a segment shall fit the path as it usually is; the minimum for the
// stream, as its mean holds the queue that the stream made itself.
func roundTrip(v *Verdict) time.Duration {
	for _, r := range v.Runs {
		// Not the stream's: its pings ran beside the load.
		if r.Test == traffic.Ping && r.RTT != nil && r.RTT.P50 > 0 {
			return time.Duration(r.RTT.P50 * float64(time.Second))
		}
	}
	var least float64
	for _, r := range v.Runs {
		for _, t := range append(append([]tcpinfo.TCPInfo{}, r.Ends.Local.TCP...), r.Ends.Remote.TCP...) {
			if t.Sender && t.MinRTTSeconds > 0 && (least == 0 || t.MinRTTSeconds < least) {
				least = t.MinRTTSeconds
			}
		}
	}
	return time.Duration(least * float64(time.Second))
}

func clamp(d, low, high time.Duration) time.Duration { return min(max(d, low), high) }

// A segment that a budget cuts keeps at least this share: 30 round trips that count behind 15 of
// warm-up. With fewer, slow start is still in the figure.
const leastShare = 0.6

// within cuts segments to what a budget can hold: a pilot, one trial and its confirmation. What
// somebody has asked for by a flag is not cut, and when even the shortest segments do not fit they
// stay as long as they were: the pilot then tells what budget is needed.
//
// Twelve short segments answer the question that was asked; six long ones are a budget spent
// without an answer.
func (b probing) within(left time.Duration, o TuneOptions) probing {
	for share := 1.0; share >= leastShare; share -= 0.1 {
		cut := b
		if o.Segment == 0 {
			cut.segment = max(time.Duration(share*float64(b.segment)), leastSegment)
		}
		if o.WarmUp == 0 {
			cut.warmUp = max(time.Duration(share*float64(b.warmUp)), leastWarmUp)
		}
		// A tenth stays for what nobody plans: connections of a long path, knobs, a segment that is
		// measured again.
		if 3*segmentsOfComparison*cut.each() <= left-left/10 {
			return cut
		}
	}
	return b
}

// each is how long one segment takes, with all that belongs to it.
func (b probing) each() (sum time.Duration) {
	for _, t := range newProber(nil, b).specs {
		sum += t.Duration + t.WarmUp + setUp
	}
	return sum
}
