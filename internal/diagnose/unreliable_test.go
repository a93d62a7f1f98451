package diagnose

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

// TestRise checks that a flow in slow start asks for more time and a noisy one for a quieter host,
// although both scatter.
func TestRise(t *testing.T) {
	for _, c := range []struct {
		name  string
		rates []float64
		want  string // in the title; empty: nothing to say
	}{
		{"slow start", []float64{1e6, 2e6, 4e6, 8e6, 16e6, 30e6}, "too short"},
		{"noise", []float64{10e6, 30e6, 5e6, 25e6, 8e6, 31e6}, "too noisy"},
		{"grown and then cut", []float64{5e6, 10e6, 30e6, 12e6, 20e6, 30e6}, "too noisy"},
		{"steady", []float64{10e6, 10.2e6, 9.9e6, 10e6, 10.1e6, 10e6}, ""},
	} {
		r := traffic.Result{Test: traffic.Stream, Direction: traffic.Up, DurationSeconds: 3, ThroughputBitsPerSec: 10e6}
		for i, rate := range c.rates {
			r.Intervals = append(r.Intervals,
				traffic.Interval{StartSeconds: float64(i) / 2, EndSeconds: float64(i+1) / 2,
					ThroughputBitsPerSec: rate})
		}
		x := measurementUnreliable(evidence.FlowsOf(&evidence.Case{Runs: []traffic.Result{r}})[0])
		switch {
		case x == nil && c.want != "", x != nil && (c.want == "" || !strings.Contains(x.Title, c.want)):
			t.Errorf("%s: %+v, want %q", c.name, x, c.want)
		}
	}
}
