package stats

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longestLatency is the largest latency that a Histogram resolves. Longer ones count as this long,
// but the exact maximum is kept.
//
// An hour is far beyond any timeout of TCP. Three digits over that range, more than twelve decimal
// orders, take the 280 KiB.
const longestLatency = int64(time.Hour)

// Histogram collects latencies in nanoseconds with three significant digits in constant memory
// (about 280 KiB). Recording does not allocate. Count, minimum, maximum, mean and standard
// deviation are exact. It is not safe for concurrent use.
type Histogram struct {
	buckets  *hdrhistogram.Histogram
	count    uint64
	min, max int64
	mean, m2 float64 // Welford's running mean and sum of squared deviations, in nanoseconds
}

// Latencies summarises a Histogram. All fields except Count are in seconds; documents have it as it
// is.
type Latencies struct {
	Count  uint64  `json:"count_total"`
	Min    float64 `json:"min_seconds"`
	Mean   float64 `json:"mean_seconds"`
	P50    float64 `json:"p50_seconds"`
	P90    float64 `json:"p90_seconds"`
	P99    float64 `json:"p99_seconds"`
	P999   float64 `json:"p999_seconds"`
	Max    float64 `json:"max_seconds"`
	StdDev float64 `json:"stddev_seconds"`
}

// NewHistogram returns an empty histogram for latencies from 1 ns to 1 h.
func NewHistogram() *Histogram {
	return &Histogram{buckets: hdrhistogram.New(1, longestLatency, 3)}
}

// Record adds one latency. A negative one, which a clock step can cause, counts as 0.
func (h *Histogram) Record(nanoseconds int64) {
	nanoseconds = max(nanoseconds, 0)
	// Cannot fail: the value is inside the histogram's range.
	_ = h.buckets.RecordValue(min(nanoseconds, longestLatency))
	if h.count == 0 || nanoseconds < h.min {
		h.min = nanoseconds
	}
	h.max = max(h.max, nanoseconds)
	h.count++
	d := float64(nanoseconds) - h.mean
	h.mean += d / float64(h.count)
	h.m2 += d * (float64(nanoseconds) - h.mean)
}

// Merge adds all records of other and leaves other unchanged.
//
// No other goroutine may use either of them meanwhile.
func (h *Histogram) Merge(other *Histogram) {
	if other.count == 0 {
		return
	}
	h.buckets.Merge(other.buckets) // same geometry: nothing is dropped
	if h.count == 0 || other.min < h.min {
		h.min = other.min
	}
	h.max = max(h.max, other.max)
	// Chan, Golub & LeVeque's formula for joining two running variances.
	a, b := float64(h.count), float64(other.count)
	d := other.mean - h.mean
	h.mean += d * b / (a + b)
	h.m2 += other.m2 + d*d*a*b/(a+b)
	h.count += other.count
}

// Reset removes all records.
func (h *Histogram) Reset() {
	h.buckets.Reset()
	h.count, h.min, h.max, h.mean, h.m2 = 0, 0, 0, 0, 0
}

// Count returns the number of recorded latencies.
func (h *Histogram) Count() uint64 { return h.count }

// Quantile returns the latency in seconds that the share q of all recorded ones does not exceed, to
// three significant digits; 0 if empty.
func (h *Histogram) Quantile(q float64) float64 {
	if h.count == 0 {
		return 0
	}
	// A bucket reports its upper end, which may exceed every recorded value.
	ns := h.buckets.ValueAtQuantile(100 * min(max(q, 0), 1))
	if q >= 1 || ns >= longestLatency {
		ns = h.max
	}
	return float64(min(max(ns, h.min), h.max)) / 1e9
}

// Counts returns how many records are above the bound before and up to each bound, in seconds and
// ascending. Records above the last bound are not counted. A record counts where its bucket begins,
// so a bound is sharp to three significant digits.
func (h *Histogram) Counts(bounds []float64) []uint64 {
	counts := make([]uint64, len(bounds))
	at := 0
	for _, bar := range h.buckets.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for at < len(bounds) && float64(bar.From)/1e9 > bounds[at] {
			at++
		}
		if at == len(bounds) {
			break
		}
		counts[at] += uint64(bar.Count)
	}
	return counts
}

// OrNil returns the summary, or nil if nothing was recorded: a document then omits it.
func (l Latencies) OrNil() *Latencies {
	if l.Count == 0 {
		return nil
	}
	return &l
}

// Snapshot summarises the records so far; all zero if empty.
func (h *Histogram) Snapshot() Latencies {
	if h.count == 0 {
		return Latencies{}
	}
	s := Latencies{
		Count: h.count,
		Min:   float64(h.min) / 1e9,
		Mean:  h.mean / 1e9,
		P50:   h.Quantile(0.50),
		P90:   h.Quantile(0.90),
		P99:   h.Quantile(0.99),
		P999:  h.Quantile(0.999),
		Max:   float64(h.max) / 1e9,
	}
	if h.count > 1 {
		s.StdDev = math.Sqrt(h.m2/float64(h.count-1)) / 1e9
	}
	return s
}
