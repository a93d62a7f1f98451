package tune

import (
	"context"
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
)

// placed is one setting on one side, with the value it replaced.
//
// From is the value before the first change of this knob, not before the last one: it is what the
// host goes back to and what a report shows.
type placed struct {
	side    Side
	setting knob.Setting
	from    knob.Value
	why     string
}

// same tells whether two settings ask for the same.
func (p placed) same(q placed) bool { return p.side == q.side && p.setting == q.setting }

// arm is a configuration under test: settings on top of the original, in the order of application.
//
// The order matters: one setting may need another (segmentation needs scatter-gather), and undoing
// goes the same way backwards.
type arm []placed

// with gives the arm with one more setting. The same knob kept earlier is replaced, so that no arm
// writes a knob twice, and its original value is remembered.
func (a arm) with(p placed) arm {
	out := make(arm, 0, len(a)+1)
	for _, q := range a {
		if q.side == p.side && q.setting.Knob == p.setting.Knob {
			p.from = q.from
			continue
		}
		out = append(out, q)
	}
	return append(out, p)
}

// without gives the arm without its i-th setting.
//
// The result shares nothing with the old arm, which the other half of a comparison still holds.
func (a arm) without(i int) arm {
	out := make(arm, 0, len(a))
	return append(append(out, a[:i]...), a[i+1:]...)
}

// applied is a setting in force.
type applied struct {
	placed
	id string
}

// switchTo makes exactly the settings of the arm be in force. Changes are taken back newest first
// and only as far as the two arms differ, so every undo finds the value that its own change wrote.
//
// Most comparisons differ from the present in one setting, so that a switch costs one undo or one
// apply and not a rebuilding of everything. A change is made anew whenever arm B follows arm A;
// that costs journal records, and proves each time that it can be undone.
func (s *session) switchTo(ctx context.Context, target arm) error {
	common := 0
	for common < len(target) && common < len(s.applied) && s.applied[common].same(target[common]) {
		common++
	}
	begin := s.cfg.Now()
	defer func() { s.changing += s.cfg.Now().Sub(begin) }()
	for len(s.applied) > common {
		s.changed++
		last := s.applied[len(s.applied)-1]
		if err := s.hosts[last.side].Undo(ctx, last.id); err != nil {
			return fmt.Errorf("undo %s %s: %w", last.side, last.setting.Knob, err)
		}
		s.applied = s.applied[:len(s.applied)-1]
	}
	for _, p := range target[common:] {
		s.changed++
		ids, err := s.hosts[p.side].Apply(ctx, p.why, p.setting)
		// A host that failed half-way tells what it has changed; it is on the list before anything
		// else can go wrong.
		for _, id := range ids {
			s.applied = append(s.applied, applied{p, id})
		}
		if err != nil {
			return &applyError{p, err}
		}
		if len(ids) == 0 {
			return &applyError{p, errAlready}
		}
		// One setting was asked for. A host that tells more changes leaves it open which id undoes
		// it.
		if len(ids) > 1 {
			return fmt.Errorf("apply %s %s=%s: host told %d change ids, want 1", p.side, p.setting.Knob,
				p.setting.Value, len(ids))
		}
	}
	return nil
}

// errAlready says that a host had nothing to change.
var errAlready = errors.New("has that value already")

// applyError is a setting that its host did not apply.
type applyError struct {
	placed
	err error
}

func (e *applyError) Error() string {
	return fmt.Sprintf("apply %s %s=%s: %v", e.side, e.setting.Knob, e.setting.Value, e.err)
}

func (e *applyError) Unwrap() error { return e.err }

// unwind takes back everything, newest first, whatever has happened to the caller's context. A
// change that cannot be undone is tried once more and then left to the host's guard, and the others
// are still taken back.
//
// The clean-up has a deadline of its own, Config.UndoTimeout, because the usual reason for it is a
// caller whose context is over, and because a far host that no longer answers must not keep the
// near one changed. Once more is enough: an error that stays is either a value that somebody else
// has set, which must not be overwritten, or a host that is gone, whose own guard takes its trials
// back.
func (s *session) unwind(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.UndoTimeout)
	defer cancel()
	var problems []error
	var left []applied
	for i := len(s.applied) - 1; i >= 0; i-- {
		change := s.applied[i]
		host := s.hosts[change.side]
		err := host.Undo(ctx, change.id)
		if err != nil {
			err = host.Undo(ctx, change.id)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("undo %s %s: %w", change.side, change.setting.Knob, err))
			left = append([]applied{change}, left...)
		}
	}
	s.applied = left
	return errors.Join(problems...)
}

// commit makes everything in force stay.
//
// A commit is not atomic over two hosts. When the second one fails, the error makes the run end in
// unwind, which takes back the committed changes of the first as well: journals undo committed
// changes like any other.
func (s *session) commit(ctx context.Context) error {
	ids := map[Side][]string{}
	for _, change := range s.applied {
		ids[change.side] = append(ids[change.side], change.id)
	}
	// The far side first: it is the one that a lost connection would take back.
	for _, side := range []Side{Far, Near} {
		if len(ids[side]) == 0 {
			continue
		}
		if err := s.hosts[side].Commit(ctx, ids[side]...); err != nil {
			return fmt.Errorf("commit %s: %w", side, err)
		}
	}
	return nil
}
