package tables

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	tcpMem = "sysctl:net.ipv4.tcp_mem"
	// underPressure is the share of time short of memory for TCP from which on it costs something:
	// buffers stop growing at once, and shrink soon after.
	underPressure = 0.05
)

// tcpMemoryPressure finds that all TCP sockets together use more than net.ipv4.tcp_mem allows.
// Buffers then do not grow, the kernel prunes queues, and beyond the last limit it closes
// connections.
//
// PruneCalled and RcvPruned are symptoms and no proof: the kernel also prunes a single socket whose
// own buffer is full, which happens on any host with a slow reader. So the rule needs the state
// itself: pages above the threshold, time spent in it (TCPMemoryPressuresChrono, since Linux 4.15),
// or memory aborts.
func tcpMemoryPressure(s *evidence.Span) *evidence.Finding {
	pages, pressure, limit := s.Count("tcpmem.pages"), s.Count("tcpmem.pressure_pages"), s.Count("tcpmem.max_pages")
	if pressure == 0 {
		pressure, _ = s.Number(tcpMem, 1)
		limit, _ = s.Number(tcpMem, 2)
	}
	entered, aborted := s.Count("TcpExt.TCPMemoryPressures"), s.Count("TcpExt.TCPAbortOnMemory")
	// The chronograph counts in jiffies, printed as milliseconds, when a pressure ends: one that
	// lasts the whole span has not been counted yet.
	spent := part(s.Count("TcpExt.TCPMemoryPressuresChrono")/1e3, s.Seconds)
	now := pressure > 0 && pages >= pressure
	// The midpoint between pressure and limit is clearly above the threshold: there every socket
	// with a half-full buffer advertises at most four segments (tcp_adjust_rcv_ssthresh), including
	// those of containers, whose counters are separate.
	deep := now && 2*pages >= pressure+limit
	if entered == 0 && !now && spent == 0 {
		return nil // aborts alone come from orphans (tcp_max_orphans) as well
	}
	pruned := s.Count("TcpExt.PruneCalled") + s.Count("TcpExt.RcvPruned") + s.Count("TcpExt.TCPRcvQDrop") +
		s.Count("TcpExt.OfoPruned")
	x := &evidence.Finding{
		Code: evidence.TCPMemoryPressure, Severity: evidence.Notice, Where: s.Side,
		Evidence: []evidence.Evidence{
			{Name: "memory of all TCP sockets", Value: pages, Unit: "pages",
				Source: s.Source("/proc/net/sockstat TCP mem")},
			{Name: "threshold of pressure", Value: pressure, Unit: "pages",
				Source: s.Source("net.ipv4.tcp_mem, second field")},
			{Name: "limit", Value: limit, Unit: "pages", Source: s.Source("net.ipv4.tcp_mem, third field")},
			counted(s, "times that TCP ran short of memory", "TcpExt.TCPMemoryPressures", "times"),
			{Name: "share of the time in that state", Value: min(spent, 1), Unit: "ratio",
				Source: s.Source("TcpExt.TCPMemoryPressuresChrono")},
			{Name: "times that queues were pruned, and packets dropped for lack of memory", Value: pruned,
				Unit:   "times",
				Source: s.Source("PruneCalled + RcvPruned + OfoPruned + TCPRcvQDrop")},
			counted(s, "connections closed for lack of memory", "TcpExt.TCPAbortOnMemory", "connections"),
		},
		Confidence: evidence.Combine(0.4, evidence.When(now, 0.7), evidence.When(entered > 0, 0.6),
			evidence.When(pruned > 0, 0.3), evidence.When(aborted > 0, 0.3)),
	}
	state := fmt.Sprintf("all TCP sockets hold %s pages", evidence.Count(pages))
	if pressure > 0 {
		state += fmt.Sprintf("; pressure begins at %s and the limit is %s", evidence.Count(pressure),
			evidence.Count(limit))
	}
	switch {
	case aborted > 0 && lasting(s, aborted, 1) && now:
		x.Severity = evidence.Critical
		x.Title = fmt.Sprintf("The kernel closed %s connections for lack of memory %s: %s.", evidence.Count(aborted),
			s.When(), state)
	case !s.SinceBoot && (deep || now && (pruned > 0 || entered > 0 || s.Loaded()) || spent >= underPressure),
		s.SinceBoot && now && pruned > 0:
		x.Severity = evidence.Warning
		x.Title = fmt.Sprintf("TCP is short of memory: %s.", state)
		if pruned > 0 {
			x.Title = fmt.Sprintf("TCP is short of memory: %s; the kernel pruned queues %s times %s.", state,
				evidence.Count(pruned), s.When())
		}
	case now:
		x.Title = fmt.Sprintf("TCP uses all the memory it may have: %s.", state)
	default:
		x.Title = fmt.Sprintf("TCP ran short of memory %s times %s; now %s.", evidence.Count(entered), s.When(), state)
	}
	x.Rejected = []string{
		fmt.Sprintf("Not a single socket with a small buffer, whose queue the kernel prunes too (%s times): "+
			"the memory of all sockets exceeded its threshold %s times.",
			evidence.Count(pruned), evidence.Count(entered)),
	}
	x.Remedy.Text = "Find the sockets that hold it (`ss -tm`): thousands of slow readers or a lowered tcp_mem " +
		"are the usual reasons. Raise net.ipv4.tcp_mem if the host has memory, " +
		"or lower the largest buffers (tcp_rmem, tcp_wmem) if it has many sockets."
	x.Remedy.Proof = "With tcp_mem doubled, the counter TCPMemoryPressures stops under the same load, " +
		"and rates rise if pruning limited them; a host with few sockets must not change."
	if text, ok := s.Setting(tcpMem); ok && len(strings.Fields(text)) == 3 {
		low, _ := s.Number(tcpMem, 0)
		second, _ := s.Number(tcpMem, 1)
		third, _ := s.Number(tcpMem, 2)
		var levels []knob.Value
		for _, times := range []float64{2, 4} {
			levels = append(levels, knob.Value(fmt.Sprintf("%.0f %.0f %.0f", low*times, second*times, third*times)))
		}
		x.Remedy.Add(evidence.Candidate{Knob: tcpMem, Side: s.Side, Levels: levels,
			Why: "all TCP sockets share these pages"})
	}
	return x
}
