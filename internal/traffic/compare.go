package traffic

import (
	"math"

	"github.com/linerate/linerate/internal/base/stats"
)

// Comparative is how the later of two results stands to the earlier one.
type Comparative string

// The verdicts. The first two are proven: the interval of the ratio lies on one side of 1.
const (
	Better       Comparative = "better"
	Worse        Comparative = "worse"
	NoDifference Comparative = "no-difference" // none is proven
	NotJudged    Comparative = "not-judged"    // too few samples for an interval
)

// Comparison is one test of two measurements. Before and After are in the unit that Figure ends in.
type Comparison struct {
	Test      Test        `json:"test"`
	Direction Direction   `json:"direction"`
	Figure    string      `json:"figure"` // the key of the figure in the result
	Before    float64     `json:"before"`
	After     float64     `json:"after"`
	Ratio     float64     `json:"effect_ratio,omitempty"` // after over before; absent: before is zero
	Low       float64     `json:"effect_low_ratio,omitempty"`
	High      float64     `json:"effect_high_ratio,omitempty"`
	Verdict   Comparative `json:"verdict"`
	// Spread is where the interval comes from: "rounds" of --confidence, "intervals" of one test, or
	// "exact"; of the two results the weaker one.
	Spread string `json:"spread,omitempty"`
}

// LessIsBetter reports whether a smaller figure is the better one.
func (c Comparison) LessIsBetter() bool {
	return c.Figure == "rtt.mean_seconds" || c.Figure == "load.added_seconds"
}

// WorseThan reports whether the whole interval lies beyond a tolerated loss, a share such as 0.05.
func (c Comparison) WorseThan(tolerance float64) bool {
	switch {
	case c.Verdict == NotJudged || c.Ratio == 0:
		return false
	case c.LessIsBetter():
		return c.Low > 1+tolerance
	}
	return c.High < 1-tolerance
}

// Compare compares the headline figures of two results of one test.
//
// The interval covers the true ratio in 95 of 100 comparisons as far as the samples show the noise.
// Repeated tests (Confidence) show that between connections too; the intervals of one test show
// only that within it, and two tests of one path may differ by more.
func Compare(before, after Result) Comparison {
	c := Comparison{Test: before.Test, Direction: before.Direction, Verdict: NotJudged}
	var a, b sample
	c.Figure, a = sampleOf(before)
	_, b = sampleOf(after)
	c.Before, c.After = a.figure, b.figure
	if !(a.figure > 0) || !(b.figure > 0) {
		return c
	}
	c.Ratio = b.figure / a.figure
	if a.spread == "" || b.spread == "" {
		return c
	}
	// The half widths are relative, so the ratio has the interval of a difference of logarithms.
	half := math.Hypot(a.half, b.half)
	c.Low, c.High = c.Ratio*math.Exp(-half), c.Ratio*math.Exp(half)
	c.Spread = a.spread
	if b.spread == "intervals" || a.spread == "exact" {
		c.Spread = b.spread
	}
	up, down := Better, Worse
	if c.LessIsBetter() {
		up, down = Worse, Better
	}
	switch {
	case c.Low > 1:
		c.Verdict = up
	case c.High < 1:
		c.Verdict = down
	default:
		c.Verdict = NoDifference
	}
	return c
}

// sample is a figure with the half width of its 95 % interval, as a share of it.
type sample struct {
	figure, half float64
	spread       string // see Comparison; empty: the half width is not known
}

// sampleOf returns the name of a result's headline figure, and the figure.
func sampleOf(r Result) (name string, s sample) {
	var of func(Interval) float64
	switch r.Test {
	case RR, CRR:
		name, s.figure = "transactions_per_second", r.TransactionsPerSec
		of = func(i Interval) float64 { return i.TransactionsPerSec }
	case Ping:
		name = "rtt.mean_seconds"
		if r.RTT != nil {
			s.figure = r.RTT.Mean
		}
		of = func(i Interval) float64 { return i.RTTSeconds }
	case MTU:
		return "mtu_bytes", sample{float64(r.MTUBytes), 0, "exact"}
	case Load:
		name = "load.added_seconds"
		if r.Load != nil {
			s.figure = r.Load.AddedSeconds
		}
		return name, s // its intervals are of three phases
	default:
		name, s.figure = "throughput_bits_per_second", r.ThroughputBitsPerSec
		of = func(i Interval) float64 { return i.ThroughputBitsPerSec }
	}
	// The confidence of a ping is of its median round trip, whose spread serves for the mean.
	if c := r.Confidence; c != nil && c.Low > 0 {
		s.half, s.spread = math.Log(c.High/c.Low)/2, "rounds"
		return name, s
	}
	var series, lengths []float64
	for _, i := range r.Intervals {
		lengths = append(lengths, i.EndSeconds-i.StartSeconds)
	}
	usual := stats.Median(lengths)
	for _, i := range r.Intervals {
		// The last interval of a test may be a short remainder, noisier than the others. One during
		// which the host stood still may be far longer than they are.
		if !i.Omitted && i.EndSeconds-i.StartSeconds > usual/2 {
			series = append(series, of(i))
		}
	}
	if half, ok := halfWidth(series); ok {
		s.half, s.spread = half, "intervals"
	}
	return name, s
}

// fewestSamples is the least from which to estimate a spread and its memory.
const fewestSamples = 5

// halfWidth returns the half width of the 95 % interval of the mean of a series, relative to it.
//
// Successive rates of a flow resemble each other: a window that has shrunk stays small for a
// while. So a series of n counts as n(1-r)/(1+r) independent values, where r is the
// autocorrelation at lag one (the effective size of an AR(1) process). Of a short series r is
// estimated too small, by about (1+4r)/n (Kendall 1954), which is added.
func halfWidth(series []float64) (float64, bool) {
	n := float64(len(series))
	mean := stats.Mean(series)
	if len(series) < fewestSamples || !(mean > 0) {
		return 0, false
	}
	r := stats.Autocorrelation(series)
	r = min(max(0, r+(1+4*max(r, 0))/n), 0.9)
	effective := max(n*(1-r)/(1+r), 3)
	return student(int(effective)-1) * stats.StdDev(series) / mean / math.Sqrt(effective), true
}

// students are the two-sided 95 % quantiles of Student's distribution for 1 to 10 degrees of
// freedom.
var students = [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}

// student returns that quantile for any number of degrees of freedom, above ten by an approximation
// that is at most 0.3 % too large.
func student(freedom int) float64 {
	if freedom <= len(students) {
		return students[max(freedom, 1)-1]
	}
	return 1.96 + 2.72/float64(freedom)
}
