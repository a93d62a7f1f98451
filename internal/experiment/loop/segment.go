package loop

import (
	"time"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic"
)

// The length of a segment follows from the round trip: a flow needs tens of round trips to reach
// its rate (slow start doubles once per round trip; bbr drains and probes in cycles of eight), and
// the measured part must hold several of those cycles.
const (
	warmUpRoundTrips  = 25
	segmentRoundTrips = 50

	leastWarmUp  = 200 * time.Millisecond
	leastSegment = 800 * time.Millisecond
)

// warmUpFor returns the warm-up of a segment. Below 200 ms the start of the connections would
// count; above 3 s an experiment of a hundred segments takes too long.
func warmUpFor(v *Verdict) time.Duration {
	return clamp(warmUpRoundTrips*roundTrip(v), leastWarmUp, 3*time.Second)
}

// segmentFor returns the length of a segment: at least 0.8 s, because the counters of CPU time tick
// at 100 Hz and the cost per gigabyte of a shorter segment would depend on a few ticks; at most 8
// s, to bound the experiment.
func segmentFor(v *Verdict) time.Duration {
	return clamp(segmentRoundTrips*roundTrip(v), leastSegment, 8*time.Second)
}

// roundTrip returns the idle round trip if known, otherwise the smallest one of the loaded stream.
//
// It uses the median of the ping, because a segment must fit the usual state of the path, and the
// minimum of the stream, because its mean includes the queue that the stream itself made.
func roundTrip(v *Verdict) time.Duration {
	for _, r := range v.Runs {
		// Not the pings of the stream, which ran beside the load.
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

// leastShare is the part of its length that a shortened segment keeps at least: 30 measured round
// trips after 15 of warm-up. With fewer, slow start affects the figure.
const leastShare = 0.6

// within shortens segments to what a budget can hold: a pilot, one trial and its confirmation. It
// does not shorten what the user set by a flag, and if even the shortest segments do not fit, it
// keeps their length: the pilot then reports the necessary budget.
//
// Twelve short segments answer the question; six long ones spend the budget without an answer.
func (b probing) within(left time.Duration, o TuneOptions) probing {
	for share := 1.0; share >= leastShare; share -= 0.1 {
		cut := b
		if o.Segment == 0 {
			cut.segment = max(time.Duration(share*float64(b.segment)), leastSegment)
		}
		if o.WarmUp == 0 {
			cut.warmUp = max(time.Duration(share*float64(b.warmUp)), leastWarmUp)
		}
		// A tenth remains for the unplanned: connections of a long path, knobs, a repeated segment.
		if 3*segmentsOfComparison*cut.each() <= left-left/10 {
			return cut
		}
	}
	return b
}

// each returns how long one segment takes with its overhead.
func (b probing) each() (sum time.Duration) {
	for _, t := range newProber(nil, b).specs {
		sum += t.Duration + t.WarmUp + setUp
	}
	return sum
}
