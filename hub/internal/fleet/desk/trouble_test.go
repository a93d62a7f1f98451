package desk

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/swarm"
)

// small starts a swarm of a few hosts; its end is that of the test.
func small(t *testing.T, o Options, hosts int) *swarm.Swarm {
	t.Helper()
	address, token := invite(t, o.Dir, Request{Uses: hosts + 10})
	s := &swarm.Swarm{}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		s.Run(ctx, swarm.Options{Hosts: hosts, Address: address, Token: token,
			BeatEvery: 100 * time.Millisecond, Longest: time.Second})
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return s
}

// TestHubClockYearOff starts the hub with a clock that is a year ahead, then right, then ahead
// again. Hosts that joined under one clock stay under the other. A clock that is behind is not
// played here: the embedded server compares expiries with the real clock, and would refuse what
// that hub signs.
func TestHubClockYearOff(t *testing.T) {
	const year = 365 * 24 * time.Hour
	o := options(t)
	const hosts = 5
	for i, skew := range []time.Duration{year, 0, year} {
		o.now = func() time.Time { return time.Now().Add(skew) }
		d := start(t, o)
		if i == 0 {
			small(t, o, hosts)
		}
		until(t, "all hosts", func() bool { return answered(t, o.Dir) == hosts })
		d.stop()
	}
}
