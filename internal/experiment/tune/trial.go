package tune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
)

// trial tries one candidate on top of the kept ones. The caller records the trial even beside an
// error.
//
// The checks come in order of cost: rules that need no host, then one read, then measurements. A
// refusal is a result with a reason and never an error: "not permitted here" is part of the answer
// to what can be done.
func (s *session) trial(ctx context.Context, c Candidate) (Trial, error) {
	s.vetoed = false
	t := Trial{Knob: c.Knob, Side: c.Side, Why: c.Why, Verdict: Refused}
	if len(c.Levels) > 0 {
		t.To = c.Levels[0]
	}
	refuse := func(reason string) (Trial, error) {
		t.Verdict, t.Reason = Refused, reason
		return t, nil
	}
	reason, levels := s.forbidden(c)
	if reason != "" {
		// Only for the record, so a failing read does not matter.
		if h := s.hosts[c.Side]; h != nil {
			t.From, _ = h.Read(ctx, c.Knob)
		}
		return refuse(reason)
	}
	// The candidate is compared with, and builds on, everything kept so far.
	if err := s.switchTo(ctx, s.kept); err != nil {
		t.Verdict, t.Reason = RevertedUnproven, "not tried: "+err.Error()
		return t, err
	}
	from, err := s.hosts[c.Side].Read(ctx, c.Knob)
	if err != nil {
		if reason, ok := refusal(err); ok {
			return refuse(reason)
		}
		err = fmt.Errorf("read %s %s: %w", c.Side, c.Knob, err)
		t.Verdict, t.Reason = RevertedUnproven, "not tried: "+err.Error()
		return t, err
	}
	t.From = from
	levels = slices.DeleteFunc(levels, func(v knob.Value) bool { return equal(v, from) })
	if len(levels) == 0 {
		return refuse(fmt.Sprintf("is %s already", from))
	}
	// Only measured trials count; refused ones cost nothing.
	if s.cfg.MaxTrials > 0 && s.measured >= s.cfg.MaxTrials {
		return refuse(fmt.Sprintf("not tried: the limit of %s is reached", unit.Counted(s.cfg.MaxTrials, "trial")))
	}
	s.measured++
	s.emit(Event{
		Kind: EventPhase, Phase: PhaseTrial, Knob: c.Knob, Side: c.Side, From: from, To: levels[0],
		Text: fmt.Sprintf("try %s %s: %s", c.Side, c.Knob, c.Why),
	})
	t.Verdict = RevertedUnproven
	err = s.judge(ctx, &t, c, levels)
	if disturbed := (*disturbedError)(nil); errors.As(err, &disturbed) {
		s.out.DisturbedTrials++
		t.Reason = disturbed.Error()
		return t, nil
	}
	if reason, ok := refusedApply(err); ok && t.Pairs == 0 {
		// The host refused the first write: that is an answer, not a fault.
		return refuse(reason)
	}
	if err != nil {
		t.Reason = "broken off: " + err.Error()
	}
	return t, err
}

// judge chooses the level and compares it with the present settings.
func (s *session) judge(ctx context.Context, t *Trial, c Candidate, levels []knob.Value) error {
	index := len(s.out.Trials)
	t.To = levels[0]
	if len(levels) > 1 {
		chosen, tried, err := s.chooseLevel(ctx, c, t.From, levels, index)
		t.Levels = tried
		if err != nil {
			return err
		}
		if chosen == "" {
			t.Verdict, t.Reason = Refused, tried[0].Refused
			return nil
		}
		t.To = chosen
		s.emit(Event{Kind: EventPhase, Phase: PhaseTrial, Knob: c.Knob, Side: c.Side, From: t.From, To: chosen,
			Text: describeLevels(tried)})
	}
	p := placed{side: c.Side, setting: knob.Setting{Knob: c.Knob, Value: t.To}, from: t.From, why: c.Why}
	with := s.kept.with(p)
	got, err := s.compare(ctx, question{phase: PhaseTrial, trial: index, about: p, a: s.kept, b: with,
		bar: s.bar(PhaseTrial, 0)})
	t.Effect, t.Guards, t.Reason, t.Profiles = got.effect, got.guards, got.reason, got.profiles
	if err != nil {
		return err
	}
	switch got.decision {
	case better:
		t.Verdict = Kept
		s.kept, s.lastWin = with, &got
		t.Reason += s.tooMuch(t.Levels)
	case worse:
		t.Verdict, s.vetoed = RevertedWorse, got.vetoed
		if next := below(*t); got.vetoed && len(next) > 0 {
			t.Reason = fmt.Sprintf("%s; %s is tried next", got.reason, next[0])
		} else if !got.vetoed {
			t.Reason = fmt.Sprintf("%s instead of %s is %s; %s stays", t.To, t.From, got.reason, t.From)
		}
	}
	return nil
}

// forbidden returns why a candidate must not be tried at all, and otherwise its levels in canonical
// form.
//
// It leaves out levels that the catalogue does not accept; if none is left, it refuses the
// candidate with the reason of the last.
func (s *session) forbidden(c Candidate) (reason string, levels []knob.Value) {
	if s.hosts[c.Side] == nil {
		return fmt.Sprintf("the %s side has no host that may be changed", c.Side), nil
	}
	if len(c.Levels) == 0 {
		return "no level to try", nil
	}
	if s.cfg.Refuse != nil {
		if reason := s.cfg.Refuse(c); reason != "" {
			return reason, nil
		}
	}
	if s.cfg.Lookup == nil {
		return "", slices.Clone(c.Levels)
	}
	d, ok := s.cfg.Lookup(c.Knob)
	switch {
	case !ok:
		return "not in the catalogue", nil
	case d.Advise:
		return "only ever reported: " + d.Risk, nil
	case d.Disturbance > s.cfg.AllowedDisturbance:
		return fmt.Sprintf("disturbs running traffic (class d%d, allowed is d%d)", d.Disturbance,
			s.cfg.AllowedDisturbance), nil
	}
	for _, v := range c.Levels {
		canonical, err := d.Normalize(v)
		if err != nil {
			reason = err.Error()
			continue
		}
		levels = append(levels, canonical)
	}
	if len(levels) == 0 {
		return reason, nil
	}
	return "", levels
}

// refusal reports whether an error is a refusal by the host, with its reason: missing, not
// permitted, not supported and not accepted are answers.
//
// Any other error (a lost connection, a full disk under the journal) means that the host cannot be
// trusted to undo, and ends the experiment.
func refusal(err error) (string, bool) {
	for _, answer := range []error{fs.ErrNotExist, fs.ErrPermission, knob.ErrNotSupported, knob.ErrUnknown,
		knob.ErrInvalid, errAlready} {
		if errors.Is(err, answer) {
			return err.Error(), true
		}
	}
	return "", false
}

// refusedApply reports whether a host refused to apply a setting, with its reason.
func refusedApply(err error) (string, bool) {
	var apply *applyError
	if !errors.As(err, &apply) {
		return "", false
	}
	return refusal(apply.err)
}

// equal compares values as the kernel does: white space between numbers does not matter.
func equal(a, b knob.Value) bool {
	return slices.Equal(strings.Fields(string(a)), strings.Fields(string(b)))
}

// trialsEnd returns when a trial of an arm with the given number of settings must end, so that the
// kept set can still be confirmed.
//
// The reserve is the shortest confirmation, the pairs of the first look. A confirmation that needs
// more looks without the time for them leaves no confirmed set, and everything is undone.
func (s *session) trialsEnd(settings int) time.Duration {
	if s.cfg.Budget <= 0 {
		return 0
	}
	reserve := s.pairsTime(s.plan.Looks[0].Pairs, settings)
	// Never zero or less, which would mean no bound.
	return max(s.cfg.Budget-reserve, 1)
}
