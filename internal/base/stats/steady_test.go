package stats_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
)

func TestSteadyFrom(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	noisy := func(n, ramp int, noise float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 100 * (1 + noise*random.NormFloat64())
			if i < ramp {
				x[i] *= float64(i+1) / float64(ramp+1)
			}
		}
		return x
	}
	tests := []struct {
		name     string
		series   []float64
		low, hig int
	}{
		{"empty", nil, 0, 0},
		{"constant", []float64{5, 5, 5, 5, 5, 5, 5, 5}, 0, 0},
		{"too short", []float64{1, 9, 9}, 0, 0},
		{"slow start of ten intervals", []float64{10, 40, 90, 100, 101, 99, 100, 100, 101, 99}, 2, 3},
		{"one slow interval", []float64{50, 100, 101, 99, 100, 102, 98, 100}, 1, 1},
		{"ramp of thirty in two hundred", noisy(200, 30, 0.02), 25, 35},
		{"steady", noisy(400, 0, 0.02), 0, 200},
	}
	for _, tt := range tests {
		if got := stats.SteadyFrom(tt.series); got < tt.low || got > tt.hig {
			t.Errorf("%s: steady from %d, want %d…%d", tt.name, got, tt.low, tt.hig)
		}
	}
}

func TestLinearDrift(t *testing.T) {
	rising := make([]float64, 20)
	for i := range rising {
		rising[i] = 100 + float64(i)
	}
	rising[3] = 1e6 // one wild value must not make the trend
	d := stats.LinearDrift(rising)
	if math.Abs(d.Relative-19/109.5) > 0.01 || d.Score < 3 {
		t.Errorf("drift %+v, want 17 %% and certain", d)
	}
	if d := stats.LinearDrift([]float64{5, 5}); d != (stats.Drift{}) {
		t.Errorf("drift of two values: %+v", d)
	}
}

func TestCheckSeries(t *testing.T) {
	flat := []float64{100, 101, 99, 100, 101, 99, 100, 101, 99, 100}
	tests := []struct {
		name   string
		series []float64
		from   int
		want   []string
	}{
		{"quiet", flat, 0, nil},
		{"short", flat[:4], 0, []string{"short"}},
		{"never steady", flat, 5, []string{"never-steady"}},
		{"drifting", []float64{100, 102, 104, 106, 108, 110, 112, 114, 116, 118}, 0,
			[]string{"drifting", "correlated"}},
		{"noisy", []float64{100, 150, 80, 100, 150, 80, 120, 70, 100}, 0, []string{"noisy"}},
	}
	for _, tt := range tests {
		got := stats.CheckSeries(tt.series, tt.from)
		codes := make([]string, len(got))
		for i, w := range got {
			codes[i] = w.Code
			if w.Text == "" {
				t.Errorf("%s: warning %s has no text", tt.name, w.Code)
			}
		}
		if len(codes) != len(tt.want) {
			t.Errorf("%s: warnings %v, want %v", tt.name, codes, tt.want)
			continue
		}
		for i := range codes {
			if codes[i] != tt.want[i] {
				t.Errorf("%s: warnings %v, want %v", tt.name, codes, tt.want)
			}
		}
	}
}

// FuzzSeries feeds arbitrary bit patterns: no function may panic, and a cut never removes more than
// half.
func FuzzSeries(f *testing.F) {
	f.Add([]byte{})
	f.Add(binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN())))
	long := make([]byte, 8*60)
	for i := range 60 {
		binary.LittleEndian.PutUint64(long[8*i:], math.Float64bits(float64(i)))
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, raw []byte) {
		series := make([]float64, min(len(raw)/8, 100))
		for i := range series {
			series[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
		}
		from := stats.SteadyFrom(series)
		if from < 0 || from > len(series)/2 {
			t.Errorf("steady from %d of %d", from, len(series))
		}
		stats.CheckSeries(series, from)
		stats.SignedRank(series, 0.95)
		stats.RobustStdDev(series)
	})
}
