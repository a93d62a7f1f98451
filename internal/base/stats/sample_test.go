package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/linerate/linerate/internal/base/stats"
)

// TestOracle compares with gonum, an independent implementation, on random samples of many sizes.
func TestOracle(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for n := 2; n < 60; n++ {
		x := make([]float64, n)
		index := make([]float64, n)
		for i := range x {
			x[i] = 1e9 + 1e6*random.NormFloat64()
			index[i] = float64(i)
		}
		if got, want := stats.Mean(x), stat.Mean(x, nil); !near(got, want, 1e-12) {
			t.Errorf("mean of %d values = %v, gonum returns %v", n, got, want)
		}
		if got, want := stats.StdDev(x), stat.StdDev(x, nil); !near(got, want, 1e-9) {
			t.Errorf("standard deviation of %d values = %v, gonum returns %v", n, got, want)
		}
		// On a noiseless line the robust slope and least squares must agree.
		line := make([]float64, n)
		for i := range line {
			line[i] = 100 + 3*float64(i)
		}
		_, slope := stat.LinearRegression(index, line, nil, false)
		if got, want := stats.LinearDrift(line).Relative, slope*float64(n-1)/stats.Median(line); n > 2 &&
			!near(got, want, 1e-9) {
			t.Errorf("drift of %d values = %v, gonum's slope gives %v", n, got, want)
		}
		if got, want := stats.Autocorrelation(x), stat.Correlation(x[1:], x[:n-1], nil); n > 30 &&
			math.Abs(got-want) > 0.15 {
			t.Errorf("autocorrelation of %d values = %v, gonum's correlation is %v", n, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	tests := []struct {
		x       []float64
		q, want float64
	}{
		{[]float64{1}, 0.3, 1},
		{[]float64{1, 2, 3, 4}, 0.5, 2.5},
		{[]float64{4, 1, 3, 2}, 0.25, 1.75}, // numpy.quantile([4,1,3,2], 0.25)
		{[]float64{1, 2, 3, 4}, 1, 4},
		{[]float64{1, 2, 3, 4}, -1, 1},
		{[]float64{1, math.Inf(1)}, 0, 1},
		{nil, 0.5, math.NaN()},
	}
	for _, tt := range tests {
		if got := stats.Quantile(tt.x, tt.q); got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("Quantile(%v, %v) = %v, want %v", tt.x, tt.q, got, tt.want)
		}
	}
	x := []float64{3, 1, 2}
	stats.Median(x)
	if !slices.Equal(x, []float64{3, 1, 2}) {
		t.Errorf("Median changed its argument to %v", x)
	}
}

func TestRobustStdDev(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	x := make([]float64, 10_001)
	for i := range x {
		x[i] = 5 + 2*random.NormFloat64()
		if i%10 == 0 {
			x[i] = 1e6
		}
	}
	if got := stats.RobustStdDev(x); got < 1.8 || got > 2.6 {
		t.Errorf("robust deviation with one outlier in ten = %v, want about 2", got)
	}
	for n := 2; n < 13; n++ {
		sum := 0.0
		const repeats = 20_000
		for range repeats {
			x := make([]float64, n)
			for i := range x {
				x[i] = random.NormFloat64()
			}
			sum += stats.RobustStdDev(x)
		}
		if mean := sum / repeats; math.Abs(mean-1) > 0.03 {
			t.Errorf("robust deviation of %d normal values is %.3f on average, want 1", n, mean)
		}
	}
	if got := stats.RobustStdDev([]float64{1, 1, 1, 5}); !near(got, 2, 1e-12) {
		t.Errorf("robust deviation of mostly equal values = %v, want the ordinary one, 2", got)
	}
}

func TestPairedLogRatio(t *testing.T) {
	got := stats.PairedLogRatio([]float64{1, 2, 0, 5, 0, 1}, []float64{2, 1, 3, 0, 0})
	want := []float64{math.Ln2, -math.Ln2, math.Log(1e6), -math.Log(1e6), 0}
	if len(got) != len(want) {
		t.Fatalf("got %d ratios, want %d", len(got), len(want))
	}
	for i := range want {
		if !near(got[i], want[i], 1e-12) {
			t.Errorf("ratio %d = %v, want %v", i, got[i], want[i])
		}
	}
}

func near(got, want, tolerance float64) bool {
	return got == want || math.Abs(got-want) <= tolerance*max(math.Abs(got), math.Abs(want))
}

func TestSpreadAround(t *testing.T) {
	// For two values at one distance the mean absolute deviation is that distance.
	if got, want := stats.SpreadAround([]float64{-2, 2}, 0), 2*math.Sqrt(math.Pi/2); math.Abs(got-want) > 1e-12 {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := stats.SpreadAround([]float64{3, 3}, 3); got != 0 {
		t.Errorf("a constant sample: got %v", got)
	}
	if got := stats.SpreadAround(nil, 0); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}
