package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
)

const (
	// heldBuffer is how full the receive buffer of a slow reader stands at least. The window closes
	// when about all of it is taken; a fast reader at tens of gigabits is seen with some 40 % in
	// it.
	heldBuffer = 0.5
	// closedBuffer has no room for a segment of what the far end sends: packets take more memory
	// than their payload, so that the window closes before all is taken.
	closedBuffer = 0.85
	// waitsSeconds is how long bytes wait for their reader (waiting bytes over the rate at which
	// they are read) before it is called slow. A reader that keeps up has them for less than 20 ms
	// even on a processor that it shares; one that is slow by itself has a full buffer for its
	// whole life.
	waitsSeconds = 0.05
	// waitsAnyway is longer than a busy processor keeps a program from running, so that it is the
	// program.
	waitsAnyway = 0.25
	// bulk is the least that a sender moves before it is asked why not more: below it every
	// conversation is limited by who talks.
	bulk = 10e6 // bits per second
	// restingBusy is the share of the time with data in flight below which a sender rests; its
	// program is what it waits for.
	restingBusy = 0.5
)

// applicationLimited: the network waits for a program. Of a watched connection the receiver's side
// is certain: bytes that have arrived lie in a full buffer and wait to be read. A sender that has
// nothing to send is what every idle connection is, so it is told as information that asks for
// nothing, and only of a connection that moves most of what the host sends.
//
// Our own runs are not looked at: the engine that sends and reads is faster than any path, and
// where it is not, a processor is full.
func applicationLimited(s *evidence.Span) *evidence.Finding {
	if s.Sockets == nil || s.Run != nil || s.Sockets.Seconds <= 0 {
		return nil
	}
	for i := range s.Sockets.Connections {
		if x := slowReader(s, &s.Sockets.Connections[i]); x != nil {
			return x
		}
	}
	for i := range s.Sockets.Connections {
		if x := slowWriter(s, &s.Sockets.Connections[i]); x != nil {
			return x
		}
	}
	return nil
}

// slowReader looks at the end that receives. By Little's law the bytes that wait over the rate at
// which they are read is how long each of them waits.
//
// The look-alike is a buffer that is too small: its reader empties it at once, so that the bytes in
// it wait for less than a millisecond. Another is a reader that gets no processor, which a busy
// host explains. A third is a burst that was caught half way: its buffer has room left, and no
// window was closed; and what a connection read that is younger than the watch says nothing of its
// rate.
func slowReader(s *evidence.Span, c *watch.Connection) *evidence.Finding {
	fill := part(float64(c.Memory.ReceiveBytes), float64(c.Memory.ReceiveLimitBytes))
	if c.New || c.UnreadBytes <= 0 || fill < heldBuffer {
		return nil
	}
	read := float64(c.TCP.BytesReceived) / s.Sockets.Seconds
	zero := s.Count("TcpExt.TCPToZeroWindowAdv") + s.Count("TcpExt.TCPWantZeroWindowAdv")
	x := &evidence.Finding{
		Code: evidence.ApplicationLimited, Severity: evidence.Notice, Where: s.Side,
		Evidence: []evidence.Evidence{
			{Name: "bytes that wait to be read", Value: float64(c.UnreadBytes), Unit: "bytes",
				Source: s.Source("sock_diag, Recv-Q of " + c.Remote.String())},
			{Name: "receive buffer taken", Value: fill, Unit: "ratio",
				Source: s.Source("SK_MEMINFO_RMEM_ALLOC / SK_MEMINFO_RCVBUF")},
			{Name: "rate at which they are read", Value: read * 8, Unit: "bits_per_second",
				Source: s.Source("tcp_info tcpi_bytes_received")},
			{Name: "times that a window was closed", Value: zero, Unit: "times",
				Source: s.Source("TCPToZeroWindowAdv + TCPWantZeroWindowAdv")},
		},
	}
	busiest := s.BusiestBy(evidence.ClassRatios.Busy)
	starved := busiest.Known && busiest.Busy() >= evidence.FullProcessor
	if read == 0 {
		x.Title = fmt.Sprintf("The program behind %s has stopped to read: %s wait in a full buffer from %s.", c.Local,
			evidence.Bytes(float64(c.UnreadBytes)), c.Remote)
		x.Confidence = 0.6
		x.Rejected = []string{fmt.Sprintf("Not told apart from a program that pauses on purpose: nothing was read %s.",
			s.When())}
	} else {
		waits := float64(c.UnreadBytes) / read
		if waits < waitsSeconds {
			return nil
		}
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "how long bytes wait for their reader", Value: waits,
			Unit:   "seconds",
			Source: "waiting bytes / rate at which they are read"})
		if (waits >= waitsAnyway || !starved) && (zero > 0 || fill >= closedBuffer) {
			x.Severity = evidence.Warning
		}
		x.Title = fmt.Sprintf("The program behind %s reads %s from %s and no more: %s wait in its buffer, each for %s.",
			c.Local, evidence.Rate(read*8), c.Remote, evidence.Bytes(float64(c.UnreadBytes)), evidence.Seconds(waits))
		x.Confidence = evidence.Combine(0.6, evidence.When(zero > 0, 0.5), evidence.When(waits >= waitsAnyway, 0.5),
			evidence.When(!starved, 0.3))
		x.Rejected = []string{
			fmt.Sprintf("Not a buffer that is too small: its reader would find it empty most of the time, and %s waited in it when it was looked at.",
				evidence.Bytes(float64(c.UnreadBytes)))}
	}
	if busiest.Known && !starved {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the processors: the busiest (CPU %d) worked %s of the time.",
			busiest.CPU, evidence.Percent(busiest.Busy())))
	}
	x.Remedy.Text = "Nothing in the network: look at what the program does between two reads (its disk, its lock, its own consumer). A larger buffer only fills later."
	x.Remedy.Proof = "The same path between the same hosts measured from memory to memory (`linerate measure`) is faster than the program; a larger tcp_rmem changes " +
		"nothing."
	return x
}

// slowWriter looks at the end that sends: most of the time nothing is in flight, nothing waits to
// be sent, and the kernel says that the program had no more (app_limited). Both are asked for: a
// program that writes megabytes at a time rests as well, but while it writes the path is what it
// waits for, and the kernel then keeps the rate of that time and not of the other (tcp_rate_gen in
// net/ipv4/tcp_rate.c).
func slowWriter(s *evidence.Span, c *watch.Connection) *evidence.Finding {
	t := &c.TCP
	rate := float64(t.BytesAcked) * 8 / s.Sockets.Seconds
	// With a limit on unsent data the kernel's word on the program is void, and account leaves it
	// out.
	if c.New || !t.Sender || !t.AppLimited || t.UnsentLimitBytes > 0 || c.UnsentBytes > 0 || rate < bulk {
		return nil
	}
	busy := t.BusySeconds / s.Sockets.Seconds
	var sent float64
	for i := range s.Sockets.Connections {
		sent += float64(s.Sockets.Connections[i].TCP.BytesAcked)
	}
	if busy >= restingBusy || t.BusySeconds <= 0 || float64(t.BytesAcked) < sent/2 {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.ApplicationLimited, Severity: evidence.Info, Where: s.Side,
		Confidence: evidence.Combine(0.6, evidence.When(busy < 0.3, 0.4)),
		Title: fmt.Sprintf("The connection to %s sends %s and could send more: its program had nothing to send for %s of the time.",
			c.Remote, evidence.Rate(rate), evidence.Percent(1-busy)),
		Evidence: []evidence.Evidence{
			{Name: "sent", Value: rate, Unit: "bits_per_second",
				Source: s.Source("tcp_info tcpi_bytes_acked of " + c.Remote.String())},
			{Name: "share of the time with data in flight", Value: min(busy, 1), Unit: "ratio",
				Source: s.Source("tcp_info tcpi_busy_time")},
			{Name: "the kernel calls it limited by the application", Value: t.AppLimited,
				Source: s.Source("tcp_info tcpi_delivery_rate_app_limited")},
		},
		Rejected: []string{
			fmt.Sprintf("Not the receive window, which held it for %s of that time.",
				evidence.Percent(min(part(t.RwndLimitedSeconds, t.BusySeconds), 1))),
			fmt.Sprintf("Not the send buffer, which held it for %s.",
				evidence.Percent(min(part(t.SndbufLimitedSeconds, t.BusySeconds), 1))),
			fmt.Sprintf("Not loss: %s of %s segments were sent again.", evidence.Count(float64(t.RetransSegs)),
				evidence.Count(float64(t.SegsOut))),
		},
	}
	x.Remedy.Text = "If more is wanted, look at the program that writes (its disk, its single thread, its own peer); if it sends what it has, there is nothing to do."
	x.Remedy.Proof = "The same path measured from memory to memory (`linerate measure`) is faster than the program."
	return x
}
