package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	coreRmemDefault = "sysctl:net.core.rmem_default"

	// overflowRatio is the share of all datagrams that must be lost to cost something: speech and
	// video conceal one in a thousand, and a resolver repeats it.
	overflowRatio = 0.001
	// overflowRate excludes sockets that no program reads: a stuck daemon that listens to a
	// multicast group overflows once or twice a second for ever and harms nothing.
	overflowRate = 10
	// tooSlowRatio is a loss that bursts do not explain: the reader is slower than the traffic,
	// which fills a buffer of any size after a while.
	tooSlowRatio = 0.10
)

// udpSocketOverflow finds datagrams that passed NIC, queues and rules and were dropped at their
// socket.
//
// The look-alikes are drops elsewhere: at the NIC, in the backlog, without a socket (NoPorts), with
// a wrong checksum, or for lack of memory for all UDP sockets together (MemErrors, since Linux
// 5.11). A datagram test overruns its own socket on purpose, so that is only a notice.
func udpSocketOverflow(s *evidence.Span) *evidence.Finding {
	lost := s.Count("Udp.RcvbufErrors") + s.Count("Udp6.RcvbufErrors")
	// InDatagrams counts datagrams that were read or wait, not dropped ones.
	arrived := s.Count("Udp.InDatagrams") + s.Count("Udp6.InDatagrams") + lost
	ratio := part(lost, arrived)
	if lost < 3 || ratio < overflowRatio && !lasting(s, lost, overflowRate) {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.UDPSocketOverflow, Severity: evidence.Notice, Where: s.Side, LostPerSec: s.PerSecond(lost),
		Title: fmt.Sprintf("%s of %s datagrams were dropped %s at a socket with a full buffer%s.", evidence.Count(lost),
			evidence.Count(arrived), s.When(), perSecond(s, lost)),
		Evidence: []evidence.Evidence{
			{Name: "datagrams lost at full sockets", Value: lost, Unit: "datagrams",
				Source: s.Source("Udp.RcvbufErrors + Udp6.RcvbufErrors")},
			{Name: "datagrams for sockets of this host", Value: arrived, Unit: "datagrams",
				Source: s.Source("InDatagrams + RcvbufErrors")},
			{Name: "lost share", Value: ratio, Unit: "ratio", Source: "lost / all"},
		},
		Rejected: []string{
			fmt.Sprintf("Not the NIC or its queue: backlogs dropped %s packets, and these datagrams had passed them.",
				evidence.Count(s.Count("softnet.dropped"))),
			fmt.Sprintf("Not the memory of all UDP sockets together: it was refused %s times.",
				evidence.Count(s.Count("Udp.MemErrors")+s.Count("Udp6.MemErrors"))),
			fmt.Sprintf("Not datagrams without a reader: %s arrived for ports without a socket, "+
				"and do not count here.",
				evidence.Count(s.Count("Udp.NoPorts")+s.Count("Udp6.NoPorts"))),
		},
	}
	if lasting(s, lost, overflowRate) && ratio >= overflowRatio && !(s.Run != nil && s.Run.Test == traffic.UDP) {
		x.Severity = evidence.Warning
	}
	culprit := worstDatagram(s)
	x.Confidence = evidence.Combine(0.8, evidence.When(culprit != nil, 0.6), evidence.When(ratio >= 0.01, 0.3))
	if culprit != nil {
		m := culprit.Memory
		x.Title = fmt.Sprintf("%s of %s datagrams were dropped %s, most of them at the socket %s, "+
			"whose buffer was full%s.",
			evidence.Count(lost), evidence.Count(arrived), s.When(), culprit.Local, perSecond(s, lost))
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "drops of the socket " + culprit.Local.String(), Value: float64(m.Drops),
				Unit: "datagrams", Source: s.Source("SK_MEMINFO_DROPS")},
			evidence.Evidence{Name: "waiting in it", Value: float64(m.ReceiveBytes), Unit: "bytes",
				Source: s.Source("SK_MEMINFO_RMEM_ALLOC")},
			evidence.Evidence{Name: "its receive buffer", Value: float64(m.ReceiveLimitBytes), Unit: "bytes",
				Source: s.Source("SK_MEMINFO_RCVBUF")})
	}
	udpRemedy(s, x, culprit, ratio)
	return x
}

// worstDatagram returns the socket that dropped most; nil if the kernel reports no sockets or none
// of them dropped any.
func worstDatagram(s *evidence.Span) *watch.Datagram {
	if s.Sockets == nil || len(s.Sockets.Datagrams) == 0 {
		return nil
	}
	worst := &s.Sockets.Datagrams[0]
	for i := range s.Sockets.Datagrams {
		if d := &s.Sockets.Datagrams[i]; d.Memory.Drops > worst.Memory.Drops {
			worst = d
		}
	}
	if worst.Memory.Drops == 0 {
		return nil
	}
	return worst
}

// udpRemedy distinguishes a burst, which a buffer absorbs, from a reader that is too slow, which no
// buffer helps; and names the setting that bounds the buffer: the default of the kernel, or the
// limit for programs.
func udpRemedy(s *evidence.Span, x *evidence.Finding, d *watch.Datagram, ratio float64) {
	if ratio >= tooSlowRatio {
		x.Remedy.Text = fmt.Sprintf(
			"The reader is slower than the traffic: with %s lost, a larger buffer only fills later. "+
				"Let it read several datagrams per call (recvmmsg, UDP_GRO), "+
				"or let several threads share the port (SO_REUSEPORT).",
			evidence.Percent(ratio))
	} else {
		x.Remedy.Text = "A larger receive buffer absorbs bursts: SO_RCVBUF of the program, " +
			"within net.core.rmem_max, or net.core.rmem_default for programs that do not set it."
	}
	x.Remedy.Proof = "Send datagrams at the same rate with a buffer four times as large: " +
		"the loss disappears if bursts caused it, and stays if the reader is too slow."
	preset, ok := s.Number(coreRmemDefault, 0)
	most, okMost := s.Number(evidence.CoreRmemMax, 0)
	// The kernel doubles what a program asked for, and uses the default unchanged (sock_setsockopt
	// in net/core/sock.c, SO_RCVBUF).
	if ok && (d == nil || float64(d.Memory.ReceiveLimitBytes) == preset) {
		x.Remedy.Add(evidence.Candidate{Knob: coreRmemDefault, Side: s.Side, Levels: multiples(preset, 4, 16),
			Why: "the buffer of sockets whose program does not set it; new sockets only"})
	}
	if okMost && d != nil && float64(d.Memory.ReceiveLimitBytes) == 2*most {
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID(evidence.CoreRmemMax), Side: s.Side,
			Levels: multiples(most, 4, 16),
			Why:    "the program got as much as this setting allows; new sockets only"})
	}
}
