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

	// overflowRatio of all datagrams must die before it is called a cost: one in a thousand is what
	// speech and video conceal and what a resolver repeats.
	overflowRatio = 0.001
	// overflowRate keeps out sockets that nobody reads: a stuck daemon that listens to a multicast
	// group overflows for ever, once or twice a second, and harms nobody.
	overflowRate = 10
	// tooSlowRatio of the datagrams lost is more than bursts explain: the reader is slower than
	// what comes, and a buffer of any size is full after a while.
	tooSlowRatio = 0.10
)

// udpSocketOverflow: datagrams came through card, queues and rules, and died in front of their
// reader.
//
// The look-alikes die elsewhere: at the card, in the backlog, for want of a socket (NoPorts), of a
// checksum, or of memory for all UDP sockets together (MemErrors, since Linux 5.11). A datagram
// test of ours overruns its own socket on purpose, so that it is noticed and no more.
func udpSocketOverflow(s *evidence.Span) *evidence.Finding {
	lost := s.Count("Udp.RcvbufErrors") + s.Count("Udp6.RcvbufErrors")
	// InDatagrams has those that were read or wait; what died is not among them.
	arrived := s.Count("Udp.InDatagrams") + s.Count("Udp6.InDatagrams") + lost
	ratio := part(lost, arrived)
	if lost < 3 || ratio < overflowRatio && !lasting(s, lost, overflowRate) {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.UDPSocketOverflow, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("%s of %s datagrams died %s in a socket whose buffer was full%s.", evidence.Count(lost),
			evidence.Count(arrived), s.When(), perSecond(s, lost)),
		Evidence: []evidence.Evidence{
			{Name: "datagrams lost at full sockets", Value: lost, Unit: "datagrams",
				Source: s.Source("Udp.RcvbufErrors + Udp6.RcvbufErrors")},
			{Name: "datagrams for sockets of this host", Value: arrived, Unit: "datagrams",
				Source: s.Source("InDatagrams + RcvbufErrors")},
			{Name: "lost share", Value: ratio, Unit: "ratio", Source: "lost / all"},
		},
		Rejected: []string{
			fmt.Sprintf("Not the card or its queue: %s packets died in backlogs, and these had passed them.",
				evidence.Count(s.Count("softnet.dropped"))),
			fmt.Sprintf("Not the memory of all UDP sockets together: it was refused %s times.",
				evidence.Count(s.Count("Udp.MemErrors")+s.Count("Udp6.MemErrors"))),
			fmt.Sprintf("Not datagrams that nobody waits for: %s came for ports without a socket, and are not among these.",
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
		x.Title = fmt.Sprintf("%s of %s datagrams died %s, most of them at the socket %s, whose buffer was full%s.",
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

// worstDatagram is the socket that dropped most, nil where the kernel does not tell sockets or none
// of those looked at dropped.
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

// udpRemedy tells a burst, which a buffer rides out, from a reader that is too slow, which no
// buffer helps; and which setting bounds the buffer: the kernel's default, or what a program may
// ask for.
func udpRemedy(s *evidence.Span, x *evidence.Finding, d *watch.Datagram, ratio float64) {
	if ratio >= tooSlowRatio {
		x.Remedy.Text = fmt.Sprintf(
			"The reader is slower than what comes: with %s lost a larger buffer only fills later. Let it read several datagrams at a time "+
				"(recvmmsg, UDP_GRO), or several threads share the port (SO_REUSEPORT).",
			evidence.Percent(ratio))
	} else {
		x.Remedy.Text = "A larger receive buffer rides out bursts: SO_RCVBUF of the program, within net.core.rmem_max, or net.core.rmem_default for programs that do not ask."
	}
	x.Remedy.Proof = "Datagrams at the same rate with a buffer four times as large: the loss disappears if it came in bursts, and stays if the reader is too slow."
	preset, ok := s.Number(coreRmemDefault, 0)
	most, okMost := s.Number(evidence.CoreRmemMax, 0)
	// The kernel keeps twice what a program asked for, and the default as it is (sock_setsockopt in
	// net/core/sock.c, SO_RCVBUF).
	if ok && (d == nil || float64(d.Memory.ReceiveLimitBytes) == preset) {
		x.Remedy.Add(evidence.Candidate{Knob: coreRmemDefault, Side: s.Side, Levels: multiples(preset, 4, 16),
			Why: "the buffer of a socket whose program asked for none; new sockets only"})
	}
	if okMost && d != nil && float64(d.Memory.ReceiveLimitBytes) == 2*most {
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID(evidence.CoreRmemMax), Side: s.Side,
			Levels: multiples(most, 4, 16),
			Why:    "the program got as much as this setting allows; new sockets only"})
	}
}
