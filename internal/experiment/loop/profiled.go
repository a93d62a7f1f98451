package loop

import (
	"context"
	"fmt"
	"time"

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
