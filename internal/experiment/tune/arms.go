package tune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// placed is one setting on one side, with the value it replaced.
//
// from is the value before the first change of this knob, not before the last one: the host goes
// back to it, and a report shows it.
type placed struct {
	side    Side
	setting knob.Setting
	from    knob.Value
	why     string
}

// same reports whether two settings are equal.
func (p placed) same(q placed) bool { return p.side == q.side && p.setting == q.setting }

// arm is a configuration under test: settings on top of the original, in the order of application.
//
// The order matters: one setting may need another (segmentation needs scatter-gather), and undoing
// reverses it.
type arm []placed

// with returns the arm with one more setting. It replaces an earlier setting of the same knob and
// keeps its original value, so that no arm writes a knob twice.
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

// without returns the arm without its i-th setting. The result shares no memory with the old arm,
// which the other half of a comparison still uses.
func (a arm) without(i int) arm {
	out := make(arm, 0, len(a))
	return append(append(out, a[:i]...), a[i+1:]...)
}

// applied is a setting in force.
type applied struct {
	placed
	id string
	// asked says that its host was asked to commit it. Only the answer shows whether it did, and a
	// committed change has no guard that undoes it.
	asked bool
}

// switchTo puts exactly the settings of the arm in force. It undoes changes newest first and only
// as far as the two arms differ, so every undo finds the value that its own change wrote.
//
// Most comparisons differ from the present in one setting, so a switch usually costs one undo or
// one apply. Each switch from arm A to arm B makes the change again; that costs journal records,
// and proves each time that the change can be undone.
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
		// A host that failed half-way returns what it changed; record that before anything else can
		// fail.
		for _, id := range ids {
			s.applied = append(s.applied, applied{placed: p, id: id})
		}
		if err != nil {
			return &applyError{p, err}
		}
		if len(ids) == 0 {
			return &applyError{p, errAlready}
		}
		// The request had one setting. With several ids it would be unclear which one undoes it.
		if len(ids) > 1 {
			return fmt.Errorf("apply %s %s=%s: the host returned %d change ids, want 1", p.side, p.setting.Knob,
				p.setting.Value, len(ids))
		}
	}
	return nil
}

// errAlready reports that a host had nothing to change.
var errAlready = errors.New("has that value already")

// applyError reports a setting that its host did not apply.
type applyError struct {
	placed
	err error
}

func (e *applyError) Error() string {
	return fmt.Sprintf("apply %s %s=%s: %v", e.side, e.setting.Knob, e.setting.Value, e.err)
}

func (e *applyError) Unwrap() error { return e.err }

// unwind undoes everything, newest first, even if the caller's context has ended. It tries a change
// that cannot be undone once more, then leaves it to the guard of its host, and still undoes the
// others.
//
// The clean-up has a deadline of its own, Config.UndoTimeout, and each host all of it: the usual
// reason for it is that the caller's context has ended, and an unreachable host must not keep the
// other one changed. One more try is enough: a lasting error is either a value that another program
// has set, which must not be overwritten, or an unreachable host, whose own guard reverts its
// trials.
func (s *session) unwind(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	waited := map[Side]time.Duration{}
	undo := func(change applied) error {
		began := time.Now()
		defer func() { waited[change.side] += time.Since(began) }()
		ctx, cancel := context.WithTimeout(ctx, s.cfg.UndoTimeout-waited[change.side])
		defer cancel()
		return s.hosts[change.side].Undo(ctx, change.id)
	}
	var problems []error
	var left []applied
	for i := len(s.applied) - 1; i >= 0; i-- {
		change := s.applied[i]
		err := undo(change)
		if err != nil {
			err = undo(change)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("undo %s %s: %w", change.side, change.setting.Knob, err))
			left = append([]applied{change}, left...)
		}
	}
	s.applied = left
	return errors.Join(problems...)
}

// askedToStay lists the changes in force that a host was asked to commit.
func (s *session) askedToStay() []Change {
	var out []Change
	for _, a := range s.applied {
		if a.asked {
			out = append(out, a.change())
		}
	}
	return out
}

// change returns a setting in force for the record.
func (a applied) change() Change {
	return Change{Knob: a.setting.Knob, Side: a.side, From: a.from, To: a.setting.Value, ID: a.id}
}

// commit makes everything in force stay.
//
// It is not atomic over two hosts. If the second one fails, the run ends in unwind, which also
// undoes the committed changes of the first: journals undo committed changes like any other. If a
// host is lost in between, or this process is killed, only the record of the run says that
// committed changes may have stayed. So the record is written before the first host commits.
func (s *session) commit(ctx context.Context) error {
	ids := map[Side][]string{}
	for i, change := range s.applied {
		s.applied[i].asked = true
		ids[change.side] = append(ids[change.side], change.id)
	}
	s.checkpoint()
	// The far side first: a lost connection would revert its changes.
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
