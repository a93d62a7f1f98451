package stats

import (
	"math"
	"slices"
)

// Interval is an estimate and the ends between which the truth lies. An end that the data cannot
// give is ±Inf.
type Interval struct {
	Estimate, Low, High float64
	// two-sided, 0…1; the exact one reached, which is at least what was asked for when both ends
	// are finite
	Confidence float64
}

// Ratio turns an interval of logarithms of ratios into one of ratios: 0 becomes 1, ln 2 becomes 2.
func (i Interval) Ratio() Interval {
	return Interval{Estimate: math.Exp(i.Estimate), Low: math.Exp(i.Low), High: math.Exp(i.High),
		Confidence: i.Confidence}
}

// Contains tells whether x lies inside, ends included.
func (i Interval) Contains(x float64) bool { return i.Low <= x && x <= i.High }

// Finite tells whether both ends are known.
func (i Interval) Finite() bool {
	return !math.IsInf(i.Low, 0) && !math.IsInf(i.High, 0) && !math.IsNaN(i.Low) && !math.IsNaN(i.High)
}

// HodgesLehmann is the median of all Walsh averages (x_i+x_j)/2, i ≤ j: a centre nearly as
// efficient as the mean on normal data, which one wild value in four cannot move far. NaN for an
// empty sample.
//
// The efficiency is 3/π, about 95 %, on normal data, and never below 86 % for symmetric data
// (Hodges & Lehmann 1956); the median has 64 % on normal data, which would cost half as many pairs
// again.
func HodgesLehmann(x []float64) float64 { return quantileSorted(walsh(x), 0.5) }

// SignedRank is the exact confidence interval of the centre of x that inverts Wilcoxon's
// signed-rank test, with the Hodges-Lehmann estimate. Its ends are Walsh averages. When the sample
// is too small for the confidence (fewer than 6 values for 95 %) both ends are infinite and the
// confidence is 1. It panics when confidence is not between 0 and 1.
//
// A nil or empty sample is too small for any confidence.
func SignedRank(x []float64, confidence float64) Interval {
	if !(confidence > 0 && confidence < 1) {
		panic("stats: confidence must lie between 0 and 1")
	}
	return rankInterval(x, CriticalRank(len(x), (1-confidence)/2))
}

// CriticalRank is the largest c for which the c-th smallest Walsh average of n values undershoots
// the true centre with a probability of at least 1−tail; 0 when n is too small for any. By symmetry
// the c-th largest overshoots it as surely.
func CriticalRank(n int, tail float64) int {
	cumulative := 0.0
	for sum, p := range signedRankProbabilities(n) {
		if cumulative += p; cumulative > tail*(1+1e-12) { // the slack forgives rounding where a tail is hit exactly
			return sum
		}
	}
	return 0 // not reached: the probabilities sum to 1, a tail is below one half
}

// rankInterval has the c-th smallest and c-th largest Walsh average as its ends.
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

// walsh gives the sorted averages of all pairs of values, each value paired with itself too.
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

// signedRankProbabilities gives the null distribution of the rank sum: element s is the probability
// that the ranks of the negative ones among n symmetric values sum to s.
//
// It works with probabilities from the start and not with counts, since 2^n does not fit an integer
// for the thousand pairs that a plan may have.
func signedRankProbabilities(n int) []float64 {
	p := make([]float64, n*(n+1)/2+1)
	p[0] = 1
	for rank := 1; rank <= n; rank++ {
		// Rank is negative with probability one half. Downwards, so that p[s-rank] is still the old
		// one.
		for s := rank * (rank + 1) / 2; s >= 0; s-- {
			p[s] /= 2
			if s >= rank {
				p[s] += p[s-rank] / 2
			}
		}
	}
	return p
}
