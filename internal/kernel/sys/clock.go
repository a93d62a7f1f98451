package sys

import "time"

// Monotonic returns the time since some fixed moment of this boot. It never goes back, and no
// program can set it; on Linux NTP slews it, and it stops while the machine sleeps. Only
// differences are meaningful.
func Monotonic() time.Duration { return monotonic() }

// Boottime returns the time since boot, including time asleep. A deadline in it holds across
// suspend. On a system without such a clock it is [Monotonic].
func Boottime() time.Duration {
	d, err := boottime()
	if err != nil {
		return monotonic()
	}
	return d
}
