package sys

import (
	"time"

	"golang.org/x/sys/windows"
)

// processStart anchors Go's own monotonic clock, which is QueryPerformanceCounter and so far finer
// than the 15 ms of the tick counters.
var processStart = time.Now()

func monotonic() time.Duration { return time.Since(processStart) }

// boottime returns GetTickCount64, which counts sleep and hibernation.
func boottime() (time.Duration, error) { return windows.DurationSinceBoot(), nil }
