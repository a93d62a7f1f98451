package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFit: times that prices made give those prices back, whatever was believed before.
func TestFit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	want := []float64{60, 2, 0, 35, 12}
	before := []float64{100, 1, 5, 10, 30}
	var counts [][]float64
	var times []float64
	for range 30 {
		row, time := make([]float64, len(want)), 0.0
		for k := range row {
			row[k] = float64(r.IntN(100))
			time += row[k] * want[k]
		}
		counts, times = append(counts, row), append(times, time)
	}
	for k, got := range fit(counts, times, before) {
		if math.Abs(got-want[k]) > 0.05+want[k]/200 {
			t.Errorf("price %d: %v, want %v", k, got, want[k])
		}
	}
	// What no case shows stays as it was.
	for _, row := range counts {
		row[3] = 0
	}
	for i := range times {
		times[i] = 0
		for k := range want {
			times[i] += counts[i][k] * want[k]
		}
	}
	if got := fit(counts, times, before); math.Abs(got[3]-before[3]) > 1e-6 {
		t.Errorf("a price without a case: %v, want %v", got[3], before[3])
	}
	// Times below what any price allows make no price negative.
	for i := range times {
		times[i] = -5
	}
	for k, got := range fit(counts, times, before) {
		if got < 0 {
			t.Errorf("price %d: %v", k, got)
		}
	}
}

func TestLow(t *testing.T) {
	if got := low([]float64{9, 1, 3, 2, 1000}); got != 2 {
		t.Errorf("%v", got)
	}
	if got := low(nil); got != 0 {
		t.Errorf("%v", got)
	}
}
