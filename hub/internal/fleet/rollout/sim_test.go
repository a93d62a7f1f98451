package rollout_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/peer/order"
)

// classes are the shares of the hardware classes of a simulated fleet.
var classes = []float64{0.44, 0.30, 0.20, 0.05, 0.01}

// fleetOf returns hosts in racks of 40 on two sites; the last member of classes is the rarest.
func fleetOf(n int) []rollout.Host {
	hosts := make([]rollout.Host, 0, n)
	class, left := 0, int(classes[0]*float64(n)+0.5)
	for i := range n {
		for left == 0 && class < len(classes)-1 {
			class++
			left = int(classes[class]*float64(n) + 0.5)
		}
		left--
		rack := i * 37 % max(1, n/40)
		hosts = append(hosts, rollout.Host{ID: fmt.Sprintf("h%05d", i*7919%100_003), Class: fmt.Sprint("class-", class),
			Rack: fmt.Sprint("rack-", rack), Quorum: fmt.Sprint("q-", i/3), Site: fmt.Sprint("site-", rack%2)})
	}
	return hosts
}

// world is what a change does to a fleet, and how noisy its measurements are.
type world struct {
	effect  float64 // on the logarithm of a host's metric
	spread  float64 // standard deviation of the effect between hosts
	noise   float64 // of a host's change from one soak to another
	day     float64 // common to all hosts of a window: time of day
	bad     string  // class with the harmful effect
	harm    float64 // there, instead of effect
	hidden  bool    // the harm does not show in an experiment, only under production load
	kills   float64 // probability that a host of the bad class is gone after the change
	reverts float64 // probability that one is cut off and takes the change back
	lost    float64 // probability that a message to a host or from it is lost, anywhere
}

// result is the end of one rollout.
type result struct {
	machine *rollout.Machine
	touched int  // hosts on which the change was in force at any time, experiments included
	bad     int  // of these, hosts of the bad class
	slower  bool // it halted for harm, and what it names is really slower in the mean
	took    time.Duration
}

// experimentPairs are those of a host that measures the change against itself.
const experimentPairs = 20

// estimate draws the standard error that a host computes from its own pairs, where se is the true
// one.
func estimate(se float64, rng *rand.Rand) float64 {
	squares := 0.0
	for range experimentPairs - 1 {
		x := rng.NormFloat64()
		squares += x * x
	}
	return se * math.Sqrt(squares/(experimentPairs-1))
}

// slower reports whether the host, the class or the fleet that a machine names for harm has a mean
// effect below zero.
func slower(m *rollout.Machine, p *rollout.Plan, effects []float64) bool {
	if !m.Harm() {
		return false
	}
	named := func(h rollout.Host) bool {
		return strings.Contains(m.Reason(), "host "+h.ID+" ") || strings.HasSuffix(m.Reason(), ": "+h.Class) ||
			strings.HasSuffix(m.Reason(), ": fleet")
	}
	sum, n := 0.0, 0
	for i, h := range p.Hosts {
		if named(h) {
			sum, n = sum+effects[i], n+1
		}
	}
	return n > 0 && sum < 0
}

// play runs a rollout with hosts that are three numbers each.
func play(p *rollout.Plan, w world, rng *rand.Rand) result {
	m := rollout.New(p)
	n := len(p.Hosts)
	effects := make([]float64, n)
	touched, gone, reverted := make([]bool, n), make([]bool, n), make([]bool, n)
	for i, h := range p.Hosts {
		effects[i] = w.effect + w.spread*rng.NormFloat64()
		if h.Class == w.bad {
			effects[i] = w.harm + w.spread*rng.NormFloat64()
		}
	}
	now := time.Duration(0)
	changed := make([]time.Duration, n)
	days := make(map[time.Duration]float64) // by the end of the soak
	for range 4000 {
		for _, a := range m.Next() {
			i := a.Host
			bad := p.Hosts[i].Class == w.bad
			switch {
			case a.Experiment:
				m.Apply(rollout.Event{At: now, Kind: rollout.Asked, Host: i})
				touched[i] = true
				se := 0.03 / math.Sqrt(experimentPairs)
				effect := effects[i]
				if bad && w.hidden {
					effect = w.effect
				}
				m.Apply(rollout.Event{At: now, Kind: rollout.Measured, Host: i, Effect: effect + se*rng.NormFloat64(),
					Error: estimate(se, rng), Pairs: experimentPairs})
			case a.Verb == "":
				day, known := days[a.To]
				if !known {
					day = w.day * rng.NormFloat64()
					days[a.To] = day
				}
				value := day + w.noise*rng.NormFloat64()
				if touched[i] && changed[i] >= a.From {
					value += effects[i]
				}
				if !gone[i] && rng.Float64() >= w.lost && rng.Float64() >= w.lost {
					m.Apply(rollout.Event{At: now, Kind: rollout.Measured, Host: i, Effect: value})
				}
			default:
				m.Apply(rollout.Event{At: now, Kind: rollout.Sent, Host: i, Verb: a.Verb})
				if rng.Float64() < w.lost {
					continue
				}
				code := order.InTrial
				if a.Verb == order.Try {
					touched[i], changed[i] = true, now
					gone[i] = gone[i] || bad && rng.Float64() < w.kills
					reverted[i] = bad && rng.Float64() < w.reverts
				}
				if a.Verb == order.Commit {
					if code = order.Committed; reverted[i] {
						code = order.Reverted
					}
				}
				if rng.Float64() >= w.lost && !gone[i] {
					m.Apply(rollout.Event{At: now, Kind: rollout.Answered, Host: i, Verb: a.Verb, Code: code})
				}
			}
		}
		step := p.Timing.Settle
		if m.Phase() == rollout.Soaking {
			step = p.Timing.Soak
		}
		now += step
		for i := range p.Hosts {
			switch m.State(i) {
			case rollout.Ordered, rollout.InTrial, rollout.Confirming, rollout.Committed, rollout.Measuring:
				if !gone[i] {
					m.Apply(rollout.Event{At: now, Kind: rollout.Alive, Host: i})
				}
			}
		}
		m.Apply(rollout.Event{At: now, Kind: rollout.Ticked})
		if m.Phase() == rollout.Halted || m.Phase() == rollout.Done {
			break
		}
	}
	r := result{machine: m, took: now, slower: slower(m, p, effects)}
	for i, h := range p.Hosts {
		if touched[i] {
			r.touched++
			if h.Class == w.bad {
				r.bad++
			}
		}
	}
	return r
}

// ordinary is a fleet in which the change helps by 3 % everywhere.
func ordinary() world { return world{effect: 0.03, spread: 0.01, noise: 0.05, day: 0.10, lost: 0.01} }

func planOf(t testing.TB, n int, seed uint64) *rollout.Plan {
	t.Helper()
	p, err := rollout.NewPlan("r1", seed, fleetOf(n), rollout.DefaultTiming())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// summary counts the ends of many rollouts.
type summary struct {
	played, done, halted, unproven, proven int
	slower                                 int // halts for harm that name hosts which are really slower
	touched, bad                           []int
	reasons                                map[string]int
}

func rollouts(t testing.TB, n, times int, w world) summary {
	t.Helper()
	s := summary{reasons: make(map[string]int)}
	for seed := range times {
		p := planOf(t, n, uint64(seed))
		r := play(p, w, rand.New(rand.NewPCG(uint64(seed), 99)))
		s.played++
		if r.machine.Proven() {
			s.proven++
		}
		switch {
		case r.machine.Phase() == rollout.Done:
			s.done++
		case r.machine.Reason() == "the benefit is not proven":
			s.unproven++
		default:
			s.halted++
			s.reasons[r.machine.Reason()]++
			if r.slower {
				s.slower++
			}
		}
		s.touched, s.bad = append(s.touched, r.touched), append(s.bad, r.bad)
	}
	return s
}
