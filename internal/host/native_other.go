//go:build !freebsd && !solaris && !windows

package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

func complete(_ context.Context, _ *Snapshot, said *notes) {
	said.say("drivers, buses, offloads, settings, routes and counters: not supported: " +
		"linerate reads them only on linux; this system is " + runtime.GOOS)
}

func nativeCounters() (*Counters, error) {
	return nil, fmt.Errorf("read counters: %w", errors.ErrUnsupported)
}
