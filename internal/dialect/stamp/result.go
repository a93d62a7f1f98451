package stamp

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/traffic"
)

// fill computes the report from the counts.
func (s *sender) fill(r *Report, greeting, begin, end mark) {
	r.DurationSeconds = (s.shut - s.open).Seconds()
	r.RTT = s.rtt.Snapshot().OrNil()
	lost := max(s.sent-s.answered, 0)
	if s.sent > 0 {
		ratio := float64(lost) / float64(s.sent)
		r.LossRatio = &ratio
		r.PacketsPerSec = float64(s.sent) / r.DurationSeconds
	}
	r.Up, r.Down = s.up.report(), s.down.report()
	s.delays(r)
	s.split(r, greeting, begin, end, uint64(lost))
	duplicates, reordered := uint64(s.duplicates), s.up.reordered+s.down.reordered
	r.UDP = &traffic.Datagrams{DatagramCounts: traffic.DatagramCounts{
		Sent: uint64(s.sent), Received: uint64(s.answered), Lost: uint64(lost), Duplicates: &duplicates,
		Reordered: &reordered, JitterSeconds: s.whole.jitter / 1e9,
	}}
	if r.Up.Lost != nil {
		arrived := uint64(s.sent) - *r.Up.Lost
		r.UDP.Up = counts(r.Up, uint64(s.sent), arrived)
		r.UDP.Down = counts(r.Down, arrived, uint64(s.answered))
	}
	// Packets leave with 255, so the difference is the number of hops. A sender that starts with
	// less shows more hops than there are, but this one does not.
	if s.hasTTL {
		hops := wantedHops - int(s.ttl)
		r.Hops = &hops
	}
	if s.stepped > 0 {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("%d round trips were timed by the program: the clock of this host was set meanwhile",
				s.stepped))
	}
	if s.noSplit > 0 {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("%d round trips contain the time in the reflector, whose timestamps are inconsistent",
				s.noSplit))
	}
}

// result returns the part of the report that fits a result of package traffic.
func (r *Report) result() *traffic.Result {
	way := func(w OneWay) traffic.OneWay {
		return traffic.OneWay{Delay: w.Delay, DelayErrorSeconds: w.DelayError, DelayVariation: w.DelayVariation,
			Lost: w.Lost}
	}
	r.OneWay = &traffic.OneWayResult{Up: way(r.Up), Down: way(r.Down)}
	if r.Hops != nil {
		// only the reflector knows the initial TTL of its answers
		r.Result.Hops = &traffic.HopCounts{Up: *r.Hops}
	}
	return r.Result
}

// wantedHops is the TTL or hop limit with which packets leave.
const wantedHops = 255

// counts returns the counts of one direction, if the reflector counts.
func counts(w OneWay, sent, received uint64) *traffic.DatagramCounts {
	return &traffic.DatagramCounts{
		Sent: sent, Received: received, Lost: sent - received, Reordered: w.Reordered, JitterSeconds: w.JitterSeconds,
		DelayVariation: w.DelayVariation,
	}
}

// split computes which direction lost packets. The marks show the reflector's counter before and
// after the measured part: the difference is the number of packets that reached it. If a mark had
// to be sent again, it may have been lost in either direction, and the split is unknown.
func (s *sender) split(r *Report, greeting, begin, end mark, lost uint64) {
	if !begin.answered {
		return
	}
	// The skipped number is between the first two marks, so a counter moves by less than the
	// numbers do.
	r.Stateful = begin.reflector-greeting.reflector < begin.sequence-greeting.sequence &&
		begin.reflector != begin.sequence
	if r.Stateful {
		r.Up.Reordered, r.Down.Reordered = &s.up.reordered, &s.down.reordered
	}
	if !r.Stateful || !end.answered || end.tries != 1 {
		return
	}
	passed, came := end.sequence-begin.sequence, end.reflector-begin.reflector-s.upDuplicates
	up := uint64(passed - came)
	if came > passed || up > lost {
		return // the reflector restarted, or sent answers that it did not count
	}
	down := lost - up
	r.Up.Lost, r.Down.Lost = &up, &down
}

// delays computes the delays of each direction, if both clocks are known to be right.
func (s *sender) delays(r *Report) {
	if !s.trusted || s.answered == 0 {
		return
	}
	r.Up.DelayError, r.Down.DelayError = s.clockError, s.clockError
	// An end that reports a synchronised clock, but whose packets arrive before they were sent, is
	// wrong.
	if s.up.smallest < 0 || s.down.smallest < 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"no one-way delays: both ends report clocks that are accurate to %.3g s together, "+
				"but packets arrived before they were sent", s.clockError,
		))
		return
	}
	r.Up.Delay, r.Down.Delay = s.up.over(0), s.down.over(0)
}

// report returns what is known of a direction without the offset of the clocks.
func (w *way) report() OneWay {
	return OneWay{DelayVariation: w.over(w.smallest), JitterSeconds: w.jitter / 1e9}
}

// over returns the distribution of the samples minus a base.
func (w *way) over(base int64) *stats.Latencies {
	h := newHistogram()
	for _, v := range w.samples {
		h.Record(v - base)
	}
	return h.Snapshot().OrNil()
}
