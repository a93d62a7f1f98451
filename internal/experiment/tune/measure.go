package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// errBudget ends the current step when the time is used up.
var errBudget = errors.New("time budget used up")

// disturbedError reports that no try gave a clean segment.
type disturbedError struct {
	reason string
	tries  int
}

func (e *disturbedError) Error() string {
	return fmt.Sprintf("no clean segment in %d tries: %s", e.tries, e.reason)
}

// place is where in the experiment a segment belongs. within is the time since the start of the run
// at which the segment must be over.
type place struct {
	phase  Phase
	trial  int
	pair   int // from 0
	pairs  int // planned up to the next look
	arm    string
	about  placed // the subject of the trial; zero in pilot and confirmation
	within time.Duration
}

// measure measures one clean segment under the present settings. It records a discarded one and
// measures again, at most MaxRepeats times.
//
// A discarded segment stays in the record with its reason. Only the segment is repeated and not its
// pair: its partner was measured on a quiet bench a moment ago. Repeating costs time but no
// correctness, as long as the reason for discarding does not depend on the arm; steal and link
// events come from outside.
//
// On a host whose neighbours never rest, no try is clean. If the loss is bounded, the last try
// counts with it, and so do the other segments of this comparison, at their first try: the order
// within a pair is random, so the neighbours disturb both arms alike. A tenth of the time that is
// lost does not explain a gain of ×20.
func (s *session) measure(ctx context.Context, at place) (Observation, error) {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return Observation{}, fmt.Errorf("measure: %w", context.Cause(ctx))
		}
		begin := s.cfg.Now()
		// Do not begin a segment that cannot end in time: half a pair proves nothing, and undoing
		// needs the time.
		if at.within > 0 && begin.Sub(s.started)+s.segmentTime() > at.within {
			return Observation{}, errBudget
		}
		o, err := s.prober.Measure(ctx)
		if err != nil {
			return Observation{}, fmt.Errorf("measure: %w", err)
		}
		took := s.cfg.Now().Sub(begin)
		s.measuring += took
		if o.Objective < 0 {
			return Observation{}, fmt.Errorf("measure: objective %v is negative", o.Objective)
		}
		if math.IsNaN(o.Objective) || math.IsInf(o.Objective, 0) {
			o.Discard, o.LossRatio = cmp.Or(o.Discard, "the objective is not a number"), 0
		}
		text := ""
		switch {
		case o.Discard == "":
			o.LossRatio = 0
		case o.bounded() && (s.resigned || try > s.cfg.MaxRepeats):
			text = "segment counts with its possible loss: " + o.Discard
			s.resigned, o.Discard = true, ""
		default:
			s.out.Discarded++
			text, o.LossRatio = "segment discarded: "+o.Discard, 0
		}
		s.out.Segments = append(s.out.Segments, Segment{
			Phase: at.phase, Trial: at.trial, Pair: at.pair, Arm: at.arm,
			StartSeconds: begin.Sub(s.started).Seconds(), DurationSeconds: took.Seconds(),
			Objective: known(o.Objective), LossRatio: o.LossRatio, Guards: finite(o.Guards), Discard: o.Discard,
			Label: o.Label,
		})
		s.emit(Event{
			Kind: EventSegment, Phase: at.phase, Text: text, Arm: at.arm, Pair: at.pair + 1, Pairs: at.pairs,
			Knob: at.about.setting.Knob, Side: at.about.side, From: at.about.from, To: at.about.setting.Value,
			Objective: known(o.Objective), Discard: o.Discard,
		})
		if o.Discard == "" {
			return o, nil
		}
		if try > s.cfg.MaxRepeats {
			return Observation{}, &disturbedError{reason: o.Discard, tries: try}
		}
	}
}

// segmentTime returns how long a segment takes on average; 0 before the first. The mean covers all
// segments, because discarded ones cost time as well, and only time in the prober.
func (s *session) segmentTime() time.Duration {
	if len(s.out.Segments) == 0 {
		return 0
	}
	return s.measuring / time.Duration(len(s.out.Segments))
}

// changeTime returns how long it takes to apply or undo one setting on average; 0 before the first.
// Most take milliseconds; a ring takes seconds, because its driver sets it up again and the link
// must come back.
func (s *session) changeTime() time.Duration {
	if s.changed == 0 {
		return 0
	}
	return s.changing / time.Duration(s.changed)
}

// pairsTime returns how long a number of pairs take if the two arms differ in a number of settings
// and each segment switches between them.
func (s *session) pairsTime(pairs, settings int) time.Duration {
	return time.Duration(2*pairs) * (s.segmentTime() + time.Duration(settings)*s.changeTime())
}
