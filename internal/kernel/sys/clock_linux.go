package sys

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func monotonic() time.Duration {
	var ts unix.Timespec
	// clock_gettime cannot fail for CLOCK_MONOTONIC: the clock exists since Linux 2.6 and the
	// pointer is valid.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}

func boottime() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read clock boottime: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
