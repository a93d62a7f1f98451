package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
)

const (
	coreSomaxconn = "sysctl:net.core.somaxconn"
	synBacklog    = "sysctl:net.ipv4.tcp_max_syn_backlog"
	// refusedRatio of the attempts must fail before it is called a cost: each waits a second for
	// its next try, so that one in a hundred is the 99th percentile of every client.
	refusedRatio = 0.01
	// historicRatio is what since boot is worth a word. A restart of the program loses some
	// connections each time and is no fault.
	historicRatio = 0.001
)

// listenOverflow: a program accepts its connections more slowly than they come, or its backlog is
// too short for a burst; the kernel drops the handshake, and the client tries again after one,
// three and seven seconds.
//
// ListenDrops has ListenOverflows in it and what was dropped for other reasons;
// TCPReqQFullDoCookies counts half-open connections beyond the limit which got a cookie and are not
// lost: that is a flood of SYNs, or clients far away, and no cost yet.
func listenOverflow(s *evidence.Span) *evidence.Finding {
	overflows, halfOpen := s.Count("TcpExt.ListenOverflows"), s.Count("TcpExt.TCPReqQFullDrop")
	lost := overflows + halfOpen
	attempts := s.Count("Tcp.PassiveOpens") + lost
	ratio := part(lost, attempts)
	culprit := fullListener(s, lost > 0)
	if lost == 0 && culprit == nil || s.SinceBoot && ratio < historicRatio {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.ListenOverflow, Severity: evidence.Notice, Where: s.Side,
		Evidence: []evidence.Evidence{
			counted(s, "handshakes dropped at a full backlog", "TcpExt.ListenOverflows", "connections"),
			counted(s, "handshakes dropped for too many half-open ones", "TcpExt.TCPReqQFullDrop", "connections"),
			counted(s, "connections accepted by the kernel", "Tcp.PassiveOpens", "connections"),
			{Name: "dropped share", Value: ratio, Unit: "ratio", Source: "dropped / (accepted + dropped)"},
		},
		Confidence: evidence.Combine(0.3, evidence.When(lost > 0, 0.7), evidence.When(culprit != nil, 0.6)),
	}
	at := "a listening socket"
	if culprit != nil {
		at = "the listening socket " + culprit.Local.String()
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "connections that wait at " + culprit.Local.String(),
				Value: float64(culprit.Queued), Unit: "connections",
				Source: s.Source("sock_diag, Recv-Q")},
			evidence.Evidence{Name: "its backlog", Value: float64(culprit.Limit), Unit: "connections",
				Source: s.Source("sock_diag, Send-Q")},
			evidence.Evidence{Name: "its drops", Value: float64(culprit.Drops), Unit: "connections",
				Source: s.Source("SK_MEMINFO_DROPS")})
	}
	switch {
	case lasting(s, lost, 1) && ratio >= refusedRatio:
		x.Severity = evidence.Warning
		x.Title = fmt.Sprintf(
			"%s of %s connection attempts were dropped at %s %s%s; each client waits a second or more to try again.",
			evidence.Count(lost), evidence.Count(attempts), at, s.When(), perSecond(s, lost))
	case lost > 0:
		x.Title = fmt.Sprintf("%s of %s connection attempts were dropped at %s %s.", evidence.Count(lost),
			evidence.Count(attempts), at, s.When())
	default:
		x.Title = fmt.Sprintf(
			"The backlog of %s is full with %d connections that its program has not accepted; the next one is dropped.",
			at, culprit.Queued)
	}
	x.Rejected = []string{
		fmt.Sprintf("Not packets lost on the way, which these were not: they had reached %s.", socketWord(culprit)),
		fmt.Sprintf("Not a flood of half-open connections alone: %s got a cookie, and %s were dropped at the backlog itself.",
			evidence.Count(s.Count("TcpExt.TCPReqQFullDoCookies")), evidence.Count(overflows)),
	}
	listenRemedy(s, x, culprit, overflows, halfOpen)
	return x
}

// socketWord is what a sentence calls the listener; it needs a number, and the address has one.
func socketWord(l *watch.Listener) string {
	if l == nil {
		return "1 listening socket or more of this host"
	}
	return "the socket " + l.Local.String()
}

// fullListener is the listener that refused connections, or else one that is full now: nil where
// there is none, or the kernel does not tell sockets. The kernel refuses when more than the backlog
// wait (sk_acceptq_is_full), so that a queue may hold one more than its limit. A listener's own
// drops are of all reasons, segments that make no sense among them, so that they count only where
// some were dropped for want of room.
func fullListener(s *evidence.Span, refused bool) *watch.Listener {
	if s.Sockets == nil {
		return nil
	}
	var found *watch.Listener
	for i := range s.Sockets.Listeners {
		l := &s.Sockets.Listeners[i]
		isFull := l.Queued > l.Limit
		if (refused && l.Drops > 0 || isFull) && (found == nil || l.Drops > found.Drops) {
			found = l
		}
	}
	return found
}

// listenRemedy tells a backlog that the host cuts short from one that the program asked for, which
// no setting makes longer.
func listenRemedy(s *evidence.Span, x *evidence.Finding, l *watch.Listener, overflows, halfOpen float64) {
	most, known := s.Number(coreSomaxconn, 0)
	switch {
	case l != nil && known && float64(l.Limit) < most:
		x.Remedy.Text = fmt.Sprintf(
			"The program asked for a backlog of %d where the host allows %s: let it ask for more in listen(), and accept faster (more threads, or "+
				"SO_REUSEPORT).",
			l.Limit, evidence.Count(most))
	case l != nil && known:
		x.Remedy.Text = fmt.Sprintf(
			"The backlog is what net.core.somaxconn allows (%s). A longer one rides out bursts after the program was started anew; a program that "+
				"accepts too slowly fills any.", evidence.Count(most))
	default:
		x.Remedy.Text = "Let the program accept faster (more threads, or SO_REUSEPORT), and give it a longer backlog: listen() asks for it, and net.core.somaxconn is the " +
			"most that it gets."
	}
	if known && (l == nil || float64(l.Limit) >= most) && overflows > 0 {
		x.Remedy.Add(evidence.Candidate{Knob: coreSomaxconn, Side: s.Side, Levels: multiples(max(most, 128), 4, 16),
			Why: "the most that listen() gives; listeners made before keep theirs"})
	}
	if halfOpen > 0 {
		if now, ok := s.Number(synBacklog, 0); ok {
			x.Remedy.Add(evidence.Candidate{Knob: synBacklog, Side: s.Side, Levels: multiples(now, 4, 16),
				Why: "half-open connections of a listener, where SYN cookies are off"})
		}
	}
	x.Remedy.Proof = "Connections at the same rate with a longer backlog: if the peaks of the connect time at 1, 3 and 7 seconds disappear, bursts were the cause; if " +
		"the queue is full again after a while, the program is."
}
