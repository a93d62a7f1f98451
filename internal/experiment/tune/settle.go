package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/base/unit"
)

// confirm compares a set with the original, with fresh pairs. A bench too disturbed to measure
// leaves it unproven.
//
// It uses the same looks as a trial and asks whether the gain stands (see bar), so that two
// independent tests have proven what passes.
func (s *session) confirm(ctx context.Context, set arm, attempt int) (answer, error) {
	s.emit(Event{Kind: EventPhase, Phase: PhaseConfirmation, Pairs: s.plan.Looks[0].Pairs,
		Text: fmt.Sprintf("confirm %s against the original", changes(len(set)))})
	got, err := s.compare(ctx, question{
		phase: PhaseConfirmation, trial: attempt, b: set, within: s.cfg.Budget, bar: s.bar(PhaseConfirmation, 0),
	})
	disturbed := (*disturbedError)(nil)
	switch {
	case errors.As(err, &disturbed):
		got.decision, got.reason, s.out.Unreliable = unproven, disturbed.Error(), true
	case err != nil:
		return got, err
	}
	verdict := Kept
	if got.decision != better {
		verdict = RevertedUnproven
	}
	s.emit(Event{Kind: EventVerdict, Phase: PhaseConfirmation, Effect: got.effect, Verdict: verdict,
		Text: "confirmation: " + got.reason})
	return got, nil
}

// ablate drops every kept change that the others make unnecessary, oldest first, because later ones
// were proven on top of it and not vice versa. It then confirms the remaining set afresh, and
// returns false if that fails: an unnecessary change does not stay to save the figures of the
// others. Without time for all that, the whole confirmed set stays.
//
// Fewer changes on a production host are worth more than a slightly higher figure, so the burden of
// proof is on the change: "not proven to be needed" means that it is dropped.
func (s *session) ablate(ctx context.Context) (confirmed bool, err error) {
	whole := s.kept
	outOfTime := func() (bool, error) {
		s.out.Partial, s.kept = true, whole
		s.warn("the time budget ran out before the ablation showed which kept changes are needed; all stay")
		return true, nil
	}
	var dropped []Ablation
	for i := 0; i < len(s.kept) && len(s.kept) > 1; {
		entry, err := s.needs(ctx, i, len(dropped) > 0)
		if errors.Is(err, errBudget) {
			return outOfTime()
		}
		if err != nil {
			return false, err
		}
		s.out.Ablation = append(s.out.Ablation, entry)
		if entry.Needed {
			i++
			continue
		}
		dropped = append(dropped, entry)
		s.kept = s.kept.without(i)
	}
	if len(dropped) == 0 {
		return true, nil
	}
	again, err := s.confirm(ctx, s.kept, 1)
	if errors.Is(err, errBudget) {
		return outOfTime()
	}
	if err != nil {
		return false, err
	}
	s.out.Final, s.out.Guards, s.out.Profiles = &again.effect, again.guards, again.profiles
	if again.decision != better {
		return false, nil
	}
	for _, d := range dropped {
		s.dropTrial(d)
	}
	return true, nil
}

// dropTrial marks the trial of a change as unnecessary in the end.
func (s *session) dropTrial(d Ablation) {
	for i := range s.out.Trials {
		if t := &s.out.Trials[i]; t.Knob == d.Knob && t.Side == d.Side && t.Verdict == Kept {
			t.Verdict = RevertedUnproven
			t.Reason = fmt.Sprintf("no longer needed beside the others: %s in the kept set", d.Effect)
		}
	}
}

// needs tests whether the kept set is better than itself without its i-th member. Arm A is the set
// without the change and arm B the whole set, so that an effect above 1 favours the change, as
// everywhere.
func (s *session) needs(ctx context.Context, i int, dropped bool) (Ablation, error) {
	p := s.kept[i]
	entry := Ablation{Knob: p.setting.Knob, Side: p.side, Sharing: s.joint}
	// This very comparison kept the newest member, as long as the others are those it was tried on,
	// and the knob had its original value then. It may replace a fresh one while so few trials were
	// made that none of them is likely to be lucky.
	if i == len(s.kept)-1 && s.lastWin != nil && !dropped && len(s.trialsOf(p)) == 1 && s.reusable() {
		entry.Effect, entry.Needed, entry.Reused = s.lastWin.effect, true, true
		return entry, nil
	}
	s.emit(Event{Kind: EventPhase, Phase: PhaseAblation, Knob: p.setting.Knob, Side: p.side, From: p.from,
		To:   p.setting.Value,
		Text: fmt.Sprintf("is %s %s still needed beside the others", p.side, p.setting.Knob)})
	got, err := s.compare(ctx, question{
		phase: PhaseAblation, trial: len(s.out.Ablation), about: p, a: s.kept.without(i), b: s.kept,
		within: s.cfg.Budget,
		bar:    s.bar(PhaseAblation, s.joint),
	})
	entry.Effect = got.effect
	if disturbed := (*disturbedError)(nil); errors.As(err, &disturbed) {
		// The change was proven once; a disturbed bench proves nothing against it.
		s.warn("ablation of %s %s: %v", p.side, p.setting.Knob, disturbed)
		entry.Needed = true
		return entry, nil
	}
	if err != nil {
		return entry, err
	}
	entry.Needed = got.decision == better
	verdict := Kept
	if !entry.Needed {
		verdict = RevertedUnproven
	}
	s.emit(Event{Kind: EventVerdict, Phase: PhaseAblation, Knob: p.setting.Knob, Side: p.side, From: p.from,
		To:     p.setting.Value,
		Effect: got.effect, Verdict: verdict, Text: fmt.Sprintf("%s %s in the kept set: %s", p.side, p.setting.Knob,
			got.reason)})
	return entry, nil
}

// settle puts the kept set in force and commits it, or holds it. It checks the context once more
// after the switch, because a Ctrl-C during the last switch must still undo everything.
func (s *session) settle(ctx context.Context) error {
	if err := s.switchTo(ctx, s.kept); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if s.cfg.HoldCommit {
		s.out.State = StateTrial
	} else {
		if err := s.commit(ctx); err != nil {
			return err
		}
		s.out.State = StateCommitted
	}
	s.out.Kept = s.keptList()
	s.conclude("confirmed: " + s.out.Final.String())
	if s.out.Soak != nil {
		s.conclude(fmt.Sprintf("%s; after %s: %s", s.out.Reason, unit.FormatSeconds(s.out.Soak.Waited),
			s.out.Soak.Effect))
	}
	return nil
}

// keptList returns the kept settings, with their ids if they are in force.
func (s *session) keptList() []Change {
	out := make([]Change, len(s.kept))
	for i, p := range s.kept {
		out[i] = applied{placed: p}.change()
		if at := slices.IndexFunc(s.applied, func(a applied) bool { return a.same(p) }); at >= 0 {
			out[i].ID = s.applied[at].id
		}
	}
	return out
}
