package flows

import "testing"

// TestMetricBound checks the scale that a window metric leaves, as tcp_select_initial_window
// chooses it.
func TestMetricBound(t *testing.T) {
	for _, c := range []struct {
		metric, scale int
		bound         float64
	}{{1, 0, 65535}, {16384, 0, 65535}, {65535, 0, 65535}, {65536, 1, 131070}, {131072, 2, 262140},
		{1 << 20, 5, 2097120}, {1<<31 - 1, 14, 65535 << 14}} {
		if s, b := metricScale(c.metric), metricBound(c.metric); s != c.scale || b != c.bound {
			t.Errorf("metric %d: scale %d and bound %v, want %d and %v", c.metric, s, b, c.scale, c.bound)
		}
	}
}
