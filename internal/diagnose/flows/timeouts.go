package flows

import (
	"fmt"
	"math"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// leastRTO is TCP_RTO_MIN of Linux in seconds: a sender that loses its last segments is silent
	// for that long plus a round trip.
	leastRTO = 0.200
	// stallNotice and stallWarning are the shares of their time that flows spent waiting for that
	// timer.
	stallNotice, stallWarning = 0.03, 0.10
	// leastQueue is the least delay, in seconds, that shows a queue which drops: a quarter of a
	// millisecond is twenty full frames at a gigabit, as in the smallest switches.
	leastQueue = 0.00025
	// Fewer than fewTimeouts are normal: slow start ends with one on many sound paths. Below
	// manyTimeouts a run of seconds is too short for a warning.
	fewTimeouts, manyTimeouts = 3, 5
)

// timeoutsIncast finds whole windows that are lost at once, so that nothing in flight reveals the
// loss and the sender waits for its timer.
//
// This happens when many senders begin together in front of a shallow queue, each with a window of
// a few segments. The cost is the number of timeouts times the least timeout. Look-alikes: random
// loss with windows large enough for a repair within a round trip (then this is a notice, and the
// loss the finding); and a bloated queue, in which segments wait longer than the timer: then the
// kernel finds that it fired needlessly (TCPSpuriousRTOs), or the delay belongs to another rule.
func timeoutsIncast(f *evidence.Flow) *evidence.Finding {
	// The counters cover the whole host. A timeout of the flow retransmitted a segment of it, and
	// not as a fast retransmission, which bounds the flow's own timeouts.
	counters := f.Sender.Run.Counters
	timeouts := min(dataTimeouts(counters), max(f.Retransmits-float64(counters["TcpExt.TCPFastRetrans"]), 0))
	spent := f.Run.DurationSeconds * float64(f.Streams)
	if f.Streams == 0 || timeouts < fewTimeouts || spent <= 0 || f.RateBitsPerSec <= 0 || f.Segments <= 0 {
		return nil
	}
	if f.Added() >= bloatWarning || 2*float64(counters["TcpExt.TCPSpuriousRTOs"]) >= timeouts {
		return nil
	}
	rto := rtoMin(f) + f.Loaded()
	share := min(timeouts*rto/spent, 1)
	if share < stallNotice {
		return nil
	}
	// A few microseconds more are the hosts' own turns and no queue, however short the empty path is.
	full := f.Queued() || f.Base() > 0 && f.UnderLoad() >= 1.5*f.Base() && f.Added() >= leastQueue
	window := f.CwndBytes / float64(f.Streams)
	x := &evidence.Finding{
		Code: evidence.TimeoutsIncast, Severity: evidence.Notice, Where: "path",
		Title: fmt.Sprintf("Retransmission timers fired %s times and kept %s waiting for about %s of the time: "+
			"%s of the segments were lost.",
			evidence.Count(timeouts), streamsOf(f.Streams), evidence.Percent(share), evidence.Percent(f.Loss())),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "retransmission timeouts", Value: timeouts, Unit: "timeouts",
				Source: "TcpExt.TCPTimeouts less TCPSynRetrans (" + f.Sender.Name + ")"},
			evidence.Evidence{Name: "time spent waiting for them", Value: share, Unit: "ratio",
				Source: fmt.Sprintf("timeouts × %s / (duration × streams)", evidence.Seconds(rto))},
			evidence.Evidence{Name: "segments sent again", Value: f.Loss(), Unit: "ratio",
				Source: f.TCPInfo("tcpi_total_retrans / tcpi_segs_out")},
			evidence.Evidence{Name: "congestion window of a stream, mean", Value: window, Unit: "bytes",
				Source: f.TCPInfo("tcpi_snd_cwnd")}),
		Rejected: []string{
			fmt.Sprintf("Not a bloated queue, in which the timer fires needlessly: "+
				"the round trip under load is %s, less than the %s of the timer.",
				evidence.Seconds(f.Loaded()), evidence.Seconds(rto)),
			f.NotReceiveWindow(), f.NotSendBuffer(), notLocalDrops(f, f.Retransmits),
		},
		Confidence: evidence.Combine(0.6, evidence.When(share >= stallWarning, 0.4), evidence.When(full, 0.3),
			evidence.When(window < 5*f.MSSBytes, 0.3)),
	}
	if share >= stallWarning && full && timeouts >= manyTimeouts && !droppedHere(f, f.Retransmits) {
		x.Severity = evidence.Warning
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not random loss: the round trip grows from %s to %s, so a full queue drops the packets.",
				evidence.Seconds(f.Base()), evidence.Seconds(f.UnderLoad())))
	}
	x.Remedy.Text = "Use fewer simultaneous senders, a deeper queue where they meet, " +
		"or marks instead of drops there (ECN, dctcp). Pacing (fq) spreads their bursts; " +
		"a lower rto_min on the route shortens the wait inside a data centre."
	x.Remedy.Proof = "Run with a quarter of the streams and with all of them alternately: the timeouts vanish, " +
		"and the sum of the rates stays the same. A change of buffers must make no difference."
	return x
}

// dataTimeouts returns the timeouts of established connections: TCPTimeouts includes those of
// handshakes, whose retransmissions have a counter of their own.
func dataTimeouts(counters map[string]uint64) float64 {
	all, handshakes := counters["TcpExt.TCPTimeouts"], counters["TcpExt.TCPSynRetrans"]
	return float64(all - min(all, handshakes))
}

// rtoMin returns the least retransmission timeout of the sender towards the receiver, in seconds.
func rtoMin(f *evidence.Flow) float64 {
	for _, r := range f.Sender.Routes {
		if r.RTOMinSec > 0 {
			return r.RTOMinSec
		}
	}
	if us, ok := f.Sender.Number("sysctl:net.ipv4.tcp_rto_min_us", 0); ok && us > 0 && !math.IsInf(us, 0) {
		return us / 1e6
	}
	return leastRTO
}

// streamsOf returns a number of streams in words.
func streamsOf(n int) string {
	if n == 1 {
		return "one stream"
	}
	return fmt.Sprintf("%d streams", n)
}

const (
	// passiveTimeouts per second, and timeoutsPerSegment of the segments sent: a server on the
	// Internet always has some peers that disappeared, each with a few timeouts at growing
	// distances. One in a thousand segments is far more than those cause.
	passiveTimeouts, timeoutsPerSegment = 1.0, 1e-3
)

// timeoutsWatched is [timeoutsIncast] for a host that was watched while its own programs sent.
func timeoutsWatched(s *evidence.Span) *evidence.Finding {
	if s.Run != nil || s.SinceBoot {
		return nil
	}
	timeouts, sent, again := dataTimeouts(s.Counters), s.Count("Tcp.OutSegs"), s.Count("Tcp.RetransSegs")
	if timeouts < fewTimeouts || s.PerSecond(timeouts) < passiveTimeouts || timeouts < timeoutsPerSegment*sent {
		return nil
	}
	if 2*s.Count("TcpExt.TCPSpuriousRTOs") >= timeouts {
		return nil
	}
	stalled := s.PerSecond(timeouts) * leastRTO
	x := &evidence.Finding{
		Code: evidence.TimeoutsIncast, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("Connections of the %s host waited for the retransmission timer %s times %s, "+
			"each time for %s or more.",
			s.Side, evidence.Count(timeouts), s.When(), evidence.Seconds(leastRTO)),
		Evidence: []evidence.Evidence{
			{Name: "retransmission timeouts", Value: timeouts, Unit: "timeouts",
				Source: s.Source("TcpExt.TCPTimeouts less TCPSynRetrans")},
			{Name: "connections waiting for the timer, on average", Value: stalled, Unit: "connections",
				Source: s.Source("timeouts × 200 ms / time")},
			{Name: "segments sent", Value: sent, Unit: "segments", Source: s.Source("Tcp.OutSegs")},
			{Name: "segments sent again", Value: again, Unit: "segments", Source: s.Source("Tcp.RetransSegs")},
		},
		Rejected: []string{
			fmt.Sprintf("Not single losses, which take a round trip to repair: "+
				"the timer caused %s of the %s retransmissions.",
				evidence.Count(timeouts), evidence.Count(again)),
			fmt.Sprintf("Not unanswered handshakes: those retransmitted %s segments (TcpExt.TCPSynRetrans), "+
				"which do not count here.",
				evidence.Count(s.Count("TcpExt.TCPSynRetrans"))),
		},
		Confidence: evidence.Combine(0.6, evidence.When(timeouts >= 0.01*sent, 0.4),
			evidence.When(again >= 0.02*sent, 0.3)),
	}
	// Connections to peers that disappeared time out again and again and lose no other segments.
	// Senders that lose whole windows receive answers after each timeout and lose much besides.
	if stalled >= 1 && timeouts >= 0.003*sent && again >= 2*timeouts {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Look where the senders meet: a switch port with a shallow queue in front of a slower link. " +
		"Fewer simultaneous senders, a deeper queue there, pacing (fq), or marks instead of drops (ECN, " +
		"dctcp) help."
	x.Remedy.Proof = "Let a quarter of the connections send at a time, and all of them, alternately: " +
		"the timeouts vanish while the sum of the rates stays the same."
	return x
}
