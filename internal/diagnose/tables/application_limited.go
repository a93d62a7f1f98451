package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
)

const (
	// heldBuffer is how full the receive buffer of a slow reader is at least. The window closes
	// when about all of it is full; a fast reader at tens of gigabits has about 40 %.
	heldBuffer = 0.5
	// closedBuffer is a fill without room for another segment: packets take more memory than their
	// payload, so the window closes before the buffer is full.
	closedBuffer = 0.85
	// waitsSeconds is how long bytes wait for their reader (waiting bytes over the rate at which it
	// reads) before the reader counts as slow. One that keeps up leaves them for less than 20 ms
	// even on a shared CPU; a slow one has a full buffer all the time.
	waitsSeconds = 0.05
	// waitsAnyway is longer than a busy CPU delays a program, so the program itself is slow.
	waitsAnyway = 0.25
	// bulk is the least rate at which the rule asks why a sender is not faster: any conversation
	// below it depends on its participants.
	bulk = 10e6 // bits per second
	// restingBusy is the share of time with data in flight below which a sender waits for its
	// program.
	restingBusy = 0.5
)

// applicationLimited finds that the network waits for a program. On a watched connection the
// receiver's side is certain: received bytes wait in a full buffer. A sender without data to send
// is the normal state of an idle connection, so it is information that needs no action, and only
// for a connection that moves most of the host's outgoing traffic.
//
// The rule skips test runs: the traffic engine reads and writes faster than any path, unless a CPU
// is saturated.
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

// slowReader examines the receiving end. By Little's law, the waiting bytes over the rate at which
// they are read is how long each of them waits.
//
// One look-alike is a buffer that is too small: its reader empties it at once, so bytes wait for
// less than a millisecond. Another is a reader without CPU time, which a busy host explains. A
// third is a burst cut in half by the observation: its buffer has room left and no window closed.
// The rule skips connections younger than the observation, whose rate is unknown.
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
		x.Title = fmt.Sprintf("The program behind %s has stopped reading: %s wait in a full buffer from %s.", c.Local,
			evidence.Bytes(float64(c.UnreadBytes)), c.Remote)
		x.Confidence = 0.6
		x.Rejected = []string{fmt.Sprintf("Not distinguished from an intended pause: the program read nothing %s.",
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
		x.Title = fmt.Sprintf("The program behind %s reads only %s from %s: %s wait in its buffer, each for %s.",
			c.Local, evidence.Rate(read*8), c.Remote, evidence.Bytes(float64(c.UnreadBytes)), evidence.Seconds(waits))
		x.Confidence = evidence.Combine(0.6, evidence.When(zero > 0, 0.5), evidence.When(waits >= waitsAnyway, 0.5),
			evidence.When(!starved, 0.3))
		x.Rejected = []string{
			fmt.Sprintf("Not a small buffer: its reader would leave it empty most of the time, "+
				"but %s waited in it at the time of the reading.",
				evidence.Bytes(float64(c.UnreadBytes)))}
	}
	if busiest.Known && !starved {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the CPUs: the busiest one (CPU %d) was busy for %s of "+
			"the time.",
			busiest.CPU, evidence.Percent(busiest.Busy())))
	}
	x.Remedy.Text = "Nothing in the network: look at what the program does between two reads (its disk, " +
		"its locks, its own consumer). A larger buffer only fills later."
	x.Remedy.Proof = "A memory-to-memory test between the same hosts (`linerate measure`) is faster than the " +
		"program; a larger tcp_rmem changes nothing."
	return x
}

// slowWriter examines the sending end: most of the time nothing is in flight, nothing waits to be
// sent, and the kernel marks the connection as limited by the application. It needs both: a program
// that writes megabytes at a time rests as well, but it waits for the path while it writes, and the
// kernel then keeps the rate of that time (tcp_rate_gen in net/ipv4/tcp_rate.c).
func slowWriter(s *evidence.Span, c *watch.Connection) *evidence.Finding {
	t := &c.TCP
	rate := float64(t.BytesAcked) * 8 / s.Sockets.Seconds
	// With a limit on unsent data the kernel's mark is meaningless, and its account leaves the data
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
		Title: fmt.Sprintf("The connection to %s sends %s and could send more: its program had nothing to send "+
			"for %s of the time.",
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
			fmt.Sprintf("Not the receive window, which limited it for %s of that time.",
				evidence.Percent(min(part(t.RwndLimitedSeconds, t.BusySeconds), 1))),
			fmt.Sprintf("Not the send buffer, which limited it for %s of that time.",
				evidence.Percent(min(part(t.SndbufLimitedSeconds, t.BusySeconds), 1))),
			fmt.Sprintf("Not loss: %s of %s segments were retransmitted.", evidence.Count(float64(t.RetransSegs)),
				evidence.Count(float64(t.SegsOut))),
		},
	}
	x.Remedy.Text = "If it should be faster, look at the program that writes (its disk, its single thread, " +
		"its own peer). If it sends all it has, there is nothing to do."
	x.Remedy.Proof = "A memory-to-memory test over the same path (`linerate measure`) is faster than the program."
	return x
}
