package stamp

import (
	"fmt"

	"github.com/linerate/linerate/internal/traffic"
)

// fill makes the report out of what was counted.
func (s *sender) fill(r *Report, greeting, begin, end mark) {
	r.DurationSeconds = (s.shut - s.open).Seconds()
	r.RTT = traffic.DistributionOf(s.rtt.Snapshot())
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
	// Packets leave with 255, so what is missing of it are hops. A sender that starts with less
	// shows more hops than there are, but ours does not.
	if s.hasTTL {
		hops := wantedHops - int(s.ttl)
		r.Hops = &hops
	}
	if s.stepped > 0 {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("%d round trips were timed by the program: the clock of this host was set while they lasted",
				s.stepped))
	}
	if s.noSplit > 0 {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("%d round trips contain the time in the reflector, whose timestamps make no sense", s.noSplit))
	}
}

// result is what of the report fits a result of package traffic.
func (r *Report) result() *traffic.Result {
	way := func(w OneWay) traffic.OneWay {
		return traffic.OneWay{Delay: w.Delay, DelayErrorSeconds: w.DelayError, DelayVariation: w.DelayVariation,
			Lost: w.Lost}
	}
	r.OneWay = &traffic.OneWayResult{Up: way(r.Up), Down: way(r.Down)}
	if r.Hops != nil {
		// answers come with a TTL that only the reflector knows the start of
		r.Result.Hops = &traffic.HopCounts{Up: *r.Hops}
	}
	return r.Result
}

// wantedHops is the TTL or hop limit that packets leave with.
const wantedHops = 255

// counts is what is known of one way of a reflector that counts.
func counts(w OneWay, sent, received uint64) *traffic.DatagramCounts {
	return &traffic.DatagramCounts{
		Sent: sent, Received: received, Lost: sent - received, Reordered: w.Reordered, JitterSeconds: w.JitterSeconds,
		DelayVariation: w.DelayVariation,
	}
}

// split tells which way lost what. The marks show the reflector's counter before and after the
// measured part: it moved by as many packets as came to it. A mark that had to be sent again may
// have been lost either way, and then nobody can tell.
func (s *sender) split(r *Report, greeting, begin, end mark, lost uint64) {
	if !begin.answered {
		return
	}
	// The number that was left out is between the first two marks, so a counter moves by less than
	// the numbers do.
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
		return // a reflector that began anew, or answers that came without being counted
	}
	down := lost - up
	r.Up.Lost, r.Down.Lost = &up, &down
}

// delays gives the delays of each way where both clocks are known to be right.
func (s *sender) delays(r *Report) {
	if !s.trusted || s.answered == 0 {
		return
	}
	r.Up.DelayError, r.Down.DelayError = s.clockError, s.clockError
	// Who claims to be right and shows packets that come before they were sent is not.
	if s.up.smallest < 0 || s.down.smallest < 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"no delays of one way: both ends call their clocks right to within %.3g s together, but packets came before they were sent", s.clockError,
		))
		return
	}
	r.Up.Delay, r.Down.Delay = s.up.over(0), s.down.over(0)
}

// report is what can be said of a way without knowing the offset of the clocks.
func (w *way) report() OneWay {
	return OneWay{DelayVariation: w.over(w.smallest), JitterSeconds: w.jitter / 1e9}
}

// over is the distribution of the samples less a base.
func (w *way) over(base int64) *traffic.Distribution {
	h := newHistogram()
	for _, v := range w.samples {
		h.Record(v - base)
	}
	return traffic.DistributionOf(h.Snapshot())
}
