package stats

import (
	"fmt"
	"math"
)

// Warning is a property of a sample that its reader must know. It never stops a computation.
type Warning struct {
	Code  string  // drifting, noisy, short, never-steady, correlated
	Value float64 // the number that raised it, in the unit the text says
	Text  string  // one sentence
}

// The thresholds of CheckSeries are conventions of this project: a series below them moves a mean
// by too little to act on.
const (
	fewestSamples  = 5
	driftLimit     = 0.05 // relative change over the series
	spreadLimit    = 0.10 // coefficient of variation
	correlationCap = 0.5  // lag-1 autocorrelation past which a mean's spread is far wider than it looks
)

// SteadyFrom returns the index at which a series leaves its start-up phase and becomes usable
// (White's MSER rule: the cut whose remainder determines its mean best). Series of 50 values and
// more are evaluated in batches of five (MSER-5), shorter ones value by value. At most the first
// half is cut; CheckSeries reports a series that is still settling there. Fewer than 4 values are
// not cut.
func SteadyFrom(series []float64) int {
	batch := 1
	if len(series) >= 50 {
		batch = 5
	}
	n := len(series) / batch
	if n < 4 {
		return 0
	}
	means := make([]float64, n)
	for i := range means {
		means[i] = Mean(series[i*batch : (i+1)*batch])
	}
	// Relative to the overall mean, so that sums of squares of rates near 1e11 keep their digits.
	centre := Mean(means)
	best, cut := math.Inf(1), 0
	sum, squares := 0.0, 0.0
	for i := n - 1; i >= 0; i-- {
		d := means[i] - centre
		sum += d
		squares += d * d
		rest := float64(n - i)
		if i > n/2 {
			continue
		}
		// Ties prefer the longer remainder: a constant series is steady from its start.
		if statistic := max(squares-sum*sum/rest, 0) / (rest * rest); statistic <= best {
			best, cut = statistic, i
		}
	}
	return cut * batch
}

// Drift is a trend over a series.
type Drift struct {
	Relative float64 // change from the first to the last value, relative to the median
	Score    float64 // Mann-Kendall's standard score; beyond ±1.96 chance is an unlikely cause
}

// LinearDrift fits a straight line to the series by the median of all slopes (Theil-Sen), which
// outliers do not affect. Fewer than 3 values have no drift.
//
// The slope is judged both by its size and by its sign test: a steep line through six scattered
// values is not a trend, and a significant trend of a tenth of a per cent is irrelevant.
func LinearDrift(series []float64) Drift {
	n := len(series)
	if n < 3 {
		return Drift{}
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	concordance := 0
	for i, a := range series {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (series[j]-a)/float64(j-i))
			switch {
			case series[j] > a:
				concordance++
			case series[j] < a:
				concordance--
			}
		}
	}
	var d Drift
	if centre := Median(series); centre != 0 {
		d.Relative = Median(slopes) * float64(n-1) / math.Abs(centre)
	}
	// Normal approximation with continuity correction; ties make it conservative.
	sigma := math.Sqrt(float64(n*(n-1)*(2*n+5)) / 18)
	switch {
	case concordance > 0:
		d.Score = float64(concordance-1) / sigma
	case concordance < 0:
		d.Score = float64(concordance+1) / sigma
	}
	return d
}

// Autocorrelation returns the lag-1 correlation of a series with itself, between −1 and 1; 0 for
// constant series and fewer than 3 values.
func Autocorrelation(series []float64) float64 {
	if len(series) < 3 {
		return 0
	}
	mean := Mean(series)
	between, total := 0.0, 0.0
	for i, v := range series {
		total += (v - mean) * (v - mean)
		if i > 0 {
			between += (v - mean) * (series[i-1] - mean)
		}
	}
	if total == 0 {
		return 0
	}
	return between / total
}

// CheckSeries examines a series from index from on (the result of SteadyFrom) and returns the
// reasons to doubt its mean.
//
// It performs all four checks, as a series may be noisy and drifting; only a series that is too
// short gets no further warning.
func CheckSeries(series []float64, from int) []Warning {
	from = min(max(from, 0), len(series))
	rest := series[from:]
	var out []Warning
	warn := func(code string, value float64, format string, args ...any) {
		out = append(out, Warning{Code: code, Value: value, Text: fmt.Sprintf(format, args...)})
	}
	if len(rest) < fewestSamples {
		warn("short", float64(len(rest)), "only %d values after the warm-up; measure longer", len(rest))
		return out
	}
	if from > 0 && from*2 >= len(series)-1 {
		warn("never-steady", float64(from), "still settling after half of the series; measure longer")
	}
	if d := LinearDrift(rest); math.Abs(d.Relative) > driftLimit && math.Abs(d.Score) > 1.96 {
		warn("drifting", d.Relative, "drifts by %+.1f %% over the measurement", 100*d.Relative)
	}
	if cv := StdDev(rest) / math.Abs(Mean(rest)); cv > spreadLimit {
		warn("noisy", cv, "values vary by %.0f %% around their mean", 100*cv)
	}
	// The correlation of fewer than ten values is mostly chance: its standard error is about 1/√n.
	if r := Autocorrelation(rest); r > correlationCap && len(rest) >= 10 {
		warn("correlated", r,
			"neighbouring values resemble each other (correlation %.2f), so the mean is less certain than it looks", r)
	}
	return out
}

const (
	// steadySamples is the shortest series that IsSteady accepts: half a second of bins of 50 ms.
	// That is several round trips on every path except a satellite's, where slow start then appears
	// as drift.
	steadySamples = 10
	// steadyDrift is the relative change over a series that never counts as a trend, even if it is
	// certain.
	steadyDrift = 0.10
)

// IsSteady reports whether a growing series has reached its steady state. The conditions are: data
// flows; the best cut (MSER) lies well inside the first half, not at its end, where the rule puts
// it while the series still settles; and the remainder has no trend. The last condition is for slow
// start: to MSER, a series that doubles every round trip looks like a long calm with an odd end.
func IsSteady(series []float64) bool {
	n := len(series)
	// A last bin without data is a stall (a retransmission timeout is at least 200 ms, RFC 6298),
	// during which the series looks steady.
	if n < steadySamples || series[n-1] == 0 {
		return false
	}
	cut := SteadyFrom(series)
	if cut > n/3 {
		return false
	}
	drift := LinearDrift(series[cut:])
	return math.Abs(drift.Relative) <= steadyDrift || math.Abs(drift.Score) < 1.96
}
