package stats_test

import (
	"math"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
)

func TestSteadyNeedsDataAndTime(t *testing.T) {
	flat, ramp, slowStart := make([]float64, 20), make([]float64, 20), make([]float64, 20)
	for i := range flat {
		flat[i], ramp[i], slowStart[i] = 100+float64(i%3), float64(5*i), math.Pow(1.3, float64(i))
	}
	for _, c := range []struct {
		name   string
		series []float64
		want   bool
	}{
		{"short", flat[:9], false},
		{"flat", flat, true},
		{"climbing", ramp, false},
		{"slow start", slowStart, false},
		{"nothing flows", make([]float64, 20), false},
		{"ramp, then long flat", append(append([]float64{}, ramp[:8]...), append(flat, flat...)...), true},
	} {
		if got := stats.IsSteady(c.series); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
