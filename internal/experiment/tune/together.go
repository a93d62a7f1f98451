package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
)

// together tries every unproven candidate at once, each at its largest level. Limits in series hide
// each other: with a receive window and a send buffer of the same small size, which copied advice
// leaves behind, neither remedy shows a gain alone. The ablation then drops what was not needed. It
// costs one comparison and runs only if nothing was kept.
//
// It uses candidates that were measured and not proven; those proven worse or refused stay out. All
// members share the joint result, so no member may be quoted alone; Joint marks them in the
// document.
func (s *session) together(ctx context.Context) error {
	var set arm
	var members []Trial
	for _, t := range s.out.Trials {
		if t.Verdict != RevertedUnproven || t.Pairs == 0 {
			continue
		}
		to := t.To
		if n := len(t.Levels); n > 0 {
			// Under the other limit all levels looked equal and the smallest was chosen, so that
			// choice means nothing here.
			for _, l := range slices.Backward(t.Levels) {
				if l.Refused == "" {
					to = l.Value
					break
				}
			}
		}
		p := placed{side: t.Side, setting: knob.Setting{Knob: t.Knob, Value: to}, from: t.From, why: t.Why}
		set = set.with(p)
		members = append(members, Trial{Knob: t.Knob, From: t.From, To: to, Side: t.Side, Why: t.Why, Joint: true,
			Verdict: RevertedUnproven})
	}
	if len(set) < 2 {
		return nil
	}
	s.emit(Event{Kind: EventPhase, Phase: PhaseTrial,
		Text: fmt.Sprintf("none of them helps alone: try the %d unproven changes together", len(set))})
	got, err := s.compare(ctx, question{phase: PhaseTrial, trial: len(s.out.Trials), b: set, bar: s.bar(PhaseTrial, 0)})
	if disturbed := (*disturbedError)(nil); errors.As(err, &disturbed) {
		s.out.DisturbedTrials += len(members)
		got.reason, err = disturbed.Error(), nil
	}
	if errors.Is(err, errBudget) {
		s.out.Partial, s.out.Reason = true, "the time budget ran out while the changes were tried together"
		got.reason, err = "the time budget ran out", nil
	}
	if err != nil {
		got.reason = "broken off: " + err.Error()
	}
	verdict := verdictOf(got.decision)
	if verdict == Kept {
		s.kept, s.lastWin, s.joint = set, nil, len(set)
		s.keeps++
	}
	for _, m := range members {
		m.Effect, m.Guards, m.Verdict, m.Profiles = got.effect, got.guards, verdict, got.profiles
		m.Reason = fmt.Sprintf("together with %s: %s", unit.Counted(len(members)-1, "other"), got.reason)
		s.out.Trials = append(s.out.Trials, m)
	}
	s.emit(Event{Kind: EventVerdict, Phase: PhaseTrial, Effect: got.effect, Verdict: verdict,
		Text: fmt.Sprintf("together: %s: %s", verdict, got.reason)})
	return err
}
