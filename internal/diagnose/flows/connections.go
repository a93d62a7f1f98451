package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
)

// What a watched connection must have done to be judged: sent for half of the time, and enough of
// it that shares mean something. An idle connection is never held by anything.
const (
	watchedBusy  = 0.5
	watchedBytes = 256 << 10
)

// sending gives the connection that moved most of those to which a fault applies, and how many
// there are. Connections that mostly received, that rested, or that stayed inside the host are left
// out: on loopback the other end is a program, and not a path.
func sending(s *evidence.Span, fault func(c *watch.Connection) bool) (worst *watch.Connection, n int) {
	if s.Sockets == nil || s.Run != nil {
		return nil, 0
	}
	seconds := socketSeconds(s)
	for i := range s.Sockets.Connections {
		c := &s.Sockets.Connections[i]
		if !c.TCP.Sender || c.Remote.Addr().IsLoopback() || seconds <= 0 || c.TCP.BusySeconds < watchedBusy*seconds ||
			c.TCP.BytesAcked < watchedBytes {
			continue
		}
		if !fault(c) {
			continue
		}
		if n++; worst == nil || c.TCP.BytesAcked > worst.TCP.BytesAcked {
			worst = c
		}
	}
	return worst, n
}

// watchedRate is what a connection had acknowledged, bits per second.
func watchedRate(s *evidence.Span, c *watch.Connection) float64 {
	if seconds := socketSeconds(s); seconds > 0 {
		return float64(c.TCP.BytesAcked) * 8 / seconds
	}
	return 0
}

// watchedFill is the part of a window that the rate fills on the empty path.
func watchedFill(s *evidence.Span, c *watch.Connection, window int64) float64 {
	if window <= 0 {
		return 0
	}
	return watchedRate(s, c) / 8 * c.TCP.MinRTTSeconds / float64(window)
}

// connectionEvidence is what every verdict on a watched connection shows.
func connectionEvidence(s *evidence.Span, c *watch.Connection, n int) []evidence.Evidence {
	t := c.TCP
	return []evidence.Evidence{
		{Name: "connection", Value: named(c), Source: s.Source("sock_diag")},
		{Name: "connections of this kind", Value: float64(n), Unit: "connections", Source: s.Source("sock_diag")},
		{Name: "acknowledged", Value: watchedRate(s, c), Unit: "bits_per_second",
			Source: s.Source("tcp_info tcpi_bytes_acked")},
		{Name: "round trip", Value: t.RTTSeconds, Unit: "seconds", Source: s.Source("tcp_info tcpi_rtt")},
		{Name: "round trip, smallest", Value: t.MinRTTSeconds, Unit: "seconds",
			Source: s.Source("tcp_info tcpi_min_rtt")},
		{Name: "busy time limited by the receive window", Value: part(t.RwndLimitedSeconds, t.BusySeconds),
			Unit:   "ratio",
			Source: s.Source("tcp_info tcpi_rwnd_limited / tcpi_busy_time")},
		{Name: "busy time limited by the send buffer", Value: part(t.SndbufLimitedSeconds, t.BusySeconds),
			Unit:   "ratio",
			Source: s.Source("tcp_info tcpi_sndbuf_limited / tcpi_busy_time")},
		{Name: "segments sent again", Value: part(float64(t.RetransSegs), float64(t.SegsOut)), Unit: "ratio",
			Source: s.Source("tcp_info tcpi_total_retrans / tcpi_segs_out")},
	}
}

// part is a share of a whole, 0 of nothing and never more than 1.
func part(x, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return min(x/of, 1)
}

// receiveWindowWatched: the far end's window holds a connection of this host.
//
// From one end a buffer that is too small and a program that reads slowly look alike: a reader who
// is behind leaves a window of just what it takes in a round trip. Only a window that is shut tells
// of a reader. And slow reading may be meant so (a player that shows a film at its own pace). So
// this is a notice, which says what to look at over there.
func receiveWindowWatched(s *evidence.Span) *evidence.Finding {
	c, n := sending(s, func(c *watch.Connection) bool {
		return part(c.TCP.RwndLimitedSeconds, c.TCP.BusySeconds) >= evidence.LimitedShare && c.TCP.MinRTTSeconds > 0
	})
	if c == nil {
		return nil
	}
	t := c.TCP
	share := part(t.RwndLimitedSeconds, t.BusySeconds)
	x := &evidence.Finding{
		Code: evidence.ReceiveWindowLimited, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("The receiver holds the connection to %s at %s: its window was full for %s of the time on a round trip of %s.",
			c.Remote, evidence.Rate(watchedRate(s, c)), evidence.Percent(share), evidence.Seconds(t.RTTSeconds)),
		Evidence: append(connectionEvidence(s, c, n),
			evidence.Evidence{Name: "receive window offered at the end", Value: float64(t.SndWndBytes), Unit: "bytes",
				Source: s.Source("tcp_info tcpi_snd_wnd")}),
		Rejected: []string{
			fmt.Sprintf("Not the send buffer: it held the sender for %s of its busy time.",
				evidence.Percent(part(t.SndbufLimitedSeconds, t.BusySeconds))),
			fmt.Sprintf("Not loss: %s of %s segments were sent again.", evidence.Count(float64(t.RetransSegs)),
				evidence.Count(float64(t.SegsOut))),
		},
		Confidence: evidence.Combine(0.5, evidence.When(share >= 0.8, 0.4)),
	}
	if t.SndWndBytes == 0 && t.SegsOut > 0 {
		x.Rejected = append(x.Rejected,
			"Not a small buffer alone: the window is shut (0 bytes) at the last reading, so that what arrived had not been read.")
	}
	x.Remedy.Text = fmt.Sprintf(
		"Look at %s whether its program reads as fast as it may (processor, disk, or meant so); if it does, its receive buffer is too "+
			"small: the third field of its net.ipv4.tcp_rmem, or what the program sets itself.", c.Remote.Addr())
	x.Remedy.Proof = "Send to `linerate serve` on that host in place of the program: if that is faster, the program is the limit. If it is not, raise the " +
		"buffer there and take it back by turns."
	return x
}

// sendBufferWatched: the send buffer holds a connection of this host.
func sendBufferWatched(s *evidence.Span) *evidence.Finding {
	c, n := sending(s, func(c *watch.Connection) bool {
		t := &c.TCP
		limit := c.Memory.SendLimitBytes
		return t.UnsentLimitBytes == 0 && part(t.SndbufLimitedSeconds, t.BusySeconds) >= 0.3 &&
			t.MinRTTSeconds >= 0.001 && t.RTTSeconds < 1.5*t.MinRTTSeconds &&
			watchedFill(s, c, limit) >= sendBufferFill
	})
	if c == nil {
		return nil
	}
	t := c.TCP
	x := &evidence.Finding{
		Code: evidence.SendBufferLimited, Severity: evidence.Warning, Where: s.Side,
		Title: fmt.Sprintf("The send buffer of %s holds the connection to %s at %s on a round trip of %s.",
			evidence.Bytes(float64(c.Memory.SendLimitBytes)), c.Remote, evidence.Rate(watchedRate(s, c)),
			evidence.Seconds(t.RTTSeconds)),
		Evidence: append(connectionEvidence(s, c, n),
			evidence.Evidence{Name: "send buffer", Value: float64(c.Memory.SendLimitBytes), Unit: "bytes",
				Source: s.Source("SK_MEMINFO_SNDBUF")}),
		Rejected: []string{
			fmt.Sprintf("Not the receive window: it held the sender for %s of its busy time.",
				evidence.Percent(part(t.RwndLimitedSeconds, t.BusySeconds))),
			fmt.Sprintf("Not a queue on the path: the round trip is %s, smallest %s.", evidence.Seconds(t.RTTSeconds),
				evidence.Seconds(t.MinRTTSeconds)),
		},
		Confidence: 0.75,
	}
	wmem, known := s.Number(evidence.TCPWmem, 2)
	x.Remedy.Text = "Look for a program that sets SO_SNDBUF itself, which ends autotuning; or raise the third field of net.ipv4.tcp_wmem."
	if known && float64(c.Memory.SendLimitBytes) >= 0.9*wmem {
		present, _ := s.Setting(evidence.TCPWmem)
		x.Remedy.Text = fmt.Sprintf("Raise the third field of net.ipv4.tcp_wmem, %s now, at which the buffer stands.",
			evidence.Bytes(wmem))
		x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPWmem, Side: s.Side,
			Levels: evidence.BufferLevels(present, 2*wmem, 1),
			Why:    "the buffer must hold everything that is not acknowledged yet"})
	}
	x.Remedy.Proof = "Raise it and take it back by turns, with new connections: the rate must follow the buffer as long as the link has room."
	return x
}

// watchedLoss is the least loss of a watched connection that is judged, and watchedLost the least
// number of segments: seconds of a connection are few segments.
const watchedLoss, watchedLost = 1e-3, 10

// pathLossWatched: the path of a connection of this host loses segments, and that is what holds it.
func pathLossWatched(s *evidence.Span) *evidence.Finding {
	loss := func(c *watch.Connection) (p, segments float64) {
		segments = max(float64(c.TCP.RetransSegs)-float64(c.TCP.DSACKDups), 0)
		return part(segments, float64(c.TCP.SegsOut)), segments
	}
	// What the host itself dropped on its way out is no fault of the path.
	dropped := s.Sum("qdisc.", ".drops") + s.Sum("nic.", ".tx_dropped")
	c, n := sending(s, func(c *watch.Connection) bool {
		t := &c.TCP
		p, segments := loss(c)
		if p < watchedLoss || segments < watchedLost || t.MinRTTSeconds <= 0 || t.RTTSeconds > 1.25*t.MinRTTSeconds+
			0.001 || float64(t.ReorderSeen) >= segments {
			return false
		}
		if t.RwndLimitedSeconds+t.SndbufLimitedSeconds > 0.2*t.BusySeconds || dropped >= 0.2*segments ||
			t.BusySeconds < 0.8*socketSeconds(s) {
			return false
		}
		bound := mathisOf(c, p)
		return watchedRate(s, c) >= bound/5 && watchedRate(s, c) <= 3*bound
	})
	if c == nil {
		return nil
	}
	p, segments := loss(c)
	t := c.TCP
	x := &evidence.Finding{
		Code: evidence.PathLoss, Severity: evidence.Warning, Where: "path",
		Title: fmt.Sprintf("The path to %s loses %s of the segments, which holds %s at %s on a round trip of %s.",
			c.Remote, evidence.Percent(p), congestionOf(c), evidence.Rate(watchedRate(s, c)),
			evidence.Seconds(t.RTTSeconds)),
		Evidence: append(connectionEvidence(s, c, n),
			evidence.Evidence{Name: "rate that this loss allows a loss-based sender", Value: mathisOf(c, p),
				Unit:   "bits_per_second",
				Source: "Mathis: MSS / round trip × 1.22 / √loss"},
			evidence.Evidence{Name: "retransmitted segments", Value: segments, Unit: "segments",
				Source: s.Source("tcp_info tcpi_total_retrans, less tcpi_dsack_dups")}),
		Rejected: []string{
			fmt.Sprintf("Not a full queue at a slower link: the round trip is %s, smallest %s.",
				evidence.Seconds(t.RTTSeconds), evidence.Seconds(t.MinRTTSeconds)),
			fmt.Sprintf("Not a queue of this host: its queues and cards dropped %s packets on the way out.",
				evidence.Count(dropped)),
		},
		// A policer or a queue of a few packets cannot be told apart without a load of one's own.
		Confidence: evidence.Combine(0.5, evidence.When(n > 1, 0.2), evidence.When(p >= 0.01, 0.2)),
	}
	x.Remedy.Text = fmt.Sprintf(
		"Run `linerate diagnose` against a host near %s: it tells a path that loses from one that is policed.",
		c.Remote.Addr())
	x.Remedy.Proof = "Send datagrams at half of the rate: the same part of them must be lost."
	return x
}

// mathisOf is what loss-based congestion control reaches under loss p on one connection.
func mathisOf(c *watch.Connection, p float64) float64 {
	f := evidence.Flow{Streams: 1, MSSBytes: float64(c.TCP.SndMSSBytes), MinRTTSeconds: c.TCP.MinRTTSeconds}
	return f.MathisRate(p)
}

func congestionOf(c *watch.Connection) string {
	if c.TCP.CongestionControl == "" {
		return "the sender"
	}
	return c.TCP.CongestionControl
}
