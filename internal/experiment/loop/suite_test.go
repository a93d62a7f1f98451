package loop

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic"
)

// TestSuiteStaysShort adds up the longest times of the tests, without running them.
func TestSuiteStaysShort(t *testing.T) {
	for _, each := range []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, time.Hour} {
		var sum time.Duration
		seen := map[traffic.Test]int{}
		for _, s := range Suite(each, time.Second, 2) {
			n, err := s.Normalize()
			if err != nil {
				t.Errorf("%v: %s: %v", each, s.Test, err)
			}
			seen[s.Test]++
			switch {
			case s.Test == traffic.MTU: // ends when it knows
				sum += time.Second
			case s.Test == traffic.Load:
				phases, err := loadPhases(s)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range phases {
					sum += p.spec.Duration + p.spec.WarmUp
				}
			default:
				sum += n.Duration + max(n.WarmUp, 0)
				if n.WarmUp < 0 {
					sum += max(n.Duration, time.Second) // the longest search for a steady state
				}
			}
		}
		if sum > 18*time.Second {
			t.Errorf("each %v: the suite takes %v and what the connections need", each, sum)
		}
		for _, test := range []traffic.Test{traffic.Ping, traffic.RR, traffic.CRR, traffic.UDP, traffic.MTU,
			traffic.Load} {
			if seen[test] != 1 {
				t.Errorf("%s runs %d times", test, seen[test])
			}
		}
		if seen[traffic.Stream] != 2 {
			t.Errorf("stream runs %d times", seen[traffic.Stream])
		}
	}
}
