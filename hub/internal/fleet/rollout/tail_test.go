package rollout

import (
	"math"
	"testing"
)

// TestLowerTail compares with tables of Student's t and the normal distribution.
func TestLowerTail(t *testing.T) {
	for _, c := range []struct{ t, df, want float64 }{
		{-2.015, 5, 0.05}, {-4.032, 5, 0.005}, {2.228, 10, 0.975}, {-31.821, 1, 0.01}, {-2.042, 30, 0.025},
		{-3.659, 29, 0.0005}, {0, 7, 0.5}, {-1.959964, math.Inf(1), 0.025}, {-2.576, math.Inf(1), 0.005},
		{-1.96, 1e6, 0.025}, {math.Inf(-1), 4, 0}, {math.Inf(1), 4, 1},
	} {
		if got := lowerTail(c.t, c.df); math.Abs(got-c.want) > 0.005*c.want+2e-7 {
			t.Errorf("t %v, %v degrees of freedom: %v, want %v", c.t, c.df, got, c.want)
		}
	}
}
