package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
)

// ErrBusy reports that another test loads this host.
var ErrBusy = errors.New("another load test has this host")

// ofHost is the name of this host's lease.
const ofHost = "linerate/load-test"

// Lease is one lease. The zero value is that of this host on Linux, and one of its own elsewhere.
type Lease struct {
	// Name is that of the socket, in the abstract namespace of Linux; empty: the lease of this host.
	// A test has one of its own, because programs on the same machine may have this host's.
	Name string

	mu   sync.Mutex
	held bool
}

// look is the time between two attempts of [Lease.Wait].
const look = 100 * time.Millisecond

// Wait takes the lease as soon as it is free, and returns what gives it back, which counts once.
// The error is ErrBusy if another test still has the lease after most.
func (l *Lease) Wait(ctx context.Context, most time.Duration) (release func(), err error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for end := time.Now().Add(most); ; {
		release, err := l.Take()
		if err == nil || time.Now().After(end) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another load test to end: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// Take takes the lease, and returns what gives it back, which counts once. It does not wait: the
// error is ErrBusy while another test has the lease.
func (l *Lease) Take() (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return nil, ErrBusy
	}
	free := func() {}
	if runtime.GOOS == "linux" {
		socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + cmp.Or(l.Name, ofHost), Net: "unix"})
		if err != nil {
			// The address in use is the only failure that the kernel has for this call.
			return nil, fmt.Errorf("%w: %w", ErrBusy, err)
		}
		free = func() { _ = socket.Close() }
	}
	l.held = true
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		free()
		l.held = false
	}), nil
}
