package engine

import "time"

// Constants of a paced stream.
const (
	// pacingHeadroom is by how much the rate that the kernel keeps exceeds the one asked for. The
	// schedule keeps the mean; the kernel spreads what one call hands over. At exactly the same
	// rate, a thread that ran late could never make up for it: 100 Mb/s became 82 on a busy host.
	pacingHeadroom = 1.25
	// lateCall is how late a stream may be before the kernel's limit goes until the stream is on time
	// again, so that the mean of the test is the rate asked for, as with iperf3 -b. At 1.25 times
	// the rate, a thread that a busy host delays again and again never is.
	lateCall = pacedCall
	// lateCredit is how late a stream may be and still catch up: longer than some retransmission
	// timeouts of Linux (200 ms, then 400), and than a busy host suspends a thread. A longer delay
	// moves the schedule.
	lateCredit = time.Second
)

// schedule bounds a paced stream: no byte is handed over before its time has come. So what a sender
// claims to have sent is never more than its rate allows, from the first call on. The kernel's own
// pacing cannot do that: it lets the first ten segments of a connection pass, which are 640 KB on
// loopback, and the send buffer takes what the path has not carried yet. It has no clock and does
// not sleep.
type schedule struct {
	bytesPerSecond float64 // 0: no schedule
	started        bool
	start          time.Duration // moved by delays beyond the credit
	handed         int64         // bytes since start
	hurries        bool          // late, and not on time since
}

// wait returns how long to wait before the next n bytes may be handed over; 0: not at all.
func (s *schedule) wait(now time.Duration, n int) time.Duration {
	if s.bytesPerSecond <= 0 {
		return 0
	}
	if !s.started {
		s.started, s.start = true, now
	}
	due := s.start + time.Duration(float64(s.handed+int64(n))/s.bytesPerSecond*float64(time.Second))
	if late := now - due; late > lateCredit {
		s.start += late - lateCredit
	}
	if due > now {
		s.hurries = false
	} else if now-due > lateCall {
		s.hurries = true
	}
	return max(due-now, 0)
}

// sent counts bytes that the kernel took.
func (s *schedule) sent(n int) { s.handed += int64(n) }
