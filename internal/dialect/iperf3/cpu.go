package iperf3

import (
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// cpuTimes is the CPU time that this process has used at one moment.
type cpuTimes struct {
	user, system time.Duration
}

// processTimes reads the CPU time. Where the system does not report it, the results show zero,
// because the protocol requires the key.
func processTimes() cpuTimes {
	user, system := sys.ProcessTimes()
	return cpuTimes{user: user, system: system}
}

// share returns the CPU time since an earlier reading, in per cent of the given number of seconds
// of one CPU. This is the unit of the protocol's results.
func (c cpuTimes) share(since cpuTimes, seconds float64) (total, user, system float64) {
	if seconds <= 0 {
		return 0, 0, 0
	}
	user = 100 * (c.user - since.user).Seconds() / seconds
	system = 100 * (c.system - since.system).Seconds() / seconds
	return user + system, user, system
}
