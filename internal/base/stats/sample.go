package stats

import (
	"math"
	"slices"
)

// Mean returns the arithmetic mean of x, NaN for an empty sample.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// StdDev returns the sample standard deviation of x (divisor n−1), NaN for fewer than two values.
func StdDev(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	// Two passes: the one-pass formula cancels catastrophically for rates near 1e9 that differ by
	// single bits.
	mean, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

// Median returns the middle of x, NaN for an empty sample.
func Median(x []float64) float64 { return Quantile(x, 0.5) }

// Quantile returns the q-quantile of x with linear interpolation between order statistics (Hyndman
// & Fan's definition 7, as in R and NumPy). q is clamped to 0…1; the result is NaN for an empty
// sample.
func Quantile(x []float64, q float64) float64 {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	return quantileSorted(sorted, q)
}

func quantileSorted(sorted []float64, q float64) float64 {
	if len(sorted) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	position := min(max(q, 0), 1) * float64(len(sorted)-1)
	below := int(position)
	if below == len(sorted)-1 {
		return sorted[below]
	}
	// Weighted so that equal neighbours, even infinite ones, yield their own value.
	low, high, weight := sorted[below], sorted[below+1], position-float64(below)
	if weight == 0 || low == high {
		return low
	}
	return low*(1-weight) + high*weight
}

// SpreadAround returns the mean absolute deviation of x from a centre, scaled to the standard
// deviation of normal data with the same one. It is NaN for no values.
//
// It is a compromise. One outlier dominates the standard deviation. The median absolute deviation
// ignores outliers entirely, but they recur, and a forecast must include them.
func SpreadAround(x []float64, centre float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Abs(v - centre)
	}
	return math.Sqrt(math.Pi/2) * sum / float64(len(x))
}

// RobustStdDev estimates the standard deviation of x without the influence of single outliers:
// 1.4826 times the median absolute deviation from the median, with Croux and Rousseeuw's correction
// for small samples (COMPSTAT 1992). It is NaN for fewer than two values. If more than half of the
// values are equal, it falls back to the ordinary standard deviation, so that the deviation of the
// others still counts.
//
// It tolerates wrong values up to half of the sample; the ordinary one does not tolerate a single
// one.
func RobustStdDev(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	centre := Median(x)
	deviations := make([]float64, len(x))
	for i, v := range x {
		deviations[i] = math.Abs(v - centre)
	}
	slices.Sort(deviations)
	// The factor 1.4826 = 1/Φ⁻¹(3/4) makes it equal to the standard deviation on normal data.
	if s := 1.4826 * quantileSorted(deviations, 0.5); s > 0 {
		return s * smallSampleFactor(len(x))
	}
	return StdDev(x)
}

// smallSampleFactor corrects the bias of the median absolute deviation of n values: a fifth too
// small at n = 6.
func smallSampleFactor(n int) float64 {
	table := [...]float64{2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
	if n < len(table) {
		return table[n]
	}
	return float64(n) / (float64(n) - 0.8)
}

// zeroShare is the value of a measurement without any result, relative to its partner in
// PairedLogRatio.
//
// Its logarithm is ln 10⁻⁶ ≈ −13.8: beyond any real effect, so that rounding cannot hide it, and
// finite, so that averages over pairs exist.
const zeroShare = 1e-6

// FromNothing reports whether a ratio means a result where its partner had none (PairedLogRatio).
// ToNothing reports the opposite. Such a ratio must not be printed as a number.
//
// The comparison has a tolerance, because the logarithm of the constant and back loses its last
// digits.
func FromNothing(ratio float64) bool { return ratio > 0.999/zeroShare && ratio < 1.001/zeroShare }

// ToNothing is the opposite of [FromNothing].
func ToNothing(ratio float64) bool { return ratio > 0 && FromNothing(1/ratio) }

// PairedLogRatio returns ln(b/a) for every pair: positive if b is higher. The shorter slice
// determines the length. A value that is not positive (no data arrived) counts as a millionth of
// its partner, so that the ratio remains finite but extreme; two such values are equal.
func PairedLogRatio(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		switch from, to := a[i], b[i]; {
		case !(from > 0) && !(to > 0):
			out[i] = 0
		case !(from > 0):
			out[i] = -math.Log(zeroShare)
		case !(to > 0):
			out[i] = math.Log(zeroShare)
		default:
			out[i] = math.Log(to / from)
		}
	}
	return out
}
