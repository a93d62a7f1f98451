package traffictest

import "time"

// longestWindow is a time in which a test moves something on any machine.
const longestWindow = 20 * time.Second

// Longer runs a test with a window, and with windows four times as long until its result has what
// measured asks for: a window in which the machine gave the test no CPU has nothing to show.
func Longer[R any](window time.Duration, run func(window time.Duration) R, measured func(R) bool) R {
	for ; ; window *= 4 {
		if r := run(window); measured(r) || window >= longestWindow {
			return r
		}
	}
}
