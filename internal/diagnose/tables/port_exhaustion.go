package tables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	portRange = "sysctl:net.ipv4.ip_local_port_range"
	reserved  = "sysctl:net.ipv4.ip_local_reserved_ports"
	twReuse   = "sysctl:net.ipv4.tcp_tw_reuse"

	// portsShort is the share of ports occupied towards one destination from which on it is worth a
	// notice: from one half on each connect has to try several.
	portsShort = 0.75
	// noPort is the error text of connect(2) in this case (EADDRNOTAVAIL).
	noPort = "cannot assign requested address"
)

// portExhaustion finds outgoing connections to one destination that occupy all local ports, so that
// the next connect fails without any packet.
//
// One look-alike is a server that closes first: it may have any number of connections in TIME_WAIT,
// all at its own port, without a shortage. So the rule counts ports by destination. Another is a
// client whose ports in TIME_WAIT are reusable after a second (net.ipv4.tcp_tw_reuse, by default on
// loopback alone): those do not count. Without a list of sockets, the number in TIME_WAIT alone
// gives a notice.
func portExhaustion(s *evidence.Span) *evidence.Finding {
	first, last, ok := localPorts(s)
	if !ok {
		return nil
	}
	kept := reservedPorts(s, first, last)
	room := last - first + 1 - kept
	waiting := s.Count("sockets.tcp_tw")
	x := &evidence.Finding{
		Code: evidence.PortExhaustion, Severity: evidence.Notice, Where: s.Side,
		Evidence: []evidence.Evidence{
			{Name: "local ports for outgoing connections", Value: room, Unit: "ports",
				Source: s.Source(sourceOfPorts(kept))},
			counted(s, "connections in TIME_WAIT, to all destinations", "sockets.tcp_tw", "connections"),
			counted(s, "outgoing connections begun", "Tcp.ActiveOpens", "connections"),
			counted(s, "connections that came in", "Tcp.PassiveOpens", "connections"),
		},
	}
	switch d := worstDestination(s); {
	case d != nil:
		share := part(float64(taken(s, d)), room)
		if share < portsShort {
			return nil
		}
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "ports taken towards " + d.Remote.String(), Value: float64(d.Ports), Unit: "ports",
				Source: s.Source("sock_diag")},
			evidence.Evidence{Name: "of these in TIME_WAIT", Value: float64(d.Waiting), Unit: "ports",
				Source: s.Source("sock_diag")})
		x.Title = fmt.Sprintf("Connections to %s occupy %d of the %s local ports, %d of them in TIME_WAIT.",
			d.Remote, d.Ports, evidence.Count(room), d.Waiting)
		x.Confidence = 0.7
		if share >= full {
			x.Severity, x.Confidence = evidence.Warning, 0.95
			x.Title = fmt.Sprintf(
				"Connections to %s fail for lack of a local port: %d of %s are occupied, %d of them in TIME_WAIT.",
				d.Remote, d.Ports, evidence.Count(room),
				d.Waiting)
		}
		x.Rejected = []string{
			fmt.Sprintf("Not a server whose clients left: these ports are in the range for outgoing connections "+
				"(%.0f to %.0f), and lead to 1 destination.", first, last),
			fmt.Sprintf("Not a listener that refuses: without a port the kernel sends no SYN, "+
				"and the host began %s connections %s.",
				evidence.Count(s.Count("Tcp.ActiveOpens")), s.When()),
		}
	case s.Sockets == nil && waiting >= full*room && s.Count("Tcp.ActiveOpens") > s.Count("Tcp.PassiveOpens"):
		x.Confidence = 0.3
		x.Title = fmt.Sprintf(
			"%s connections are in TIME_WAIT, as many as the host has local ports (%s); "+
				"if most went to one destination, further ones fail.",
			evidence.Count(waiting), evidence.Count(room))
		x.Rejected = []string{
			fmt.Sprintf("Not distinguished from many destinations, each of which has %s ports of its own.",
				evidence.Count(room))}
	default:
		return nil
	}
	portsRemedy(s, x)
	return x
}

// reused reports whether the kernel reuses ports in TIME_WAIT after a second: mode 1 for every
// destination (if both ends use timestamps, as nearly all do), mode 2 on loopback alone, the
// default since Linux 4.19 (tcp_twsk_unique in net/ipv4/tcp_ipv4.c).
func reused(s *evidence.Span, d *watch.Destination) bool {
	mode, _ := s.Number(twReuse, 0)
	return mode == 1 || mode == 2 && d.Remote.Addr().IsLoopback()
}

// taken returns the ports towards a destination that no new connection can have.
func taken(s *evidence.Span, d *watch.Destination) int {
	if reused(s, d) {
		return d.Ports - d.Waiting
	}
	return d.Ports
}

// portsRefused is [portExhaustion] for a test that makes a connection per transaction and could not
// continue.
//
// connect(2) also returns EADDRNOTAVAIL on a host without an address of the peer's family. Then
// nothing gets through, so the rule requires that something did.
func portsRefused(c *evidence.Case) *evidence.Finding {
	refused := []string{c.Refused[evidence.ProbeConnect]}
	got := false
	for _, r := range c.Runs {
		got = got || r.Bytes > 0 || r.TransactionsPerSec > 0
		if r.Test == traffic.CRR {
			refused = append(refused, r.Warnings...)
		}
	}
	i := slices.IndexFunc(refused, func(why string) bool { return strings.Contains(strings.ToLower(why), noPort) })
	if i < 0 || !got {
		return nil
	}
	reason := refused[i]
	s := &evidence.Span{Side: "near", Host: c.Near}
	first, last, ok := localPorts(s)
	if !ok {
		return nil
	}
	kept := reservedPorts(s, first, last)
	room := last - first + 1 - kept
	x := &evidence.Finding{
		Code: evidence.PortExhaustion, Severity: evidence.Warning, Where: "near", Confidence: 0.9,
		Title: fmt.Sprintf("Connections fail for lack of a local port: the range has %s ports.",
			evidence.Count(room)),
		Evidence: []evidence.Evidence{{Name: "error of connect", Value: reason, Source: "connect (near)"},
			{Name: "local ports for outgoing connections", Value: room, Unit: "ports",
				Source: s.Source(sourceOfPorts(kept))}},
		Rejected: []string{fmt.Sprintf(
			"Not a far end that refuses: the kernel had none of its %s ports left and sent nothing.",
			evidence.Count(room))},
	}
	portsRemedy(s, x)
	return x
}

// localPorts returns the range of local ports for outgoing connections.
func localPorts(s *evidence.Span) (first, last float64, ok bool) {
	first, last = s.Count("sockets.port_first"), s.Count("sockets.port_last")
	if last == 0 {
		var a, b bool
		first, a = s.Number(portRange, 0)
		last, b = s.Number(portRange, 1)
		ok = a && b
	} else {
		ok = true
	}
	return first, last, ok && last >= first
}

// reservedPorts returns how many ports of the range connect(2) never chooses
// (net.ipv4.ip_local_reserved_ports).
func reservedPorts(s *evidence.Span, first, last float64) float64 {
	list, _ := s.Setting(reserved)
	return float64(watch.ParsePorts(list).Within(uint64(max(first, 0)), uint64(min(last, 65535))))
}

// sourceOfPorts names where the number of local ports comes from.
func sourceOfPorts(kept float64) string {
	if kept > 0 {
		return "net.ipv4.ip_local_port_range less ip_local_reserved_ports"
	}
	return "net.ipv4.ip_local_port_range"
}

func worstDestination(s *evidence.Span) *watch.Destination {
	if s.Sockets == nil {
		return nil
	}
	var worst *watch.Destination
	for i := range s.Sockets.Destinations {
		if d := &s.Sockets.Destinations[i]; worst == nil || taken(s, d) > taken(s, worst) {
			worst = d
		}
	}
	return worst
}

// portsRemedy proposes a change of the program first, because a kept connection needs no port; then
// reuse, which is safe with timestamps (RFC 6191); then a wider range.
func portsRemedy(s *evidence.Span, x *evidence.Finding) {
	x.Remedy.Text = "Let the program keep its connections (keep-alive, a pool) instead of making one per " +
		"request. net.ipv4.tcp_tw_reuse=1 lets a connection take a port that has been in TIME_WAIT for a " +
		"second, if both ends use timestamps. A wider ip_local_port_range gives more time, " +
		"and additional source addresses have ports of their own."
	x.Remedy.Proof = "Make connections at the same rate with tcp_tw_reuse=1: connect stops failing at the same " +
		"rate; a program that keeps its connections sees no difference."
	if value, ok := s.Setting(twReuse); ok && strings.TrimSpace(value) != "1" {
		x.Remedy.Add(evidence.Candidate{Knob: twReuse, Side: s.Side, Levels: []knob.Value{"1"},
			Why: "outgoing connections reuse ports in TIME_WAIT after a second"})
	}
	first, last, ok := localPorts(s)
	// Ports below 1024 need a privilege, and servers listen on those up to 9999.
	if ok && (first > 10240 || last < 65535) {
		x.Remedy.Add(evidence.Candidate{Knob: portRange, Side: s.Side,
			Levels: []knob.Value{knob.Value(fmt.Sprintf("%.0f 65535", min(first, 10240)))},
			Why:    "more ports towards each destination"})
	}
}
