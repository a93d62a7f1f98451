package iperf3

import (
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// cpuTimes is the processor time that this process has used, and when.
type cpuTimes struct {
	user, system time.Duration
}

// processTimes reads the clock. Where the system does not say, the results tell that the test cost
// no processor time, a key that the protocol does not let us leave out.
func processTimes() cpuTimes {
	user, system := sys.ProcessTimes()
	return cpuTimes{user: user, system: system}
}

// share gives the processor time since an earlier reading in per cent of so many seconds of one
// CPU, as the results of the protocol have it.
func (c cpuTimes) share(since cpuTimes, seconds float64) (total, user, system float64) {
	if seconds <= 0 {
		return 0, 0, 0
	}
	user = 100 * (c.user - since.user).Seconds() / seconds
	system = 100 * (c.system - since.system).Seconds() / seconds
	return user + system, user, system
}
