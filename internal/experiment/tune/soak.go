package tune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// Soak is the second test of a committed set, after some time in force.
type Soak struct {
	Effect
	Waited float64 `json:"waited_seconds"` // between commit and test
	Held   bool    `json:"held"`           // the set stays
	// Untested says that the bench was too disturbed for the test, so the set stays because nothing
	// speaks against it.
	Untested bool       `json:"untested,omitempty"`
	Reason   string     `json:"reason"`
	Guards   []GuardRun `json:"guards,omitempty"`
}

// soak waits with the committed set in force, compares it with the original once more, and undoes
// everything if the gain is no longer beyond doubt or a guard-rail is worse than its bound.
//
// A gain measured in a quiet hour may vanish in a busy one, and users rarely check a setting again.
// During the test the changes are trials again, so that a crash leaves the host with its original
// settings.
func (s *session) soak(ctx context.Context) error {
	begin := s.cfg.Now()
	s.emit(Event{Kind: EventPhase, Phase: PhaseSoak,
		Text: fmt.Sprintf("%s in force; the gain is tested again in %s", changes(len(s.kept)),
			unit.FormatSeconds(s.cfg.Soak.Seconds()))})
	if err := s.cfg.Wait(ctx, s.cfg.Soak); err != nil {
		// The set is proven and committed; a user who ends the wait has not asked to undo it.
		s.out.Partial = true
		s.warn("the soak was interrupted (%v): the changes stay untested", err)
		return nil
	}
	waited := s.cfg.Now().Sub(begin)
	s.emit(Event{Kind: EventPhase, Phase: PhaseSoak, Text: fmt.Sprintf("test %s again after %s", changes(len(s.kept)),
		unit.FormatSeconds(waited.Seconds()))})
	got, err := s.compare(ctx, question{phase: PhaseSoak, b: s.kept, bar: s.bar(PhaseSoak, 0)})
	out := &Soak{Effect: got.effect, Waited: waited.Seconds(), Reason: got.reason, Guards: got.guards}
	s.out.Soak = out
	disturbed := (*disturbedError)(nil)
	switch {
	case errors.As(err, &disturbed):
		s.warn("the soak could not be tested, and the changes stay: %v", disturbed)
		out.Held, out.Untested, out.Reason = true, true, disturbed.Error()
	case err != nil:
		out.Reason = "broken off: " + err.Error()
		return err
	default:
		out.Held = got.decision == better
	}
	verdict, text := Kept, "still "+out.Reason
	if !out.Held {
		verdict, text = RevertedUnproven, out.Reason
	}
	s.emit(Event{Kind: EventVerdict, Phase: PhaseSoak, Effect: got.effect, Verdict: verdict,
		Text: fmt.Sprintf("after %s: %s", unit.FormatSeconds(waited.Seconds()), text)})
	if !out.Held {
		s.revoke(fmt.Sprintf("the gain did not last %s: %s", unit.FormatSeconds(waited.Seconds()), got.reason))
		return nil
	}
	return s.settle(ctx)
}

// waitFor is Config.Wait with the system clock.
func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
