package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/traffic/lease"
)

// leaseWait is how long a command waits for the lease of this host: long enough for the end of a
// test that has just been cut off, and too short for a user to wonder.
const leaseWait = 2 * time.Second

// busyError reports that another load test has this host.
type busyError struct{ error }

// Hint returns what the user can do.
func (busyError) Hint() string {
	return "wait until it ends; measure --test ping and --test mtu load nothing, and run beside it"
}

func (e busyError) Unwrap() error { return e.error }

// loads takes the right to load this host for as long as a command tests, and returns what gives it
// back. A fleet, a schedule of the hub and a user then never load one host at the same time, in
// either role.
func (a *app) loads(ctx context.Context, command string) (release func(), err error) {
	release, err = (&lease.Lease{Name: a.lease}).Wait(ctx, leaseWait)
	switch {
	case errors.Is(err, lease.ErrBusy): // whose text has the name of a socket, too
		return nil, busyError{fmt.Errorf("%s: %w", command, lease.ErrBusy)}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return release, nil
}
