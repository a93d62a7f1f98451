package mesh_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/linerate/linerate/hub/internal/fleet/mesh"
)

// lab is hosts whose tests another planner disturbs. It fails the test when a host or an uplink has
// more load tests than it may.
type lab struct {
	t     *testing.T
	hosts []mesh.Host
	caps  mesh.Caps
	mu    sync.Mutex
	rng   *rand.Rand
	busy  map[int]bool
	up    map[string]int
	stuck int // this host is busy for ever
	bad   string
}

func (l *lab) test(_ context.Context, from, to int, load bool) (mesh.Value, error) {
	l.mu.Lock()
	if load {
		if from == l.stuck || to == l.stuck || l.rng.IntN(10) == 0 {
			l.mu.Unlock()
			return mesh.Value{}, fmt.Errorf("host: %w", mesh.ErrBusy)
		}
		if l.busy[from] || l.busy[to] {
			l.t.Errorf("host %d or %d is in two load tests", from, to)
		}
		l.busy[from], l.busy[to] = true, true
		if a, b := l.hosts[from].Rack, l.hosts[to].Rack; a != b {
			for _, r := range []string{a, b} {
				if l.up[r]++; l.caps.Uplink > 0 && l.up[r] > l.caps.Uplink {
					l.t.Errorf("%d load tests on the uplink of %s", l.up[r], r)
				}
			}
		}
	}
	rtt, loss, rate := 0.0002+l.rng.Float64()/1e4, 0.0, 9e9+l.rng.Float64()*1e9
	l.mu.Unlock()
	defer func() {
		if !load {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy[from], l.busy[to] = false, false
		if a, b := l.hosts[from].Rack, l.hosts[to].Rack; a != b {
			l.up[a]--
			l.up[b]--
		}
	}()
	across := func(h mesh.Host) bool { return h.ID == l.bad || h.Rack == l.bad }
	if across(l.hosts[from]) || across(l.hosts[to]) {
		loss, rate = 0.4, 1e9
	}
	if load {
		return mesh.Value{Rate: &rate}, nil
	}
	return mesh.Value{RTT: &rtt, Loss: &loss}, nil
}

func newLab(t *testing.T, n int, bad string) *lab {
	return &lab{t: t, hosts: inRacks(n, 10, 1), caps: mesh.Caps{Uplink: 2, Site: 1}, rng: rand.New(rand.NewPCG(3, 3)),
		busy: make(map[int]bool), up: make(map[string]int), stuck: -1, bad: bad}
}

// TestRun: with pings, with loads and with a host that is always busy, the culprit is found and the
// bounds hold at every moment.
func TestRun(t *testing.T) {
	for _, bad := range []string{"", "h00017", "r0003"} {
		for _, loads := range []int{0, 3} {
			l := newLab(t, 60, bad)
			pings := 5
			if loads > 0 {
				pings, l.stuck = 0, 42
			}
			r, err := mesh.Run(t.Context(), mesh.Campaign{Hosts: l.hosts, Seed: 7, Pings: pings, Loads: loads, Caps: l.caps,
				Suspects: 8, Retests: 10}, l.test)
			if err != nil {
				t.Fatal(err)
			}
			got := "nothing"
			if len(r.Culprits) > 0 {
				got = r.Culprits[0].Name
			}
			if want := bad; got != want && (want != "" || got != "nothing") {
				t.Errorf("bad %q, %d loads: %s is accused", bad, loads, got)
			}
			if loads > 0 && (r.Left == 0 || r.Refused < r.Left) {
				t.Errorf("a host is always busy: %d left, %d refused", r.Left, r.Refused)
			}
			if loads == 0 && (r.Left != 0 || len(r.Outcomes) < 150) {
				t.Errorf("%d tests, %d left", len(r.Outcomes), r.Left)
			}
		}
	}
}

// TestAllowedRates: a host that may send a hundredth of what the others do, and does, is not
// accused. One that makes a tenth of what it may is.
func TestAllowedRates(t *testing.T) {
	for slow, want := range map[float64]int{1e8: 0, 1e7: 1} {
		r, err := mesh.Run(t.Context(), mesh.Campaign{Hosts: inRacks(12, 4, 1), Seed: 1, Loads: 4},
			func(_ context.Context, from, _ int, _ bool) (mesh.Value, error) {
				rate, most := 1e10, 0.0
				if from == 5 {
					rate, most = slow, 1e8
				}
				return mesh.Value{Rate: &rate, Most: most}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		bad := 0
		for _, o := range r.Outcomes {
			if o.Bad {
				bad++
			}
		}
		if (bad > 0) != (want > 0) {
			t.Errorf("at %g b/s, %d tests are bad: %+v", slow, bad, r.Culprits)
		}
	}
}

// TestEndsWithItsContext: after the end of the context no test is begun.
func TestEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var begun atomic.Int64
	_, err := mesh.Run(ctx, mesh.Campaign{Hosts: inRacks(2000, 10, 1), Seed: 1, Pings: 4},
		func(ctx context.Context, _, _ int, _ bool) (mesh.Value, error) {
			if begun.Add(1) == 1 {
				stop()
			}
			<-ctx.Done()
			return mesh.Value{}, ctx.Err()
		})
	// Of the slot that was under way, those that pass the gate before the end is seen.
	if n := begun.Load(); !errors.Is(err, context.Canceled) || n > 300 {
		t.Errorf("%d tests were begun: %v", n, err)
	}
}

// TestRefusedSaysNothing: a host whose policy refuses is not bad, and neither is the path to it.
func TestRefusedSaysNothing(t *testing.T) {
	l := newLab(t, 30, "")
	r, err := mesh.Run(t.Context(), mesh.Campaign{Hosts: l.hosts, Seed: 7, Pings: 5, Suspects: 8, Retests: 10},
		func(ctx context.Context, from, to int, load bool) (mesh.Value, error) {
			if from == 4 {
				return mesh.Value{Refused: "the kill switch is on"}, nil
			}
			if to == 4 {
				return mesh.Value{}, errors.New("the bus is gone")
			}
			return l.test(ctx, from, to, load)
		})
	if err != nil || len(r.Culprits) != 0 || slices.ContainsFunc(r.Outcomes, func(o mesh.Outcome) bool { return o.Bad }) {
		t.Errorf("%v, %+v", err, r.Culprits)
	}
	// A host that was starved while it measured has not measured the path.
	r, err = mesh.Run(t.Context(), mesh.Campaign{Hosts: l.hosts, Seed: 7, Pings: 5, Suspects: 8, Retests: 10},
		func(ctx context.Context, from, to int, load bool) (mesh.Value, error) {
			if from == 4 || to == 4 {
				return mesh.Value{Failed: "time-out", Late: 1.5}, nil
			}
			return l.test(ctx, from, to, load)
		})
	disturbed := slices.IndexFunc(r.Outcomes, func(o mesh.Outcome) bool { return o.Disturbed && !o.Bad && o.Reason != "" })
	if err != nil || len(r.Culprits) != 0 || disturbed < 0 {
		t.Errorf("disturbed: %v, %+v", err, r.Culprits)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := mesh.Run(ctx, mesh.Campaign{Hosts: l.hosts, Pings: 2}, l.test); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was ended: %v", err)
	}
}
