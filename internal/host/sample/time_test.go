package sample

import (
	"testing"
	"time"
)

func TestAlign(t *testing.T) {
	tick := time.Date(2026, 11, 22, 12, 0, 7, 0, time.UTC)
	const tolerance = 25 * time.Millisecond
	for _, c := range []struct {
		late      time.Duration
		tolerance time.Duration
		aligned   bool
	}{
		{0, tolerance, true}, {tolerance, tolerance, true}, {-tolerance, tolerance, true},
		{tolerance + 1, tolerance, false}, {-tolerance - 1, tolerance, false},
		{8 * time.Hour, tolerance, false}, // the host slept
		{0, -1, false},
	} {
		now := tick.Add(c.late)
		want := now
		if c.aligned {
			want = tick
		}
		if got := align(tick, now, c.tolerance); !got.Equal(want) {
			t.Errorf("%v late, tolerance %v: filed under %v, want %v", c.late, c.tolerance, got, want)
		}
	}
	if now := time.Now(); !align(time.Time{}, now, tolerance).Equal(now) || align(now, now, tolerance) != now.Round(0) {
		t.Error("a reading for no tick in particular has its own time, and no time has a monotonic part")
	}
}

// Speeds in their usual units.
func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{10e6: "10 Mb/s", 1e9: "1 Gb/s", 2.5e9: "2.5 Gb/s", 100e9: "100 Gb/s",
		400e9: "400 Gb/s"} {
		if got := rateText(rate); got != want {
			t.Errorf("%g: %q", rate, got)
		}
	}
}

// Costly sources are read rarely; one slow reading does not make a source costly.
func TestPace(t *testing.T) {
	var p pace
	if !p.due(0) {
		t.Error("not due at first")
	}
	p.done(0, 10*time.Millisecond, 1)
	if p.due(3*time.Second) || !p.due(4*time.Second) {
		t.Errorf("after 10 ms it is due at %v", p.next)
	}
	p.done(4*time.Second, time.Millisecond, 2)
	if p.next != 4*time.Second+800*time.Millisecond {
		t.Errorf("the best of the last is 1 ms, of two: due at %v", p.next)
	}
	for range 4 {
		p.done(0, time.Second, 1)
	}
	if p.next != time.Minute {
		t.Errorf("a second each time: due at %v", p.next)
	}
}
