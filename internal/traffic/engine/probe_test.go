package engine

import "testing"

// TestSettled checks that a race ends early only where noise cannot turn its outcome.
func TestSettled(t *testing.T) {
	for _, c := range []struct {
		copying, referring float64
		laps               int
		want               bool
	}{
		{1, 2, 1, true},    // copying costs half
		{1, 1.4, 1, false}, // a single lap may be off by that
		{1, 1.4, 2, true},
		{1, 1, 2, true}, // by reference would have to be a third cheaper
		{1.2, 1, 4, false},
		{1.5, 1, 4, false}, // ahead, but not by more than noise
		{1.6, 1, 2, true},
		{2, 1, 1, false},
		{3, 1, 1, true},
		{0, 1, 2, false}, // one way has failed
		{1, 0, 2, false},
	} {
		if got := settled(c.copying, c.referring, c.laps); got != c.want {
			t.Errorf("%v against %v after %d laps: %v, want %v", c.copying, c.referring, c.laps, got, c.want)
		}
	}
}
