package stamp

import "time"

// clockState is what the system says of its real-time clock.
type clockState struct {
	synchronised bool          // somebody steers the clock and told the kernel
	maxError     time.Duration // the kernel's bound of its error; while nobody steers, it grows
	taiOffset    int64         // TAI less UTC in seconds; 0: nobody told the kernel
}

// unknownError is the error of a clock that nobody vouches for.
const unknownError = 16 * time.Second // NTP_PHASE_LIMIT of Linux, at which a clock counts as lost

// clockEvery is how old a reading of the clock's state may be. Daemons steer in steps of seconds.
const clockEvery = time.Second

// clock keeps the state of this host's clock at hand. It is for one goroutine.
type clock struct {
	state clockState
	read  time.Time // when
	query func() clockState
}

// now is the state, a second old at most.
func (c *clock) now() clockState {
	if time.Since(c.read) > clockEvery {
		c.state, c.read = c.query(), time.Now()
	}
	return c.state
}

// estimate is this host's error estimate for timestamps of a format. PTP counts TAI: a host that
// was not told the offset cannot vouch for such a timestamp.
func (s clockState) estimate(f format) errorEstimate {
	return estimate(s.maxError, s.synchronised && (f == ntpFormat || s.taiOffset != 0), f)
}

// unixNanos is the real-time clock. CLOCK_REALTIME is what SO_TIMESTAMPNS reads as well, so
// differences of both mean something.
func unixNanos() int64 { return time.Now().UnixNano() }
