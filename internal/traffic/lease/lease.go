package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
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

	// Courtesy is how long another user's test keeps this one away; 0: an hour, longer than the
	// tests of serve, of schedules and of fleets. Every user of the host can take the lease, and
	// could otherwise keep it for ever.
	Courtesy time.Duration

	mu      sync.Mutex
	held    bool
	refused time.Time // the first of the refusals for another user's test; zero: the last attempt was none
}

// look is the time between two attempts of [Lease.Wait].
const look = 100 * time.Millisecond

// Wait takes the lease as soon as it is free, and returns what gives it back, which counts once.
// The error is ErrBusy if another test still has the lease after most, or that of Take.
func (l *Lease) Wait(ctx context.Context, most time.Duration) (release func(), err error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for end := time.Now().Add(most); ; {
		release, err := l.take()
		if !errors.Is(err, ErrBusy) {
			return release, err
		}
		if time.Now().After(end) {
			return l.insist(err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another load test to end: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// Take takes the lease, and returns what gives it back, which counts once. It does not wait: the
// error is ErrBusy while another test has the lease, and names its process as far as the kernel
// does. Any other one is the kernel's refusal.
func (l *Lease) Take() (release func(), err error) {
	if release, err = l.take(); errors.Is(err, ErrBusy) {
		return l.insist(err)
	}
	return release, err
}

func (l *Lease) socket() string { return "@" + cmp.Or(l.Name, ofHost) }

// owner is who has a lease: the zero value if the kernel does not say.
type owner struct {
	known bool
	uid   int
	what  string // for a sentence
}

// insist returns the error of a refusal with the process that has the lease, or the lease without
// its socket: once another user's test has been the reason of every refusal for the time of
// courtesy. A test of root or of the same user is never in doubt.
func (l *Lease) insist(busy error) (release func(), err error) {
	who := holder(l.socket())
	if who.what != "" {
		busy = fmt.Errorf("%w: %s", busy, who.what)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now := time.Now(); {
	case l.held || runtime.GOOS != "linux":
		return nil, busy
	case who.known && (who.uid == 0 || who.uid == os.Geteuid()):
		l.refused = time.Time{}
		return nil, busy
	case l.refused.IsZero():
		l.refused = now
		return nil, busy
	case now.Sub(l.refused) < cmp.Or(l.Courtesy, time.Hour):
		return nil, busy
	}
	return l.hold(func() {}), nil
}

// hold marks the lease as held and returns what gives it back.
func (l *Lease) hold(free func()) (release func()) {
	l.held = true
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		free()
		l.held = false
	})
}

func (l *Lease) take() (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return nil, ErrBusy
	}
	free := func() {}
	if runtime.GOOS == "linux" {
		socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.socket(), Net: "unix"})
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, ErrBusy
		}
		if err != nil {
			return nil, fmt.Errorf("take the lease of load tests: %w", err) // no descriptor, or no right to such a socket
		}
		free = func() { _ = socket.Close() }
	}
	l.refused = time.Time{}
	return l.hold(free), nil
}
