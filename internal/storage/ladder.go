package storage

import (
	"context"
	"time"
)

// ladderMost is the largest depth of a ladder, and ladderGain what a further step must add: two
// steps in a row without it end the ladder.
const (
	ladderMost = 256
	ladderGain = 1.05
)

// runner runs one test; [Session.Run] is one.
type runner func(ctx context.Context, spec Spec, progress func(Sample)) (*Result, error)

// climb repeats a test with 1, 2, 4 … operations in flight until more of them add nothing.
func climb(ctx context.Context, run runner, spec Spec, progress func(Rung)) ([]Rung, error) {
	var ladder []Rung
	spec.Duration = max(spec.Duration/8, 200*time.Millisecond)
	spec.Interval = spec.Duration
	best, flat := 0.0, 0
	for spec.Depth = 1; spec.Depth <= ladderMost && flat < 2; spec.Depth *= 2 {
		r, err := run(ctx, spec, nil)
		if err != nil {
			return ladder, err
		}
		rung := Rung{Depth: spec.Depth, OperationsPerSec: r.OperationsPerSec,
			ThroughputBytesPerSec: r.ThroughputBytesPerSec, Whose: r.Whose}
		if r.Latency != nil {
			rung.P50, rung.P99 = r.Latency.P50, r.Latency.P99
		}
		ladder = append(ladder, rung)
		if progress != nil {
			progress(rung)
		}
		if flat++; r.OperationsPerSec > ladderGain*best {
			flat = 0
		}
		best = max(best, r.OperationsPerSec)
	}
	return ladder, nil
}

// Climb runs a ladder of queue depths and then the whole test at its knee. The result carries the
// ladder.
func (s *Session) Climb(ctx context.Context, spec Spec, step func(Rung), progress func(Sample)) (*Result, error) {
	ladder, err := climb(ctx, s.Run, spec, step)
	if err != nil {
		return nil, err
	}
	spec.Depth = Knee(ladder)
	r, err := s.Run(ctx, spec, progress)
	if r != nil {
		r.Ladder, r.Knee = ladder, spec.Depth
	}
	return r, err
}
