package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
)

const (
	coreSomaxconn = "sysctl:net.core.somaxconn"
	synBacklog    = "sysctl:net.ipv4.tcp_max_syn_backlog"
	synCookies    = "sysctl:net.ipv4.tcp_syncookies"
	// refusedRatio is the share of failed attempts from which on they cost something: each waits a
	// second for its next try, so one in a hundred is the 99th percentile of every client.
	refusedRatio = 0.01
	// historicRatio is the share since boot that is worth a notice. Each restart of a program loses
	// some connections, which is not a fault.
	historicRatio = 0.001
)

// listenOverflow finds a program that accepts connections more slowly than they arrive, or a
// backlog that is too short for a burst. The kernel drops the handshake, and the client tries again
// after one, three and seven seconds.
//
// ListenDrops includes ListenOverflows and drops for other reasons. TCPReqQFullDoCookies counts
// half-open connections beyond the limit that got a cookie and are not lost: a SYN flood, or
// distant clients, and not a cost yet.
func listenOverflow(s *evidence.Span) *evidence.Finding {
	overflows, kept := s.Count("TcpExt.ListenOverflows"), keptFree(s)
	halfOpen := s.Count("TcpExt.TCPReqQFullDrop") + kept
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
	if kept > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{
			Name:  "handshakes dropped to keep a quarter of the half-open ones for known hosts",
			Value: kept, Unit: "connections",
			Source: s.Source("TcpExt.ListenDrops less ListenOverflows and TCPReqQFullDrop, with tcp_syncookies 0")})
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
			"%s of %s connection attempts were dropped at %s %s%s; each client waits a second or more before it "+
				"tries again.",
			evidence.Count(lost), evidence.Count(attempts), at, s.When(), perSecond(s, lost))
	case lost > 0:
		x.Title = fmt.Sprintf("%s of %s connection attempts were dropped at %s %s.", evidence.Count(lost),
			evidence.Count(attempts), at, s.When())
	default:
		x.Title = fmt.Sprintf(
			"The backlog of %s is full with %d connections that its program has not accepted; "+
				"the kernel drops the next one.",
			at, culprit.Queued)
	}
	x.Rejected = []string{
		fmt.Sprintf("Not loss on the path: these handshakes had reached %s.", socketWord(culprit))}
	if halfOpen > overflows {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not a program that accepts too slowly: its backlog dropped %s, and %s were dropped half-open.",
				evidence.Count(overflows), evidence.Count(halfOpen)))
	} else {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not a flood of half-open connections alone: %s got a cookie, and the backlog itself dropped %s.",
				evidence.Count(s.Count("TcpExt.TCPReqQFullDoCookies")), evidence.Count(overflows)))
	}
	listenRemedy(s, x, culprit, overflows, halfOpen)
	return x
}

// keptFree returns the handshakes that the kernel dropped although the socket had room: without SYN
// cookies it keeps the last quarter of net.ipv4.tcp_max_syn_backlog for hosts that it knows
// (tcp_conn_request in net/ipv4/tcp_input.c). It counts them as ListenDrops alone, where each of
// the other two losses counts as well. With cookies that counter has other reasons.
func keptFree(s *evidence.Span) float64 {
	if cookies, known := s.Setting(synCookies); !known || cookies != "0" {
		return 0
	}
	return max(0, s.Count("TcpExt.ListenDrops")-s.Count("TcpExt.ListenOverflows")-s.Count("TcpExt.TCPReqQFullDrop"))
}

// socketWord returns the listener for use in a rejection, which needs a number.
func socketWord(l *watch.Listener) string {
	if l == nil {
		return "at least 1 listening socket of this host"
	}
	return "the socket " + l.Local.String()
}

// fullListener returns the listener that refused connections, or otherwise one that is full now;
// nil if there is none or the kernel reports no sockets. The kernel refuses when more connections
// wait than the backlog (sk_acceptq_is_full), so a queue may hold one more than its limit. The
// drops of a listener include other reasons, such as invalid segments, so they count only if the
// host refused connections.
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

// listenRemedy distinguishes a backlog that the host shortens from one that the program asked for,
// which no setting lengthens.
func listenRemedy(s *evidence.Span, x *evidence.Finding, l *watch.Listener, overflows, halfOpen float64) {
	most, known := s.Number(coreSomaxconn, 0)
	switch {
	case l != nil && known && float64(l.Limit) < most:
		x.Remedy.Text = fmt.Sprintf(
			"The program asked for a backlog of %d, while the host allows %s: let it ask for more in listen(), "+
				"and accept faster (more threads, or SO_REUSEPORT).",
			l.Limit, evidence.Count(most))
	case l != nil && known:
		x.Remedy.Text = fmt.Sprintf(
			"The backlog is as long as net.core.somaxconn allows (%s). A longer one absorbs bursts after the "+
				"program is restarted; a program that accepts too slowly fills any backlog.", evidence.Count(most))
	default:
		x.Remedy.Text = "Let the program accept faster (more threads, or SO_REUSEPORT), " +
			"and give it a longer backlog: listen() asks for it, up to net.core.somaxconn."
	}
	if known && (l == nil || float64(l.Limit) >= most) && overflows > 0 {
		x.Remedy.Add(evidence.Candidate{Knob: coreSomaxconn, Side: s.Side, Levels: multiples(max(most, 128), 4, 16),
			Why: "the limit of listen(); existing listeners keep theirs"})
	}
	if halfOpen > 0 {
		if cookies, ok := s.Setting(synCookies); ok && cookies == "0" {
			x.Remedy.Text += " SYN cookies are off: with them no half-open connection is dropped for lack of room."
			x.Remedy.Add(evidence.Candidate{Knob: synCookies, Side: s.Side, Levels: []knob.Value{"1"},
				Why: "answers handshakes beyond the limit without keeping them"})
		}
		if now, ok := s.Number(synBacklog, 0); ok {
			x.Remedy.Add(evidence.Candidate{Knob: synBacklog, Side: s.Side, Levels: multiples(now, 4, 16),
				Why: "half-open connections of a listener if SYN cookies are off"})
		}
	}
	x.Remedy.Proof = "Make connections at the same rate with a longer backlog: " +
		"if the peaks of the connect time at 1, 3 and 7 seconds disappear, bursts were the cause; " +
		"if the queue fills again after a while, the program is."
}
