//go:build !linux && !freebsd && !solaris && !windows

package sys

import (
	"fmt"
	"time"
)

// processStart anchors Go's own monotonic clock.
var processStart = time.Now()

func monotonic() time.Duration { return time.Since(processStart) }

func boottime() (time.Duration, error) {
	return monotonic(), fmt.Errorf("read clock boottime: %w", ErrNotSupported)
}
