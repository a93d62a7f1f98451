//go:build soak

package rollout_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// soakTimes is the number of rollouts of each kind; LINERATE_ROLLOUTS sets another.
func soakTimes(t *testing.T) int {
	s := os.Getenv("LINERATE_ROLLOUTS")
	if s == "" {
		return 2000
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 500 {
		t.Fatalf("%s rollouts, want at least 500: a bound is not kept by luck; %v", s, err)
	}
	return n
}

// TestSoakHarm plays thousands of rollouts over 1 000 hosts and logs the rows of
// docs/evidence/rollouts.md. A row with fewer halts, or more hosts touched before them, fails.
func TestSoakHarm(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	times := soakTimes(t)
	for _, c := range []struct{ class, share string }{{"class-4", "1 %"}, {"class-3", "5 %"}, {"class-2", "20 %"}} {
		for _, h := range harms {
			w := ordinary()
			w.bad = c.class
			h.alter(&w)
			n := times / len(harms)
			s := rollouts(t, 1000, n, w)
			touched, bad := sorted(s.touched), sorted(s.bad)
			t.Logf("| %s | %s | %d of %d | %d / %d / %d | %d / %d / %d |", c.share, h.name, s.halted, n,
				touched[n/2], touched[n*9/10], touched[n-1], bad[n/2], bad[n*9/10], bad[n-1])
			// Three standard deviations of a count at the bound.
			p := float64(h.halts) / 100
			least := float64(n)*p - 3*math.Sqrt(float64(n)*p*(1-p))
			if float64(s.halted) < least || touched[n/2] > h.touched {
				t.Errorf("%s, %s: %d of %d halted, want %d %%; %d hosts touched in half of them, want at most %d", c.share,
					h.name, s.halted, n, h.halts, touched[n/2], h.touched)
			}
		}
	}
}

// TestSoakFalse counts halts without a cause, and proofs without an effect.
func TestSoakFalse(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	times := soakTimes(t)
	for _, c := range []struct {
		name           string
		effect, spread float64
	}{{"no effect anywhere", 0, 0}, {"no effect on the mean, 2 % between hosts", 0, 0.02},
		{"3 % better everywhere", 0.03, 0.01},
		{"1 % better everywhere", 0.01, 0.01}} {
		t.Run(c.name, func(t *testing.T) {
			w := ordinary()
			w.effect, w.spread = c.effect, c.spread
			s := rollouts(t, 1000, times, w)
			t.Logf("| %s | %d | %d halted (%.1f %%) | %d proven (%.1f %%) | %d |", c.name, s.played, s.halted,
				100*float64(s.halted)/float64(s.played), s.proven, 100*float64(s.proven)/float64(s.played), s.unproven)
			// With 2 % between hosts some really become slower, and their experiments may show it.
			mixed := c.effect == 0 && c.spread > 0
			if float64(s.halted) > 0.05*float64(s.played) && !mixed ||
				c.effect == 0 && float64(s.proven) > 0.05*float64(s.played) {
				t.Errorf("%s: %v", c.name, s.reasons)
			}
		})
	}
}

// TestSoakFaults injects every fault at every step of rollouts over 1 000 hosts.
func TestSoakFaults(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	everyFault(t, 1000, func(rng *rand.Rand) int { return 1 + rng.IntN(900) })
}

// TestSoakHubKilled kills the hub a hundred times in one rollout.
func TestSoakHubKilled(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	killHubOften(t, 1000, 100)
}
