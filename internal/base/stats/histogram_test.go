package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/base/stats"
)

// TestHistogram compares with the sorted sample: quantiles to three digits, moments exactly.
func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	whole, left, right := stats.NewHistogram(), stats.NewHistogram(), stats.NewHistogram()
	var sample []float64
	for i := range 20_000 {
		ns := int64(math.Exp(11 + 2*random.NormFloat64())) // round trips around 60 µs with a long tail
		sample = append(sample, float64(ns)/1e9)
		whole.Record(ns)
		if i%3 == 0 {
			left.Record(ns)
		} else {
			right.Record(ns)
		}
	}
	got := whole.Snapshot()
	want := stats.Latencies{
		Count: 20_000,
		Min:   stats.Quantile(sample, 0), Max: stats.Quantile(sample, 1),
		Mean: stats.Mean(sample), StdDev: stats.StdDev(sample),
		P50: stats.Quantile(sample, 0.5), P90: stats.Quantile(sample, 0.9), P99: stats.Quantile(sample, 0.99),
		P999: stats.Quantile(sample, 0.999),
	}
	// Quantiles between two of 20 000 samples differ by rank rounding as well as by bucket width.
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0.01, 0)); diff != "" {
		t.Error(diff)
	}
	if !near(got.Mean, want.Mean, 1e-9) || !near(got.StdDev, want.StdDev, 1e-9) || got.Max != want.Max ||
		got.Min != want.Min {
		t.Errorf("moments %+v, want exactly %+v", got, want)
	}
	left.Merge(right)
	left.Merge(stats.NewHistogram())
	if diff := cmp.Diff(got, left.Snapshot(), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("merged parts differ from the whole:\n%s", diff)
	}
}

func TestHistogramEdges(t *testing.T) {
	h := stats.NewHistogram()
	if got := h.Snapshot(); got != (stats.Latencies{}) || h.Quantile(0.5) != 0 {
		t.Errorf("empty histogram reports %+v", got)
	}
	h.Record(-5)
	h.Record(int64(3 * time.Hour))
	got := h.Snapshot()
	if got.Count != 2 || got.Min != 0 || got.Max != (3*time.Hour).Seconds() || got.P999 != got.Max {
		t.Errorf("out-of-range values gave %+v", got)
	}
	h.Reset()
	h.Record(1000)
	if got := h.Snapshot(); got.Count != 1 || got.P50 != 1e-6 || got.Min != 1e-6 || got.StdDev != 0 {
		t.Errorf("after a reset and one value: %+v", got)
	}
}

func TestHistogramRecordDoesNotAllocate(t *testing.T) {
	h := stats.NewHistogram()
	if n := testing.AllocsPerRun(1000, func() { h.Record(12_345) }); n != 0 {
		t.Errorf("Record allocates %v times", n)
	}
}

func BenchmarkHistogramRecord(b *testing.B) {
	h := stats.NewHistogram()
	for i := int64(0); b.Loop(); i++ {
		h.Record(20_000 + i%1000)
	}
}

// TestCounts checks that each record is in one bucket, at its end or below, and that those above
// the last bound are left out.
func TestCounts(t *testing.T) {
	h := stats.NewHistogram()
	for _, us := range []int64{1, 10, 10, 99, 100, 101, 5000} {
		h.Record(us * 1000)
	}
	got := h.Counts([]float64{1e-6, 10e-6, 100e-6, 1e-3})
	if want := []uint64{1, 2, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if got := stats.NewHistogram().Counts([]float64{1}); got[0] != 0 {
		t.Errorf("an empty histogram counts %v", got)
	}
}
