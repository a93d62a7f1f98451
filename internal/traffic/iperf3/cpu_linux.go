package iperf3

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTimes reads getrusage(2). It cannot fail with these arguments; zeros would only make the share zero.
func processTimes() cpuTimes {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return cpuTimes{}
	}
	return cpuTimes{user: time.Duration(r.Utime.Nano()), system: time.Duration(r.Stime.Nano())}
}
