package stamp

import "time"

// clockState is what the system reports about its real-time clock.
type clockState struct {
	synchronised bool          // a daemon synchronises the clock and has informed the kernel
	maxError     time.Duration // the kernel's bound of the error; without synchronisation, it grows
	taiOffset    int64         // TAI minus UTC in seconds; 0: the kernel does not know it
}

// unknownError is the error of an unsynchronised clock.
const unknownError = 16 * time.Second // NTP_PHASE_LIMIT of Linux, at which a clock counts as lost

// clockEvery is the largest age of a reading of the clock's state. Daemons adjust clocks in steps
// of seconds.
const clockEvery = time.Second

// clock caches the state of this host's clock. It is for one goroutine.
type clock struct {
	state clockState
	read  time.Time // when
	query func() clockState
}

// now returns the state, which is at most a second old.
func (c *clock) now() clockState {
	if time.Since(c.read) > clockEvery {
		c.state, c.read = c.query(), time.Now()
	}
	return c.state
}

// estimate returns this host's error estimate for timestamps of a format. PTP counts TAI: a host
// that does not know the offset cannot vouch for such a timestamp.
func (s clockState) estimate(f format) errorEstimate {
	return estimate(s.maxError, s.synchronised && (f == ntpFormat || s.taiOffset != 0), f)
}

// unixNanos returns the real-time clock. SO_TIMESTAMPNS also reads CLOCK_REALTIME, so the two can
// be compared.
func unixNanos() int64 { return time.Now().UnixNano() }
