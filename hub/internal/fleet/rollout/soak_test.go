//go:build soak

package rollout_test

import (
	"math"
	"math/rand/v2"
	"os"
	"regexp"
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

// kinds counts reasons without the host and the figures that they name.
func kinds(reasons map[string]int) map[string]int {
	named := regexp.MustCompile(`host h[0-9]+|: [-0-9.]+ %|[0-9]+ of [0-9]+`)
	all := make(map[string]int)
	for why, n := range reasons {
		all[named.ReplaceAllString(why, "_")] += n
	}
	return all
}

// TestSoakFalse counts halts without a cause, and proofs without an effect. All halts together keep
// the bound, also those of hosts that are slower by chance where the change helps in the mean.
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
			percent := func(n int) float64 { return 100 * float64(n) / float64(s.played) }
			t.Logf("| %s | %d | %d halted (%.1f %%), %d (%.1f %%) without a slower host | %d proven (%.1f %%) | %d |",
				c.name, s.played, s.halted, percent(s.halted), s.halted-s.slower, percent(s.halted-s.slower), s.proven,
				percent(s.proven), s.unproven)
			t.Logf("%s: %v", c.name, kinds(s.reasons))
			// With 2 % between hosts some really become slower, and their experiments may show it.
			mixed := c.effect == 0 && c.spread > 0
			if percent(s.halted) > 5 && !mixed || percent(s.halted-s.slower) > 5 || c.effect == 0 && percent(s.proven) > 5 {
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
