package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// delackLeast and delackMost bound the delay of an acknowledgement: 40 ms is TCP_DELACK_MIN of
	// Linux; 200 ms is its TCP_DELACK_MAX and the delay of other systems (RFC 1122 allows 500 ms).
	// A smoothed round trip mixes delayed and undelayed ones, so less than half of 40 ms remains
	// visible.
	delackLeast, delackMost = 0.015, 0.250
	// stalledShare is the part of the time that the connection must have waited for an
	// acknowledgement. A healthy exchange of small messages waits for its program.
	stalledShare = 0.5
)

// delayedACKWatched finds a connection of the watched host that sends small pieces and waits after
// nearly each of them for an acknowledgement that the other end delays.
//
// The sender's own numbers show it: its segments are far smaller than they may be, nothing is lost,
// data is unacknowledged most of the time (tcpi_busy_time), and its smoothed round trip is 15 to
// 250 ms longer than the smallest one. A piece that waits unsent behind it while both windows are
// open shows Nagle's algorithm at work (RFC 896). Look-alikes: a queue on the path delays full
// segments too and is not a multiple of a timer; a peer that computes answers with data, which
// carries the acknowledgement, and leaves nothing unacknowledged beyond 40 ms; an idle connection
// has no unacknowledged data.
func delayedACKWatched(s *evidence.Span) *evidence.Finding {
	if s.Sockets == nil || s.Run != nil {
		return nil
	}
	seconds := socketSeconds(s)
	var worst *watch.Connection
	var n, held int
	for i := range s.Sockets.Connections {
		c := &s.Sockets.Connections[i]
		if !stalledByACKs(c, seconds) {
			continue
		}
		n++
		if c.UnsentBytes > 0 {
			held++
		}
		if worst == nil || c.TCP.SegsOut > worst.TCP.SegsOut {
			worst = c
		}
	}
	if worst == nil {
		return nil
	}
	t := worst.TCP
	size := float64(t.BytesAcked) / float64(max(t.SegsOut, 1))
	x := &evidence.Finding{
		Code: evidence.DelayedACKStall, Severity: evidence.Warning, Where: s.Side,
		Title: fmt.Sprintf("%s in small pieces, and delayed acknowledgements keep it waiting: "+
			"the round trip to %s is %s, while the path takes %s.",
			sends(n, s.Side), worst.Remote, evidence.Seconds(t.RTTSeconds), evidence.Seconds(t.MinRTTSeconds)),
		Evidence: []evidence.Evidence{
			{Name: "round trip of " + named(worst), Value: t.RTTSeconds, Unit: "seconds",
				Source: s.Source("tcp_info tcpi_rtt")},
			{Name: "round trip, smallest", Value: t.MinRTTSeconds, Unit: "seconds",
				Source: s.Source("tcp_info tcpi_min_rtt")},
			{Name: "time with something unacknowledged", Value: min(t.BusySeconds/seconds, 1), Unit: "ratio",
				Source: s.Source("tcp_info tcpi_busy_time / time")},
			{Name: "payload in a segment, mean", Value: size, Unit: "bytes",
				Source: s.Source("tcp_info tcpi_bytes_acked / tcpi_segs_out")},
			{Name: "segments sent", Value: s.PerSecond(float64(t.SegsOut)), Unit: "segments_per_second",
				Source: s.Source("tcp_info tcpi_segs_out")},
			{Name: "connections with a piece that waits unsent", Value: float64(held), Unit: "connections",
				Source: s.Source("tcp_info tcpi_notsent_bytes")},
		},
		Rejected: []string{
			fmt.Sprintf("Not a queue on the path: its segments have %s of payload out of a possible %s.",
				evidence.Bytes(size), evidence.Bytes(float64(t.SndMSSBytes))),
			fmt.Sprintf("Not loss: %s of %s segments were retransmitted.", evidence.Count(float64(t.RetransSegs)),
				evidence.Count(float64(t.SegsOut))),
		},
		Confidence: evidence.Combine(0.6, evidence.When(held > 0, 0.6), evidence.When(t.MinRTTSeconds < 0.010, 0.3),
			evidence.When(n > 1, 0.2)),
	}
	delayedACKRemedy(s, x)
	return x
}

// stalledByACKs reports whether delayed acknowledgements stall a connection.
func stalledByACKs(c *watch.Connection, seconds float64) bool {
	t := &c.TCP
	extra := t.RTTSeconds - t.MinRTTSeconds
	switch {
	case seconds <= 0 || t.MinRTTSeconds <= 0 || t.SegsOut < 10 || t.SndMSSBytes <= 0 || t.BytesAcked == 0:
		return false // too little to judge
	case t.BusySeconds < stalledShare*seconds || extra < delackLeast || extra > delackMost ||
		t.RTTSeconds < 3*t.MinRTTSeconds:
		return false
	}
	// A connection with more than one message per 20 ms of waiting does not wait.
	return t.BytesAcked < t.SegsOut*uint64(t.SndMSSBytes)/2 && float64(t.SegsOut)/seconds < 150 &&
		t.RetransSegs*50 < t.SegsOut
}

// delayedACKRemedy proposes a change of the program, and two knobs for programs that cannot be
// changed.
func delayedACKRemedy(s *evidence.Span, x *evidence.Finding) {
	x.Remedy.Text = "Let the program write each message in one call (writev, or TCP_CORK around it), " +
		"or set TCP_NODELAY. If it cannot be changed, `ip route change … quickack 1` at the host that " +
		"acknowledges helps."
	x.Remedy.Proof = "Set and remove quickack on the route at the other end alternately: " +
		"transactions per second rise several times, and bulk throughput stays the same."
	if on, ok := s.Setting("sysctl:net.ipv4.tcp_autocorking"); ok && on == "1" && s.Count("TcpExt.TCPAutoCorking") > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "segments held back to be merged in this host",
			Value: s.Count("TcpExt.TCPAutoCorking"), Unit: "segments",
			Source: s.Source("TcpExt.TCPAutoCorking")})
		x.Remedy.Add(evidence.Candidate{Knob: "sysctl:net.ipv4.tcp_autocorking", Side: s.Side,
			Levels: []knob.Value{"0"},
			Why:    "it holds small segments back too, though only while an earlier one waits in this host"})
	}
}

// delayedACKTransactions finds that small transactions of a test, which ask for no delay, take
// longer than a ping by the time of a delayed acknowledgement. Then a device on the path, or an
// option of the test, holds small segments back.
func delayedACKTransactions(c *evidence.Case) *evidence.Finding {
	idle := 0.0
	for i := range c.Runs {
		if r := &c.Runs[i]; r.Test == traffic.Ping && r.RTT != nil {
			idle = r.RTT.P50
		}
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		if r.Test != traffic.RR || r.RTT == nil || idle <= 0 || r.TransactionsPerSec <= 0 {
			continue
		}
		extra := r.RTT.P50 - idle
		made := r.TransactionsPerSec * r.DurationSeconds
		delayed := float64(r.Ends.Local.Counters["TcpExt.DelayedACKs"] + r.Ends.Remote.Counters["TcpExt.DelayedACKs"])
		if !timerWait(extra) || r.RTT.P90-r.RTT.P50 > timerSpread || r.RTT.P50-r.RTT.Min > extra/2 || made < 5 ||
			delayed < 0.7*made {
			continue
		}
		x := &evidence.Finding{
			Code: evidence.DelayedACKStall, Severity: evidence.Warning, Where: "path",
			Title: fmt.Sprintf("A transaction takes %s while a ping takes %s, and nearly each involved a delayed "+
				"acknowledgement: small pieces wait for it.",
				evidence.Seconds(r.RTT.P50), evidence.Seconds(idle)),
			Evidence: []evidence.Evidence{
				{Name: "transaction, median", Value: r.RTT.P50, Unit: "seconds",
					Source: "request and response of one byte"},
				{Name: "idle round trip, median", Value: idle, Unit: "seconds", Source: "ping before the load"},
				{Name: "transactions", Value: made, Unit: "transactions", Source: "the run"},
				{Name: "acknowledgements sent by their timer", Value: delayed, Unit: "segments",
					Source: "TcpExt.DelayedACKs (both ends)"},
			},
			Rejected: []string{fmt.Sprintf("Not a slow path: its round trip is %s.", evidence.Seconds(idle))},
			Confidence: evidence.Combine(0.6, evidence.When(delayed >= 0.9*made, 0.4),
				evidence.When(r.RTT.P90-r.RTT.P50 < 0.005, 0.3)),
		}
		x.Remedy.Text = "Look for a proxy or a tunnel between the hosts that merges small segments. " +
			"In your own programs, set TCP_NODELAY and write each message in one call."
		x.Remedy.Proof = "Set and remove quickack on the route at the answering host alternately: " +
			"transactions become as short as pings, and bulk throughput stays the same."
		return x
	}
	return nil
}

// timerSpread is how much the times of transactions that wait for a timer may differ, in seconds.
// Those that wait for a CPU scatter over a wider range.
const timerSpread = 0.015

// timerWait reports whether a delay is that of a delayed acknowledgement: the 40 ms of Linux or the
// 200 ms of other systems, plus what a busy host adds.
func timerWait(seconds float64) bool {
	return seconds >= 0.030 && seconds <= 0.060 || seconds >= 0.180 && seconds <= 0.230
}

// socketSeconds returns how long the sockets of a span were watched, in seconds.
func socketSeconds(s *evidence.Span) float64 {
	if s.Sockets != nil && s.Sockets.Seconds > 0 {
		return s.Sockets.Seconds
	}
	return s.Seconds
}

// named returns a connection for use in a sentence.
func named(c *watch.Connection) string { return fmt.Sprintf("%s to %s", c.Local, c.Remote) }

// sends returns the beginning of a sentence about n connections of a host.
func sends(n int, side string) string {
	if n == 1 {
		return fmt.Sprintf("A program of the %s host writes", side)
	}
	return fmt.Sprintf("On %d connections the %s host writes", n, side)
}
