package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/profile"
)

// Sampler samples the processors of one host for a time; it returns earlier, with the profile so
// far, when ctx ends.
type Sampler func(ctx context.Context, d time.Duration) (*profile.Profile, error)

// beginLate is how long after its warm-up a segment is sampled: what opens the run ends before.
const beginLate = 50 * time.Millisecond

// sampling takes the profiles of one segment while it runs.
type sampling struct {
	cancel context.CancelFunc
	got    map[tune.Side]chan sampled
}

type sampled struct {
	profile *profile.Profile
	err     error
}

// beginSampling samples each side from the end of the warm-up for the length of the segment. The
// two arms of a pair pay the same for it.
func beginSampling(ctx context.Context, samplers map[tune.Side]Sampler, warmUp, segment time.Duration) *sampling {
	if len(samplers) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &sampling{cancel: cancel, got: make(map[tune.Side]chan sampled)}
	for side, sample := range samplers {
		result := make(chan sampled, 1)
		s.got[side] = result
		go func() {
			select {
			case <-ctx.Done():
				result <- sampled{}
				return
			case <-time.After(warmUp + beginLate):
			}
			p, err := sample(ctx, segment)
			result <- sampled{p, err}
		}()
	}
	return s
}

// end returns the profiles of a segment that has ended. Refused gets the reason why a side could
// not be sampled; that is no fault of the segment.
func (s *sampling) end(refused func(tune.Side, error)) map[tune.Side]*profile.Profile {
	if s == nil {
		return nil
	}
	s.cancel()
	out := make(map[tune.Side]*profile.Profile)
	for side, result := range s.got {
		switch r := <-result; {
		case r.err != nil:
			refused(side, r.err)
		case r.profile != nil && r.profile.Busy > 0:
			out[side] = r.profile
		}
	}
	return out
}

// refuse stops sampling a side, and notes why.
func (p *prober) refuse(side tune.Side, err error) {
	delete(p.samplers, side)
	p.notes = append(p.notes, fmt.Sprintf("no profile of the %s host: %v", side, err))
}

// profileTime is how long a load is sampled: 1000 samples of two busy CPUs at the lower rate, and a
// second in which waits for locks are counted.
const profileTime = 2500 * time.Millisecond

// sample loads the path once more and samples the hosts whose processor is the limit, and judges
// again with what they did. A host that refuses, or too little time, leaves the verdict as it is.
func (d *diagnosis) sample(ctx context.Context) error {
	wanted := make(map[tune.Side]Sampler)
	for side, s := range d.o.Samplers {
		if diagnose.WantsProfile(&d.v.Case, d.v.Findings, string(side)) {
			wanted[side] = s
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	spec := d.stream()
	spec.Duration, spec.WarmUp, spec.Streams = profileTime, d.warmUp(), d.o.Streams
	left := time.Until(d.until)
	if needs := d.timeOf(spec); needs > left {
		d.refuse(runProfile, fmt.Sprintf("no time: it takes about %.1f s, and %.1f s of the verdict's %v were left",
			needs.Seconds(), max(left, 0).Seconds(), d.o.Within))
		return nil
	}
	d.o.Progress("sampling the processors under load")
	inner, cancel := context.WithDeadline(ctx, d.until)
	defer cancel()
	beside := beginSampling(inner, wanted, spec.WarmUp, spec.Duration)
	_, err := d.far.Run(inner, spec, nil)
	profiles := beside.end(func(side tune.Side, err error) {
		d.refuse(runProfile, fmt.Sprintf("the processors of the %s host could not be sampled: %v", side, err))
	})
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		d.refuse(runProfile, err.Error())
	}
	if len(profiles) == 0 {
		return nil
	}
	d.v.Profiles = make(map[string]*evidence.Profile)
	for side, p := range profiles {
		d.v.Profiles[string(side)] = evidenceOf(p)
	}
	judged := diagnose.Examine(d.v.Case)
	d.v.Findings, d.v.Blind = judged.Findings, judged.Blind
	return nil
}
