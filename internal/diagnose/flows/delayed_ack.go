package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// delackLeast and delackMost bound how long an acknowledgement is held back: 40 ms is
	// TCP_DELACK_MIN of Linux, 200 ms its TCP_DELACK_MAX and what others use (RFC 1122 allows 500
	// ms). A smoothed round trip has those that waited and those that did not, so that less than
	// the half of 40 ms shows.
	delackLeast, delackMost = 0.015, 0.250
	// stalledShare of the time must the connection have waited for an acknowledgement: a healthy
	// exchange of small messages waits for its program.
	stalledShare = 0.5
)

// delayedACKWatched: a connection of the watched host sends small pieces, and waits with nearly
// each of them for an acknowledgement that is held back at the other end.
//
// The sender's own numbers tell: its segments are far smaller than they may be, nothing is lost,
// something is unacknowledged most of the time (tcpi_busy_time), and its smoothed round trip has 15
// to 250 ms that the smallest has not. A piece that lies unsent behind it, with both windows open,
// is Nagle's rule at work (RFC 896). Look-alikes: a queue on the path delays full segments too and
// is no multiple of a timer; a peer that thinks answers with data, which acknowledges at once when
// it comes, and lets nothing unacknowledged wait beyond 40 ms; on an idle connection nothing is
// unacknowledged.
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
		Title: fmt.Sprintf("%s in small pieces and delayed acknowledgements keep it waiting: the round trip to %s is %s where the path takes %s.",
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
			fmt.Sprintf("Not a queue on the path: its segments have %s of payload of the %s that they may have.",
				evidence.Bytes(size), evidence.Bytes(float64(t.SndMSSBytes))),
			fmt.Sprintf("Not loss: %s of %s segments were sent again.", evidence.Count(float64(t.RetransSegs)),
				evidence.Count(float64(t.SegsOut))),
		},
		Confidence: evidence.Combine(0.6, evidence.When(held > 0, 0.6), evidence.When(t.MinRTTSeconds < 0.010, 0.3),
			evidence.When(n > 1, 0.2)),
	}
	delayedACKRemedy(s, x)
	return x
}

// stalledByACKs judges one connection over a time.
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
	// More than one message for each 20 ms of waiting is not waiting.
	return t.BytesAcked < t.SegsOut*uint64(t.SndMSSBytes)/2 && float64(t.SegsOut)/seconds < 150 &&
		t.RetransSegs*50 < t.SegsOut
}

// delayedACKRemedy is a matter of the program; two knobs help those that cannot be changed.
func delayedACKRemedy(s *evidence.Span, x *evidence.Finding) {
	x.Remedy.Text = "Let the program write a message in one piece (writev, or TCP_CORK around it), or set TCP_NODELAY. Where it cannot be changed, `ip route " +
		"change … quickack 1` at the host that acknowledges helps."
	x.Remedy.Proof = "Set quickack on the route at the other end and take it back by turns: transactions per second rise manifold, and bulk throughput stays."
	if on, ok := s.Setting("sysctl:net.ipv4.tcp_autocorking"); ok && on == "1" && s.Count("TcpExt.TCPAutoCorking") > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "segments held back to be merged in this host",
			Value: s.Count("TcpExt.TCPAutoCorking"), Unit: "segments",
			Source: s.Source("TcpExt.TCPAutoCorking")})
		x.Remedy.Add(evidence.Candidate{Knob: "sysctl:net.ipv4.tcp_autocorking", Side: s.Side,
			Levels: []knob.Value{"0"},
			Why:    "it holds small segments back too, though only while an earlier one waits in this host"})
	}
}

// delayedACKTransactions: our own small transactions, which ask for no delay, take a delayed
// acknowledgement longer than a ping. Then somebody on the way, or an option of this test, holds
// small segments back.
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
			Title: fmt.Sprintf("A transaction takes %s where a ping takes %s, and with nearly each a delayed acknowledgement was sent: small pieces wait for it.",
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
		x.Remedy.Text = "Look for a proxy or a tunnel between the hosts that gathers small segments; in programs of your own set TCP_NODELAY and write a message " +
			"in one piece."
		x.Remedy.Proof = "Set quickack on the route at the answering host and take it back by turns: transactions become as short as pings, bulk throughput stays."
		return x
	}
	return nil
}

// timerSpread is how far transactions that wait for a timer may lie apart, seconds; those that wait
// for a processor scatter over all of it.
const timerSpread = 0.015

// timerWait tells the time of a delayed acknowledgement: 40 ms of Linux, or the 200 ms of others,
// and what a busy host adds.
func timerWait(seconds float64) bool {
	return seconds >= 0.030 && seconds <= 0.060 || seconds >= 0.180 && seconds <= 0.230
}

// socketSeconds is the time over which the sockets of a span were watched.
func socketSeconds(s *evidence.Span) float64 {
	if s.Sockets != nil && s.Sockets.Seconds > 0 {
		return s.Sockets.Seconds
	}
	return s.Seconds
}

// named is a connection in a sentence.
func named(c *watch.Connection) string { return fmt.Sprintf("%s to %s", c.Local, c.Remote) }

// sends begins a sentence on so many connections of a host.
func sends(n int, side string) string {
	if n == 1 {
		return fmt.Sprintf("A program of the %s host writes", side)
	}
	return fmt.Sprintf("On %d connections the %s host writes", n, side)
}
