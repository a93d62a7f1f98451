package storage

import (
	"math"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/storage/layers"
)

// Result is what one test showed.
type Result struct {
	Test       Test   `json:"test"`
	Engine     Engine `json:"engine"`
	Way        Way    `json:"way"`
	Sync       Sync   `json:"sync"`
	BlockBytes int    `json:"block_bytes"`
	Depth      int    `json:"depth"`
	// RateOperationsPerSec is the asked rate of an open loop; absent: as fast as possible.
	RateOperationsPerSec float64 `json:"rate_operations_per_second,omitempty"`

	Verdict

	DurationSeconds       float64  `json:"duration_seconds"`
	Operations            uint64   `json:"operations_total"`
	Bytes                 int64    `json:"transferred_bytes"`
	ThroughputBytesPerSec float64  `json:"throughput_bytes_per_second"`
	OperationsPerSec      float64  `json:"operations_per_second"`
	Latency               *Latency `json:"latency,omitempty"`
	Missed                uint64   `json:"missed_total,omitempty"` // due and not started before the end
	// CPUSeconds is that of the threads that run the operations, in user and kernel mode.
	CPUSeconds      float64   `json:"cpu_seconds"`
	CPUSecondsPerOp float64   `json:"cpu_seconds_per_operation,omitempty"`
	Intervals       []Sample  `json:"intervals,omitempty"`
	Layers          []Counted `json:"layers,omitempty"` // bytes at each device meanwhile
	// PinnedBytes is the memory that was locked meanwhile, and GroupBytes the limit of the memory
	// control group that held this process.
	PinnedBytes int64    `json:"pinned_bytes,omitempty"`
	GroupBytes  int64    `json:"group_limit_bytes,omitempty"`
	Ladder      []Rung   `json:"ladder,omitempty"`
	Knee        int      `json:"knee_depth,omitempty"`
	Errors      uint64   `json:"errors_total,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

// Latency is the time of single operations, in seconds.
type Latency struct {
	stats.Latencies
	// Histogram counts operations up to each bound; empty buckets at both ends are left out.
	Histogram []Bucket `json:"histogram,omitempty"`
}

// Bucket is one bar of a histogram: operations above the bound before it and up to this one.
type Bucket struct {
	UpToSeconds float64 `json:"up_to_seconds"`
	Count       uint64  `json:"operations_total"`
}

// Sample is one interim result.
type Sample struct {
	StartSeconds          float64 `json:"start_seconds"`
	DurationSeconds       float64 `json:"duration_seconds"`
	ThroughputBytesPerSec float64 `json:"throughput_bytes_per_second"`
	OperationsPerSec      float64 `json:"operations_per_second"`
	MeanSeconds           float64 `json:"latency_mean_seconds,omitempty"`
}

// Counted is what one device did while the test ran, for all programs.
type Counted struct {
	Name       string  `json:"name"`
	Device     string  `json:"device"`
	ReadBytes  uint64  `json:"read_bytes"`
	WriteBytes uint64  `json:"write_bytes"`
	Flushes    uint64  `json:"flushes_total"`
	BusyRatio  float64 `json:"busy_ratio"`
	// Bottom reports that the bytes of the file are counted here.
	Bottom bool `json:"bottom"`
}

// Rung is one step of a ladder of queue depths.
type Rung struct {
	Depth                 int     `json:"depth"`
	OperationsPerSec      float64 `json:"operations_per_second"`
	ThroughputBytesPerSec float64 `json:"throughput_bytes_per_second"`
	P50                   float64 `json:"latency_p50_seconds"`
	P99                   float64 `json:"latency_p99_seconds"`
	Whose                 Whose   `json:"whose"`
}

// kneeShare is the share of the highest rate that the knee reaches: more operations in flight then
// buy latency and hardly any throughput.
const kneeShare = 0.9

// Knee returns the smallest depth of a ladder that reaches nine tenths of its highest rate; 0 for
// an empty ladder.
func Knee(ladder []Rung) int {
	most := 0.0
	for _, r := range ladder {
		most = max(most, r.OperationsPerSec)
	}
	for _, r := range ladder {
		if r.OperationsPerSec >= kneeShare*most && most > 0 {
			return r.Depth
		}
	}
	return 0
}

// Subject is what was measured.
type Subject struct {
	Path string `json:"path"`
	// Kind is own-file, file or device.
	Kind      string       `json:"kind"`
	SizeBytes int64        `json:"size_bytes"`
	Stack     layers.Stack `json:"stack"`
	// HostCache is "unknown" for a virtual disk: the host that provides it may answer from its memory.
	HostCache string `json:"host_cache,omitempty"`
}

// latencyOf summarises a histogram. Its buckets grow by the square root of two: fine enough to show
// two groups of operations, those that a cache answered and those that the medium did.
func latencyOf(h *stats.Histogram) *Latency {
	l := &Latency{Latencies: h.Snapshot()}
	var bounds []float64
	for bound := 1e-6; bound < 2*3600; bound *= math.Sqrt2 {
		bounds = append(bounds, bound)
	}
	counts := h.Counts(bounds)
	first, last := len(counts), 0
	for i, n := range counts {
		if n > 0 {
			first, last = min(first, i), i
		}
	}
	for i := first; i <= last; i++ {
		l.Histogram = append(l.Histogram, Bucket{UpToSeconds: bounds[i], Count: counts[i]})
	}
	return l
}
