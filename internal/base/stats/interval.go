package stats

import (
	"math"
	"slices"
)

// Interval is an estimate and the ends between which the truth lies. An end that the data cannot
// determine is ±Inf.
type Interval struct {
	Estimate, Low, High float64
	// two-sided, 0…1; the exact one reached, at least the requested one if both ends are finite
	Confidence float64
}

// Ratio converts an interval of logarithms of ratios to one of ratios: 0 becomes 1, ln 2 becomes 2.
func (i Interval) Ratio() Interval {
	return Interval{Estimate: math.Exp(i.Estimate), Low: math.Exp(i.Low), High: math.Exp(i.High),
		Confidence: i.Confidence}
}

// Contains reports whether x lies inside, ends included.
func (i Interval) Contains(x float64) bool { return i.Low <= x && x <= i.High }

// Finite reports whether both ends are known.
func (i Interval) Finite() bool {
	return !math.IsInf(i.Low, 0) && !math.IsInf(i.High, 0) && !math.IsNaN(i.Low) && !math.IsNaN(i.High)
}

// HodgesLehmann returns the median of all Walsh averages (x_i+x_j)/2, i ≤ j: a centre nearly as
// efficient as the mean on normal data, which one outlier in four values cannot move far. It is NaN
// for an empty sample.
//
// The efficiency is 3/π, about 95 %, on normal data, and never below 86 % for symmetric data
// (Hodges & Lehmann 1956). The median has 64 % on normal data, which would need half as many pairs
// again.
func HodgesLehmann(x []float64) float64 { return quantileSorted(walsh(x), 0.5) }

// SignedRank returns the exact confidence interval of the centre of x that inverts Wilcoxon's
// signed-rank test, with the Hodges-Lehmann estimate. Its ends are Walsh averages. If the sample is
// too small for the confidence (fewer than 6 values for 95 %), both ends are infinite and the
// confidence is 1. It panics if confidence is not between 0 and 1.
//
// A nil or empty sample is too small for any confidence.
func SignedRank(x []float64, confidence float64) Interval {
	if !(confidence > 0 && confidence < 1) {
		panic("stats: confidence must lie between 0 and 1")
	}
	return rankInterval(x, CriticalRank(len(x), (1-confidence)/2))
}

// CriticalRank returns the largest c for which the c-th smallest Walsh average of n values is below
// the true centre with a probability of at least 1−tail, or 0 if n is too small. By symmetry the
// c-th largest is above it with the same probability.
func CriticalRank(n int, tail float64) int {
	cumulative := 0.0
	for sum, p := range signedRankProbabilities(n) {
		if cumulative += p; cumulative > tail*(1+1e-12) { // the slack forgives rounding where a tail is hit exactly
			return sum
		}
	}
	return 0 // not reached: the probabilities sum to 1, and a tail is below one half
}

// rankInterval returns the interval from the c-th smallest to the c-th largest Walsh average.
func rankInterval(x []float64, c int) Interval {
	averages := walsh(x)
	out := Interval{Estimate: quantileSorted(averages, 0.5), Low: math.Inf(-1), High: math.Inf(1), Confidence: 1}
	if c < 1 || 2*c > len(averages)+1 {
		return out
	}
	tail := 0.0
	for _, p := range signedRankProbabilities(len(x))[:c] {
		tail += p
	}
	out.Low, out.High = averages[c-1], averages[len(averages)-c]
	out.Confidence = 1 - 2*tail
	return out
}

// walsh returns the sorted averages of all pairs of values, including each value with itself.
func walsh(x []float64) []float64 {
	out := make([]float64, 0, len(x)*(len(x)+1)/2)
	for i, a := range x {
		for _, b := range x[i:] {
			out = append(out, a/2+b/2) // halves first: (a+b) could overflow
		}
	}
	slices.Sort(out)
	return out
}

// signedRankProbabilities returns the null distribution of the rank sum: element s is the
// probability that the ranks of the negative ones among n symmetric values sum to s.
//
// It uses probabilities instead of counts from the start, since 2^n does not fit an integer for the
// thousand pairs that a plan may have.
func signedRankProbabilities(n int) []float64 {
	p := make([]float64, n*(n+1)/2+1)
	p[0] = 1
	for rank := 1; rank <= n; rank++ {
		// A rank is negative with probability one half. Downwards, so that p[s-rank] is still the
		// old value.
		for s := rank * (rank + 1) / 2; s >= 0; s-- {
			p[s] /= 2
			if s >= rank {
				p[s] += p[s-rank] / 2
			}
		}
	}
	return p
}
