package server

import (
	"testing"
	"time"
)

// TestSinceHost: the time of the threads is that between their two readings, and not that of the
// whole observation.
func TestSinceHost(t *testing.T) {
	at := time.Unix(100, 0)
	a := since(snapshot{at: at, threads: map[int]Thread{7: {Name: "a", RunSeconds: 1, WaitSeconds: 2}}},
		snapshot{at: at.Add(5 * time.Second), threads: map[int]Thread{7: {Name: "a", RunSeconds: 5, WaitSeconds: 2.5},
			8: {Name: "new", RunSeconds: 1}}})
	if a.Seconds != 5 || len(a.Threads) != 2 || a.Threads[0].RunSeconds != 4 || a.Threads[0].WaitSeconds != 0.5 ||
		a.Threads[1].RunSeconds != 1 {
		t.Errorf("%+v", a)
	}
}
