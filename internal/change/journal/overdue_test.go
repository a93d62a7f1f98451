package journal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// TestTakeOverdue: any command takes back what a guard has failed, by CLOCK_BOOTTIME, and nothing
// else.
func TestTakeOverdue(t *testing.T) {
	works, gone := true, false
	cases := map[string]struct {
		mode  journal.Mode
		guard *bool         // nil: the journal does not know the guard
		after time.Duration // since the trial began, which lasts a minute
		date  time.Duration // by which the date jumps meanwhile
		held  bool          // another process has the journal
		back  bool
	}{
		"before the deadline": {mode: journal.Deadline, guard: &gone, after: time.Minute - 1},
		"guard at work":       {mode: journal.Deadline, guard: &works, after: time.Minute + 4*time.Second},
		"guard stopped":       {mode: journal.Deadline, guard: &gone, after: time.Minute, back: true},
		"guard frozen": {mode: journal.Deadline, guard: &works, after: time.Minute + 5*time.Second,
			back: true},
		"guard unknown": {mode: journal.Deadline, after: time.Minute + 5*time.Second, back: true},
		"date ten years on": {mode: journal.Deadline, guard: &gone, after: time.Minute - 1,
			date: 87660 * time.Hour},
		"date ten years back": {mode: journal.Deadline, guard: &gone, after: time.Minute,
			date: -87660 * time.Hour, back: true},
		"held":                            {mode: journal.Deadline, guard: &gone, after: time.Hour, held: true},
		"writer gone, guard at work":      {mode: journal.Lease, guard: &works, after: time.Hour},
		"writer and guard gone":           {mode: journal.Lease, guard: &gone, back: true},
		"writer works, guard just killed": {mode: journal.Lease, guard: &gone, after: time.Hour, held: true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			mem, k, c, now := durable.NewMem(), host(), &clock{}, dayOne()
			o := options(mem, k, c)
			o.Mode, o.Now = test.mode, func() time.Time { return now }
			o.GuardAlive = func(journal.Guardian) bool { return *test.guard }
			j := open(t, o)
			if test.guard != nil {
				j.ReportTo(nowhere{})
				j.Guard().Describe(journal.Guardian{PID: 4711})
			}
			apply(t, j, journal.Request{For: time.Minute}, rmem, "B")
			if !test.held {
				j.Close()
			}
			now = now.Add(test.date)
			c.advance(test.after)
			outcomes, err := journal.TakeOverdue(t.Context(), o, func() knob.Backend { return k })
			if err != nil || (len(outcomes) == 1) != test.back {
				t.Errorf("%+v, %v", outcomes, err)
			}
			if want := map[bool]string{true: "A", false: "B"}[test.back]; string(k.get(rmem)) != want {
				t.Errorf("the knob holds %s, want %s", k.get(rmem), want)
			}
			if notices := journal.TakeNotices(mem, o.Dir); (len(notices) == 1) != test.back {
				t.Errorf("notices: %q", notices)
			}
			again, err := journal.TakeOverdue(t.Context(), o, func() knob.Backend { return k })
			if err != nil || len(again) != 0 {
				t.Errorf("a second time: %+v, %v", again, err)
			}
		})
	}
}

// nowhere is a pipe to a guard that reads nothing.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error)      { return len(b), nil }
func (nowhere) Close() error                     { return nil }
func (nowhere) SetWriteDeadline(time.Time) error { return nil }

// TestTakeOverdueLeavesTheRest: what cannot be read is left to the commands that report it.
func TestTakeOverdueLeavesTheRest(t *testing.T) {
	mem, k := durable.NewMem(), host()
	o := options(mem, k, &clock{})
	backend := func() knob.Backend { return k }
	if outcomes, err := journal.TakeOverdue(t.Context(), o, backend); err != nil || len(outcomes) != 0 {
		t.Errorf("without a journal: %+v, %v", outcomes, err)
	}
	if _, err := mem.Stat(o.Dir); err == nil {
		t.Error("it made a state directory")
	}
	apply(t, open(t, o), journal.Request{}, rmem, "B")
	if err := durable.Replace(mem, "/state/journal.log", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if outcomes, err := journal.TakeOverdue(t.Context(), o, backend); err != nil || len(outcomes) != 0 {
		t.Errorf("a damaged journal: %+v, %v", outcomes, err)
	}
	if _, err := journal.History(mem, o.Dir); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("the damage is gone: %v", err)
	}
}

// TestHistoryPastDeadline: the guard takes a trial back while another process keeps the journal
// from it, so the history does not show a plain trial past the deadline.
func TestHistoryPastDeadline(t *testing.T) {
	const late = "past its deadline: the journal does not show yet that it went back"
	c := &clock{}
	o := options(durable.NewMem(), host(), c)
	o.Mode = journal.Deadline
	j := open(t, o)
	apply(t, j, journal.Request{For: time.Minute}, rmem, "B")
	for _, step := range []struct {
		after time.Duration
		note  string
	}{{time.Minute - 1, ""}, {time.Second, ""}, {time.Second, late}} {
		c.advance(step.after)
		if got := j.Changes()[0]; got.State != journal.Trial || got.Note != step.note {
			t.Errorf("%v later: %s, %q; want %q", step.after, got.State, got.Note, step.note)
		}
	}
	if _, err := j.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := j.Changes()[0]; got.State != journal.Undone || got.Note == late {
		t.Errorf("recovered: %s, %q", got.State, got.Note)
	}
	apply(t, j, journal.Request{For: time.Minute}, rmem, "B")
	if err := j.Commit(t.Context(), j.Changes()[1].ID); err != nil {
		t.Fatal(err)
	}
	if c.advance(time.Hour); j.Changes()[1].Note != "" {
		t.Errorf("committed: %q", j.Changes()[1].Note)
	}
}
