//go:build freebsd || solaris

package sys

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func monotonic() time.Duration {
	var ts unix.Timespec
	// The clock exists on every release that Go supports and the pointer is valid, so this cannot
	// fail.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}

// boottime returns the monotonic clock: both systems start it at boot, and neither promises to
// count the time asleep.
func boottime() (time.Duration, error) {
	return monotonic(), fmt.Errorf("read clock boottime: %w", ErrNotSupported)
}
