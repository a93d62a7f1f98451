package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/peer/order"
)

func TestPlan(t *testing.T) {
	p := planOf(t, 1000, 1)
	again := planOf(t, 1000, 1)
	if !reflect.DeepEqual(p, again) {
		t.Error("the same seed gives another plan")
	}
	perStage := make(map[int]map[string]int)
	for i, h := range p.Hosts {
		if perStage[p.Stage[i]] == nil {
			perStage[p.Stage[i]] = make(map[string]int)
		}
		perStage[p.Stage[i]][h.Class]++
		if p.Stage[i] == rollout.Pairs && p.Mate[i] < 0 {
			t.Errorf("host %s of the pairs has no like host", h.ID)
		}
	}
	for s, want := range map[int]int{rollout.Experiment: 13, rollout.Pairs: 28, rollout.Wave1: 30, rollout.Wave10: 120,
		rollout.Wave50:  520,
		rollout.WaveAll: 1000} {
		if got := p.Share(s); got > want {
			t.Errorf("%d hosts are changed after %s, want at most %d: %v", got, rollout.StageNames[s], want, perStage)
		}
	}
	// The rarest class is in each early stage.
	for s := rollout.Experiment; s <= rollout.Pairs; s++ {
		if perStage[s]["class-4"] == 0 {
			t.Errorf("%s has no host of the class of 1 %%: %v", rollout.StageNames[s], perStage)
		}
	}
}

// TestCaps: never two hosts of a rack or quorum, nor hosts of two sites, in flight at once.
func TestCaps(t *testing.T) {
	p := planOf(t, 400, 3)
	m := rollout.New(p)
	// The first actions of the first stages, without answers: all are in flight together.
	racks, quorums, sites := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, a := range m.Next() {
		h := p.Hosts[a.Host]
		if racks[h.Rack] || quorums[h.Quorum] {
			t.Errorf("two of rack %s or quorum %s", h.Rack, h.Quorum)
		}
		racks[h.Rack], quorums[h.Quorum], sites[h.Site] = true, true, true
		m.Apply(rollout.Event{Kind: rollout.Asked, Host: a.Host})
	}
	if len(sites) != 1 || len(racks) < 2 {
		t.Errorf("%d sites, %d racks", len(sites), len(racks))
	}
	if more := m.Next(); len(more) != 0 {
		for _, a := range more {
			if h := p.Hosts[a.Host]; racks[h.Rack] || !sites[h.Site] {
				t.Errorf("another host in flight: %+v", h)
			}
		}
	}
}

// TestOrdinaryRollout: a change that helps reaches every host, and is proven.
func TestOrdinaryRollout(t *testing.T) {
	r := play(planOf(t, 1000, 5), ordinary(), rand.New(rand.NewPCG(1, 2)))
	if r.machine.Phase() != rollout.Done || r.touched != 1000 || !r.machine.Proven() ||
		r.machine.Counts()[rollout.Committed] != 1000 {
		t.Errorf("%s in %s: %s; %d touched, %v", r.machine.Phase(), rollout.StageNames[r.machine.Stage()],
			r.machine.Reason(), r.touched, r.machine.Counts())
	}
	t.Logf("took %v; looks %+v", r.took, r.machine.Looks())
}

// TestRepeated: a host that lives gets an order again until a deadline has passed, and no later. It
// is lost two deadlines after the order first left. An answer that comes in time is enough.
func TestRepeated(t *testing.T) {
	short := rollout.DefaultTiming()
	short.Settle = 2 * time.Second
	for name, timing := range map[string]rollout.Timing{"default": rollout.DefaultTiming(), "short settling": short} {
		for _, answers := range []bool{true, false} {
			m, host := toFirstTry(t, timing)
			began := timing.Soak
			sends, last := 0, began
			now := began
			for ; m.Phase() != rollout.Halted && now < began+3*timing.Deadline; now += time.Second {
				m.Apply(rollout.Event{At: now, Kind: rollout.Alive, Host: host})
				m.Apply(rollout.Event{At: now, Kind: rollout.Ticked})
				for _, a := range m.Next() {
					if a.Host != host || a.Verb != order.Try {
						continue
					}
					m.Apply(rollout.Event{At: now, Kind: rollout.Sent, Host: host, Verb: order.Try})
					sends, last = sends+1, now
					if answers && sends == 5 {
						m.Apply(rollout.Event{At: now, Kind: rollout.Answered, Host: host, Verb: order.Try, Code: order.InTrial})
					}
				}
				if m.State(host) == rollout.InTrial {
					break
				}
			}
			if answers {
				if m.State(host) != rollout.InTrial || m.Phase() != rollout.Ordering || last-began > timing.Deadline {
					t.Errorf("%s: the fifth answer came after %v, and the host is %s: %s", name, last-began, m.State(host), m.Reason())
				}
				continue
			}
			if m.State(host) != rollout.Lost || !strings.Contains(m.Reason(), "does not answer") || sends < 5 || sends > 12 ||
				last-began > timing.Deadline || now-began > 2*timing.Deadline+2*time.Second {
				t.Errorf("%s: sent %d times within %v, %s after %v: %s", name, sends, last-began, m.State(host), now-began,
					m.Reason())
			}
		}
	}
}

// toFirstTry returns a machine of six hosts in as many racks, whose one experiment has shown a
// benefit, and a host that is ordered next.
func toFirstTry(t *testing.T, timing rollout.Timing) (*rollout.Machine, int) {
	t.Helper()
	var hosts []rollout.Host
	for i := range 6 {
		hosts = append(hosts, rollout.Host{ID: fmt.Sprint("h", i), Class: "c", Rack: fmt.Sprint("r", i)})
	}
	p, err := rollout.NewPlan("r1", 1, hosts, timing)
	if err != nil {
		t.Fatal(err)
	}
	m := rollout.New(p)
	for now := time.Duration(0); now < time.Minute; now += time.Second {
		m.Apply(rollout.Event{At: now, Kind: rollout.Ticked})
		for _, a := range m.Next() {
			if !a.Experiment {
				return m, a.Host
			}
			m.Apply(rollout.Event{At: now, Kind: rollout.Asked, Host: a.Host})
			m.Apply(rollout.Event{At: now, Kind: rollout.Measured, Host: a.Host, Effect: 0.03, Error: 0.001})
		}
	}
	t.Fatal("no host is ordered")
	return nil, 0
}
