package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/base/stats"
)

// TestSignedRankKnown checks against a published example: Hollander, Wolfe & Chicken, example 3.1
// (Hamilton depression scale, nine patients). Estimate −0.46; the interval of confidence 0.961 runs
// from −0.786 to −0.010.
func TestSignedRankKnown(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(x))
	for i := range d {
		d[i] = y[i] - x[i]
	}
	got := stats.SignedRank(d, 0.96)
	if !near(got.Estimate, -0.46, 1e-9) || !near(got.Low, -0.786, 1e-9) || !near(got.High, -0.010, 1e-9) ||
		math.Abs(got.Confidence-0.961) > 0.0005 {
		t.Errorf("got %+v, want −0.46 in −0.786…−0.010 at 0.961", got)
	}
}

// TestCriticalRank compares with the enumeration of all 2^n sign patterns, and with the well-known
// smallest p-values.
func TestCriticalRank(t *testing.T) {
	for n := 1; n <= 14; n++ {
		counts := make([]int, n*(n+1)/2+1)
		for pattern := range 1 << n {
			sum := 0
			for i := range n {
				if pattern>>i&1 == 1 {
					sum += i + 1
				}
			}
			counts[sum]++
		}
		for _, confidence := range []float64{0.5, 0.8, 0.9, 0.95, 0.99} {
			want, cumulative := 0, 0
			for sum, c := range counts {
				if cumulative += c; float64(cumulative)/float64(int(1)<<n) > (1-confidence)/2 {
					break
				}
				want = sum + 1
			}
			if got := stats.CriticalRank(n, (1-confidence)/2); got != want {
				t.Errorf("critical rank of %d values at %v = %d, want %d", n, confidence, got, want)
			}
		}
	}
	if stats.CriticalRank(5, 0.025) != 0 || stats.CriticalRank(6, 0.025) != 1 {
		t.Error("six pairs are the fewest that can show anything at 95 %")
	}
}

func TestSignedRankSmall(t *testing.T) {
	got := stats.SignedRank([]float64{1, 2, 3, 4, 5}, 0.95)
	if got.Finite() || !math.IsInf(got.Low, -1) || !math.IsInf(got.High, 1) || got.Estimate != 3 ||
		got.Confidence != 1 {
		t.Errorf("five values at 95 %% gave %+v, want open ends", got)
	}
	if got := stats.SignedRank(nil, 0.95); got.Finite() || !math.IsNaN(got.Estimate) {
		t.Errorf("no values gave %+v", got)
	}
}

// TestCoverage checks for several distributions that the interval misses the truth no more often
// than promised.
func TestCoverage(t *testing.T) {
	const repeats = 4000
	distributions := map[string]func(*rand.Rand) float64{
		"normal":  func(r *rand.Rand) float64 { return r.NormFloat64() },
		"uniform": func(r *rand.Rand) float64 { return r.Float64() - 0.5 },
		"cauchy":  func(r *rand.Rand) float64 { return math.Tan(math.Pi * (r.Float64() - 0.5)) },
		"ties":    func(r *rand.Rand) float64 { return math.Round(r.NormFloat64()) },
	}
	for name, draw := range distributions {
		random := rand.New(rand.NewPCG(11, 13))
		for _, n := range []int{6, 10, 16} {
			missed := 0
			for range repeats {
				x := make([]float64, n)
				for i := range x {
					x[i] = 3 + draw(random)
				}
				if !stats.SignedRank(x, 0.95).Contains(3) {
					missed++
				}
			}
			// Three standard errors above 5 %.
			if limit := repeats*0.05 + 3*math.Sqrt(repeats*0.05*0.95); float64(missed) > limit {
				t.Errorf("%s, n=%d: %d of %d intervals miss the truth, want at most %.0f", name, n, missed,
					repeats, limit)
			}
		}
	}
}

// TestIntervalProperties checks properties that hold for any data: order, shift, scale and mirror
// image.
func TestIntervalProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		x := make([]float64, 1+random.IntN(25))
		for i := range x {
			x[i] = random.NormFloat64()
		}
		a := stats.SignedRank(x, 0.9)
		if !(a.Low <= a.Estimate && a.Estimate <= a.High) {
			t.Fatalf("estimate outside its interval: %+v", a)
		}
		if a.Estimate != stats.HodgesLehmann(x) {
			t.Fatalf("estimate %v is not the Hodges-Lehmann one %v", a.Estimate, stats.HodgesLehmann(x))
		}
		y := make([]float64, len(x))
		for i := range x {
			y[i] = 7 - 2*x[i]
		}
		slices.Reverse(y)
		b := stats.SignedRank(y, 0.9)
		if a.Finite() != b.Finite() || !near(b.Estimate, 7-2*a.Estimate, 1e-9) ||
			a.Finite() && (!near(b.Low, 7-2*a.High, 1e-9) || !near(b.High, 7-2*a.Low, 1e-9)) {
			t.Fatalf("mirror image of %+v is %+v", a, b)
		}
		if wide := stats.SignedRank(x, 0.99); wide.Low > a.Low || wide.High < a.High {
			t.Fatalf("99 %% interval %+v is inside the 90 %% one %+v", wide, a)
		}
	}
}

func TestIntervalRatio(t *testing.T) {
	got := stats.Interval{Estimate: math.Ln2, Low: 0, High: math.Inf(1), Confidence: 0.95}.Ratio()
	if !near(got.Estimate, 2, 1e-12) || got.Low != 1 || !math.IsInf(got.High, 1) || got.Confidence != 0.95 {
		t.Errorf("ratio is %+v", got)
	}
}
