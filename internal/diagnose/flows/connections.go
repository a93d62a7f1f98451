package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
)

// A watched connection must have sent for half of the time, and enough bytes for shares to mean
// something. Nothing limits an idle connection.
const (
	watchedBusy  = 0.5
	watchedBytes = 256 << 10
)

// sending returns the connection that moved most among those with the fault, and how many have it.
// It skips connections that mostly received, that rested, or that stayed inside the host: on
// loopback the other end is a program and not a path.
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

// watchedRate returns the rate that the peer acknowledged, in bits per second.
func watchedRate(s *evidence.Span, c *watch.Connection) float64 {
	if seconds := socketSeconds(s); seconds > 0 {
		return float64(c.TCP.BytesAcked) * 8 / seconds
	}
	return 0
}

// watchedFill returns the part of a window that the rate fills on the empty path.
func watchedFill(s *evidence.Span, c *watch.Connection, window int64) float64 {
	if window <= 0 {
		return 0
	}
	return watchedRate(s, c) / 8 * c.TCP.MinRTTSeconds / float64(window)
}

// connectionEvidence returns the evidence with which every verdict on a watched connection begins.
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

// part returns x as a share of a whole, at most 1; 0 if the whole is not positive.
func part(x, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return min(x/of, 1)
}

// receiveWindowWatched finds a connection of this host that the far end's window limits.
//
// From one end, a buffer that is too small and a program that reads slowly look the same: a slow
// reader advertises a window of just what it reads in a round trip. Only a closed window proves a
// slow reader, and slow reading may be intended (a player that shows a film at its own pace). The
// finding is therefore a notice that says what to check at the other end.
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
		Title: fmt.Sprintf("The receiver limits the connection to %s to %s: its window was full for %s of the "+
			"time on a round trip of %s.",
			c.Remote, evidence.Rate(watchedRate(s, c)), evidence.Percent(share), evidence.Seconds(t.RTTSeconds)),
		Evidence: append(connectionEvidence(s, c, n),
			evidence.Evidence{Name: "receive window offered at the end", Value: float64(t.SndWndBytes), Unit: "bytes",
				Source: s.Source("tcp_info tcpi_snd_wnd")}),
		Rejected: []string{
			fmt.Sprintf("Not the send buffer: it limited the sender for %s of its busy time.",
				evidence.Percent(part(t.SndbufLimitedSeconds, t.BusySeconds))),
			fmt.Sprintf("Not loss: %s of %s segments were retransmitted.", evidence.Count(float64(t.RetransSegs)),
				evidence.Count(float64(t.SegsOut))),
		},
		Confidence: evidence.Combine(0.5, evidence.When(share >= 0.8, 0.4)),
	}
	if t.SndWndBytes == 0 && t.SegsOut > 0 {
		x.Rejected = append(x.Rejected,
			"Not a small buffer alone: the window was closed (0 bytes) at the last reading, "+
				"so the received data had not been read.")
	}
	x.Remedy.Text = fmt.Sprintf(
		"Check whether the program at %s reads as fast as it can (CPU, disk, or intended pace). If it does, "+
			"its receive buffer is too small: the third field of net.ipv4.tcp_rmem there, "+
			"or the size that the program sets itself.", c.Remote.Addr())
	x.Remedy.Proof = "Send to `linerate serve` on that host instead of the program: if that is faster, " +
		"the program is the limit. If it is not, raise and restore the buffer there alternately."
	return x
}

// sendBufferWatched finds a connection of this host that its send buffer limits.
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
		Title: fmt.Sprintf("The send buffer of %s limits the connection to %s to %s on a round trip of %s.",
			evidence.Bytes(float64(c.Memory.SendLimitBytes)), c.Remote, evidence.Rate(watchedRate(s, c)),
			evidence.Seconds(t.RTTSeconds)),
		Evidence: append(connectionEvidence(s, c, n),
			evidence.Evidence{Name: "send buffer", Value: float64(c.Memory.SendLimitBytes), Unit: "bytes",
				Source: s.Source("SK_MEMINFO_SNDBUF")}),
		Rejected: []string{
			fmt.Sprintf("Not the receive window: it limited the sender for %s of its busy time.",
				evidence.Percent(part(t.RwndLimitedSeconds, t.BusySeconds))),
			fmt.Sprintf("Not a queue on the path: the round trip is %s, and its minimum is %s.",
				evidence.Seconds(t.RTTSeconds), evidence.Seconds(t.MinRTTSeconds)),
		},
		Confidence: 0.75,
	}
	wmem, known := s.Number(evidence.TCPWmem, 2)
	x.Remedy.Text = "Look for a program that sets SO_SNDBUF itself, which ends autotuning; " +
		"or raise the third field of net.ipv4.tcp_wmem."
	if known && float64(c.Memory.SendLimitBytes) >= 0.9*wmem {
		present, _ := s.Setting(evidence.TCPWmem)
		x.Remedy.Text = fmt.Sprintf("Raise the third field of net.ipv4.tcp_wmem, now %s: the buffer has reached it.",
			evidence.Bytes(wmem))
		x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPWmem, Side: s.Side,
			Levels: evidence.BufferLevels(present, 2*wmem, 1),
			Why:    "the buffer must hold all unacknowledged data"})
	}
	x.Remedy.Proof = "Raise and restore it alternately, with new connections: " +
		"the rate must follow the buffer as long as the link has room."
	return x
}

// watchedLoss is the least loss of a watched connection that the rule judges, and watchedLost the
// least number of segments: a connection sends few segments in seconds.
const watchedLoss, watchedLost = 1e-3, 10

// pathLossWatched finds a connection of this host whose path loses segments, which limits it.
func pathLossWatched(s *evidence.Span) *evidence.Finding {
	loss := func(c *watch.Connection) (p, segments float64) {
		segments = max(float64(c.TCP.RetransSegs)-float64(c.TCP.DSACKDups), 0)
		return part(segments, float64(c.TCP.SegsOut)), segments
	}
	// Packets that the host itself dropped on output are not a fault of the path.
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
		Title: fmt.Sprintf("The path to %s loses %s of the segments, which limits %s to %s on a round trip of %s.",
			c.Remote, evidence.Percent(p), congestionOf(c), evidence.Rate(watchedRate(s, c)),
			evidence.Seconds(t.RTTSeconds)),
		Evidence: append(connectionEvidence(s, c, n),
			evidence.Evidence{Name: "rate that this loss allows a loss-based sender", Value: mathisOf(c, p),
				Unit:   "bits_per_second",
				Source: "Mathis: MSS / round trip × 1.22 / √loss"},
			evidence.Evidence{Name: "retransmitted segments", Value: segments, Unit: "segments",
				Source: s.Source("tcp_info tcpi_total_retrans, less tcpi_dsack_dups")}),
		Rejected: []string{
			fmt.Sprintf("Not a full queue at a slower link: the round trip is %s, and its minimum is %s.",
				evidence.Seconds(t.RTTSeconds), evidence.Seconds(t.MinRTTSeconds)),
			fmt.Sprintf("Not a queue of this host: its queues and NICs dropped %s packets on output.",
				evidence.Count(dropped)),
		},
		// Without a load test, a policer and a queue of a few packets look the same.
		Confidence: evidence.Combine(0.5, evidence.When(n > 1, 0.2), evidence.When(p >= 0.01, 0.2)),
	}
	x.Remedy.Text = fmt.Sprintf(
		"Run `linerate diagnose` against a host near %s: a test distinguishes a path that loses packets from a "+
			"policed one.",
		c.Remote.Addr())
	x.Remedy.Proof = "Send datagrams at half the rate: the path must lose the same share of them."
	return x
}

// mathisOf returns the rate in bits per second that loss-based congestion control reaches under
// loss p on one connection.
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
