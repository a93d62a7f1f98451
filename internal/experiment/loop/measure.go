package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/traffic"
)

// Measure runs one test of any kind; it runs the parts of a combined test one after the other and
// combines their results. progress, which may be nil, gets all intervals on one time line.
//
// A part without answers, such as pings through a filter, is missing from the result and named in
// its warnings; every other error ends the whole test.
func Measure(ctx context.Context, run traffic.Runner, spec traffic.Spec,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	switch spec.Test {
	case traffic.Load:
	case traffic.Burst:
		return burst(ctx, run, spec, progress)
	default:
		return run(ctx, spec, progress)
	}
	phases, err := loadPhases(spec)
	if err != nil {
		return nil, err
	}
	var at float64 // seconds of the phases before
	results := make([]*traffic.Result, len(phases))
	for i, p := range phases {
		r, err := run(ctx, p.spec, shifted(progress, at))
		switch {
		// The idle path is the reference: without it the other phases are useless.
		case errors.Is(err, traffic.ErrNoAnswer) && i > 0:
			continue
		case err != nil:
			return nil, fmt.Errorf("%s test, %s: %w", spec.Test, p.name, err)
		}
		results[i] = r
		at += r.WarmUpSeconds + r.DurationSeconds
	}
	return assembleLoad(spec, results)
}

// shifted passes intervals on, later by the given seconds.
func shifted(progress func(traffic.Interval), by float64) func(traffic.Interval) {
	if progress == nil {
		return nil
	}
	return func(i traffic.Interval) {
		i.StartSeconds += by
		i.EndSeconds += by
		progress(i)
	}
}
