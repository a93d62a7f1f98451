package flows

import (
	"fmt"
	"math"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// slowStartAfterIdleKnob resets the congestion window after a pause longer than a
	// retransmission timeout (RFC 2861; the default is 1).
	slowStartAfterIdleKnob = knob.ID("sysctl:net.ipv4.tcp_slow_start_after_idle")
	// initialWindow is the initial window of Linux in segments (RFC 6928).
	initialWindow = 10
	// restartRTT is the shortest round trip, in seconds, on which a few more of them are
	// noticeable.
	restartRTT = 0.010
	// restartRounds is how many round trips beyond the first a burst must need: fewer than two are
	// not noticeable, and the arithmetic is not more precise.
	restartRounds = 2.0
	// askedRTT is the round trip, in seconds, from which on the rule asks for the objects: below it
	// a restart costs a quarter megabyte less than half a second.
	askedRTT = 0.100
)

// idleRestartWatched finds a connection of the watched host that sends in bursts with pauses and
// begins each burst with a small window.
//
// No counter records these restarts. They leave a connection that ends its bursts with a window of
// many segments (tcpi_snd_cwnd) and yet took several round trips of busy time for every window of
// data; with a window kept over the pause, a burst of that size takes one or two. The setting must
// be on, the connection must rest for a part of the time, and nothing else may limit it.
// Look-alikes: a sender limited by a window or by losses is busy all the time; one that sends
// little at a time has no large window, because the kernel lets the window grow only while it is
// full; one that sends small messages between large ones takes more round trips than slow start.
func idleRestartWatched(s *evidence.Span) *evidence.Finding {
	if on, ok := s.Setting(string(slowStartAfterIdleKnob)); !ok || on != "1" || s.Sockets == nil || s.Run != nil {
		return nil
	}
	seconds := socketSeconds(s)
	var worst *watch.Connection
	var rounds float64
	n := 0
	for i := range s.Sockets.Connections {
		c := &s.Sockets.Connections[i]
		if r := restartCost(c, seconds); r >= restartRounds {
			if n++; worst == nil || r > rounds {
				worst, rounds = c, r
			}
		}
	}
	if worst == nil {
		return nil
	}
	t := worst.TCP
	window := t.CwndBytes
	x := &evidence.Finding{
		Code: evidence.SlowStartAfterIdle, Severity: evidence.Warning, Where: s.Side,
		Title: fmt.Sprintf("The connection to %s sends in bursts and starts each with a small window: "+
			"it needs %s round trips of %s for every %s, which fit into one window.",
			worst.Remote, ratio(rounds), evidence.Seconds(t.RTTSeconds), evidence.Bytes(window)),
		Evidence: []evidence.Evidence{
			{Name: "net.ipv4.tcp_slow_start_after_idle", Value: "1", Source: "sysctl (" + s.Side + ")"},
			{Name: "round trip", Value: t.RTTSeconds, Unit: "seconds", Source: s.Source("tcp_info tcpi_rtt")},
			{Name: "congestion window at the end", Value: window, Unit: "bytes",
				Source: s.Source("tcp_info tcpi_snd_cwnd")},
			{Name: "acknowledged", Value: float64(t.BytesAcked), Unit: "bytes",
				Source: s.Source("tcp_info tcpi_bytes_acked")},
			{Name: "time with data under way", Value: min(t.BusySeconds/seconds, 1), Unit: "ratio",
				Source: s.Source("tcp_info tcpi_busy_time / time")},
			{Name: "connections of this kind", Value: float64(n), Unit: "connections", Source: s.Source("sock_diag")},
		},
		Rejected: []string{
			fmt.Sprintf("Not a buffer: the windows of both ends limited it for %s of its busy time.",
				evidence.Percent((t.RwndLimitedSeconds+t.SndbufLimitedSeconds)/t.BusySeconds)),
			fmt.Sprintf("Not loss: %s of %s segments were retransmitted.", evidence.Count(float64(t.RetransSegs)),
				evidence.Count(float64(t.SegsOut))),
			fmt.Sprintf("Not a full path: nothing was in flight for %s of the time.",
				evidence.Percent(max(1-t.BusySeconds/seconds, 0))),
		},
		Confidence: evidence.Combine(0.5, evidence.When(rounds >= 2*restartRounds, 0.4),
			evidence.When(worst.IdleSeconds >= leastRTO, 0.3)),
	}
	if s.SinceBoot {
		x.Severity = evidence.Notice
	}
	idleRestartRemedy(s.Side, x)
	return x
}

// restartCost returns how many round trips a connection needed for each of its last windows, less
// the one that it needs at best. It returns 0 if something else limits the connection or the
// numbers do not allow a judgement.
func restartCost(c *watch.Connection, seconds float64) float64 {
	t := &c.TCP
	if !t.Sender || seconds <= 0 || t.RTTSeconds < restartRTT || t.SndMSSBytes <= 0 || t.BusySeconds <= 0 {
		return 0
	}
	busy := t.BusySeconds / seconds
	window := t.CwndBytes
	switch {
	case busy < 0.05 || busy > 0.9: // too little to judge; never idle
		return 0
	case window < 4*initialWindow*float64(t.SndMSSBytes) || float64(t.BytesAcked) < window/2:
		// no large window; less data than the one burst that made it
		return 0
	case t.RwndLimitedSeconds+t.SndbufLimitedSeconds > 0.2*t.BusySeconds || t.RetransSegs*1000 > t.SegsOut:
		return 0
	case t.MinRTTSeconds > 0 && t.RTTSeconds > 1.5*t.MinRTTSeconds: // a queue: its bursts wait for the link
		return 0
	}
	windows := float64(t.BytesAcked) / window
	rounds := t.BusySeconds / t.RTTSeconds / windows
	// Slow start doubles the window in each round trip. If it takes more than one and a half times
	// as long, something else is the cause: small messages between the large ones, each a round
	// trip.
	if rounds > 1.5*(math.Log2(window/(initialWindow*float64(t.SndMSSBytes)))+1) {
		return 0
	}
	return max(rounds-1, 0)
}

// idleRestartObjects judges objects that the probe fetched over one connection with a pause before
// each. It asks for them on long paths only.
func idleRestartObjects(f *evidence.Flow) *evidence.Finding {
	// Objects come from the far end, whatever the direction of the stream.
	_, server := ends(f.Case)
	if on, ok := server.Setting(string(slowStartAfterIdleKnob)); !ok || on != "1" || f.Base() < askedRTT ||
		f.RateBitsPerSec <= 0 {
		return nil
	}
	r, ok := f.Case.Ask(evidence.ProbeObjects)
	if !ok || r.Test != traffic.RR || r.RTT == nil || r.RTT.P50 <= 0 {
		return nil
	}
	rounds := r.RTT.P50 / f.Base()
	// Slow start doubles the window: want is how many round trips an object takes from the initial
	// window. With a window kept over the pause, one would do.
	want := math.Log2(objectSegments/initialWindow + 1)
	if lost := (rounds - 1) * f.Base(); rounds < max(0.8*want, 1+restartRounds) || lost < 0.4 {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.SlowStartAfterIdle, Severity: evidence.Notice, Where: server.Name,
		Title: fmt.Sprintf("After a pause an object of 256 KiB takes %s, %s round trips of %s: "+
			"the %s host starts each with a small window.",
			evidence.Seconds(r.RTT.P50), ratio(rounds), evidence.Seconds(f.Base()), server.Name),
		Evidence: []evidence.Evidence{
			{Name: "object of 256 KiB after a pause, median", Value: r.RTT.P50, Unit: "seconds",
				Source: "probe objects"},
			{Name: "round trip, smallest", Value: f.Base(), Unit: "seconds", Source: "ping and tcpi_min_rtt"},
			{Name: "round trips that slow start takes for it", Value: want, Unit: "round_trips",
				Source: "log2(segments / 10 + 1)"},
			{Name: "net.ipv4.tcp_slow_start_after_idle", Value: "1", Source: "sysctl (" + server.Name + ")"},
		},
		Rejected: []string{fmt.Sprintf("Not the rate of the path: a stream reached %s, at which an object takes %s.",
			evidence.Rate(f.RateBitsPerSec), evidence.Seconds(256<<10*8/f.RateBitsPerSec))},
		Confidence: evidence.Combine(0.6, evidence.When(rounds >= want, 0.4)),
	}
	idleRestartRemedy(server.Name, x)
	return x
}

// objectSegments is the number of segments of one object of the probe.
const objectSegments = 256 << 10 / 1448

func idleRestartRemedy(side string, x *evidence.Finding) {
	x.Remedy.Text = fmt.Sprintf(
		"Set net.ipv4.tcp_slow_start_after_idle to 0 at the %s host if its connections rest between bursts; "+
			"the queueing discipline fq then paces the bursts. New connections need a larger initcwnd on the "+
			"route instead.",
		side)
	x.Remedy.Add(evidence.Candidate{Knob: slowStartAfterIdleKnob, Side: side, Levels: []knob.Value{"0"},
		Why: "keeps the window over a pause"})
	x.Remedy.Proof = "Fetch one object after a pause, with 0 and 1 alternately: " +
		"its time falls by some round trips, and a stream without pauses stays the same."
}
