package rollout_test

import (
	"slices"
	"testing"
)

// harms are the ways in which a change can be harmful in one class. Where the class is the rarest
// of 1 000 hosts, at least halts percent of the rollouts halt; in any class, half of them touch at
// most touched hosts.
var harms = []struct {
	name           string
	alter          func(*world)
	halts, touched int
}{
	{"20 % slower, shows in an experiment", func(w *world) { w.harm = -0.22 }, 99, 15},
	{"5 % slower, shows in an experiment", func(w *world) { w.harm = -0.05 }, 95, 15},
	{"20 % slower, only under production load", func(w *world) { w.harm, w.hidden = -0.22, true }, 99, 40},
	{"half of the hosts are gone", func(w *world) { w.harm, w.hidden, w.kills = 0.03, true, 0.5 }, 99, 40},
	// None of ten hosts fails in 0.8^10 = 11 % of the rollouts.
	{"every fifth host is cut off and takes it back", func(w *world) { w.harm, w.hidden, w.reverts = 0.03, true, 0.2 },
		85, 40},
}

func sorted(x []int) []int { x = slices.Clone(x); slices.Sort(x); return x }

// upper is a bound that a binomial count of a true rate of 5 % passes in fewer than one of 10 000
// cases.
func upper(n int) int {
	limit := 0
	for p, c := 1.0, 0.0; ; limit++ {
		// The probability of exactly limit of n.
		p = 1
		for i := range limit {
			p *= float64(n-i) / float64(i+1) * 0.05 / 0.95
		}
		for range n {
			p *= 0.95
		}
		if c += p; c > 0.9999 {
			return limit
		}
	}
}

// TestHarmHalts is the small version of TestSoakHarm.
func TestHarmHalts(t *testing.T) {
	const hosts, times = 300, 12
	for _, h := range harms {
		w := ordinary()
		w.bad = "class-2" // 20 % of the hosts
		h.alter(&w)
		s := rollouts(t, hosts, times, w)
		bad := sorted(s.bad)
		t.Logf("%s: %d of %d halted; hosts touched %v, of the class %v", h.name, s.halted, s.played, sorted(s.touched), bad)
		if s.halted < times-1 || bad[times/2] > 40 {
			t.Errorf("%s: %d of %d halted: %v", h.name, s.halted, s.played, s.reasons)
		}
	}
}

// TestNothingToProve: a change without effect is not proven, and one that helps is not halted.
func TestNothingToProve(t *testing.T) {
	const hosts, times = 300, 40
	null := ordinary()
	null.effect, null.spread = 0, 0
	if s := rollouts(t, hosts, times, null); s.proven > upper(times) || s.halted > upper(times) {
		t.Errorf("without effect: %d proven, %d halted of %d: %v", s.proven, s.halted, times, s.reasons)
	}
	if s := rollouts(t, hosts, times/2, ordinary()); s.halted > upper(times/2) || s.proven < times/3 {
		t.Errorf("with an effect: %d proven, %d halted of %d: %v", s.proven, s.halted, s.played, s.reasons)
	}
}
