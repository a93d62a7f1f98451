package flows

import (
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

// TestLostEchoes checks that missing echoes on a path without a load are reported, that one in a
// hundred is not, and that a load takes precedence.
func TestLostEchoes(t *testing.T) {
	echoes := func(answered uint64, lost float64, more ...traffic.Result) *evidence.Case {
		return &evidence.Case{
			Runs: append([]traffic.Result{{Test: traffic.Ping, RTT: &stats.Latencies{Count: answered, P50: 0.01},
				LossRatio: &lost}}, more...)}
	}
	for _, c := range []struct {
		name string
		c    *evidence.Case
		want bool
	}{
		{"4 of 21", echoes(17, 4.0/21), true},
		{"1 of 20", echoes(19, 0.05), false},
		{"2 of 1000", echoes(998, 0.002), false},
		{"none", echoes(20, 0), false},
		{"all: no host answers", echoes(0, 1), false},
		{"with a load beside",
			echoes(17, 4.0/21, traffic.Result{Test: traffic.Stream, Direction: traffic.Up, ThroughputBitsPerSec: 1e8}),
			false},
		{"nothing known", &evidence.Case{}, false},
	} {
		if got := lostEchoes(c.c) != nil; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
