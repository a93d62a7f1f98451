package mesh

import (
	"errors"
	"fmt"
	"time"
)

// ErrBusy reports a host that is in another load test, or in a trial of a tune.
var ErrBusy = errors.New("busy, ask in the next round")

// Lease is the right of one test to load one host, in either role. The host keeps it. The zero
// Lease is free. It is not safe for concurrent use.
type Lease struct {
	holder string
	until  time.Duration
}

// Take gives the lease to a test until a moment of the host's CLOCK_BOOTTIME. The same test may
// take it again. It never waits: the error is ErrBusy while another test has it.
func (l *Lease) Take(now time.Duration, test string, until time.Duration) error {
	if l.holder != "" && l.holder != test && now < l.until {
		return fmt.Errorf("lease for test %s: %w", test, ErrBusy)
	}
	l.holder, l.until = test, until
	return nil
}

// Free ends the lease of a test. One that another test has, stays.
func (l *Lease) Free(test string) {
	if l.holder == test {
		*l = Lease{}
	}
}

// Held reports whether a test has the lease.
func (l *Lease) Held(now time.Duration) bool { return l.holder != "" && now < l.until }

// Both takes the leases of two hosts, that of the smaller id first, so that two tests never wait
// for each other. After a refusal neither is held.
func Both(a, b string, take func(host string) error, free func(host string)) error {
	if b < a {
		a, b = b, a
	}
	if err := take(a); err != nil {
		return err
	}
	if err := take(b); err != nil {
		free(a)
		return err
	}
	return nil
}
