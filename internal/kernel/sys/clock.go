package sys

import "time"

// Monotonic is the time since some fixed moment of this boot. It never goes back and is not set by
// anybody; on Linux it is slewed by NTP and stands still while the machine sleeps. Only differences
// mean something.
func Monotonic() time.Duration { return monotonic() }

// Boottime is the time since boot, with the time asleep counted. A deadline in it holds across
// suspend. Where the system has no such clock it is [Monotonic].
func Boottime() time.Duration {
	d, err := boottime()
	if err != nil {
		return monotonic()
	}
	return d
}
