package conduct

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/report"
)

func (s *simulated) Seen(host string) time.Time {
	s.away.Lock()
	defer s.away.Unlock()
	switch {
	case s.seen != nil:
		return s.seen(host)
	case s.cut[host]:
		return time.Time{}
	}
	return time.Now()
}

func (s *simulated) gone(host string) bool {
	s.away.Lock()
	defer s.away.Unlock()
	return s.cut[host]
}

// cutOff cuts hosts off, or lets all return.
func (s *simulated) cutOff(hosts ...string) {
	s.away.Lock()
	defer s.away.Unlock()
	s.cut = make(map[string]bool)
	for _, h := range hosts {
		s.cut[h] = true
	}
}

// within waits until a rollout is as wanted, for an hour of the virtual clock.
func within(t *testing.T, c *Conductor, id, what string, ok func(*report.FleetRolloutDocument) bool) bool {
	t.Helper()
	var doc *report.FleetRolloutDocument
	for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		if doc, err = c.Document(id); err != nil {
			t.Fatal(err)
		}
		if ok(doc) {
			return true
		}
	}
	t.Errorf("not %s: %+v", what, doc)
	return false
}

// soaking reports whether a rollout soaks.
func soaking(doc *report.FleetRolloutDocument) bool { return doc.Phase == string(rollout.Soaking) }

func again(t *testing.T, c *Conductor, id string, kind Kind) *Draft {
	t.Helper()
	d, err := c.Again(t.Context(), id, kind, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestUndoWithoutAll: a host that gave no report when an undo was signed keeps no other host from
// being undone. It is undone when it is back, by the order that was signed with its try.
func TestUndoWithoutAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(12)
		c, stop := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		// Each stage soaks for longer than silence speaks against a change.
		d.Plan.Timing.Soak, d.Plan.Timing.LongSoak = 5*quick.Deadline, 5*quick.Deadline
		begin(t, c, d)
		done := func(doc *report.FleetRolloutDocument) bool { return doc.Phase == "done" }
		within(t, c, d.Plan.ID, "done", done)
		var cut string
		for i, h := range d.Plan.Hosts {
			if d.Plan.Stage[i] == rollout.Pairs {
				cut = h.ID
			}
		}
		s.cutOff(cut)
		begin(t, c, again(t, c, d.Plan.ID, Undo))
		if !within(t, c, d.Plan.ID, "undone elsewhere", func(*report.FleetRolloutDocument) bool {
			return s.holding(before) == len(all)-1
		}) {
			t.Errorf("%d of %d hosts hold the value from before", s.holding(before), len(all))
		}
		s.cutOff()
		within(t, c, d.Plan.ID, "undone there", func(*report.FleetRolloutDocument) bool {
			return s.holding(before) == len(all)
		})
		until(t, c, d.Plan.ID, "done")
		stop()
	})
}

// TestTwoDrafts: of two rollouts that were planned at once over the same hosts, one begins.
func TestTwoDrafts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(4)
		c, _ := s.conduct(t, durable.NewMem())
		one, two := draft(t, c, all), draft(t, c, all)
		begin(t, c, one)
		orders, err := two.Sign(func(e *order.Envelope) { e.Sign("ann", ann) })
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Begin(two, orders, "ann"); !errors.Is(err, ErrNotNow) || !strings.Contains(err.Error(), one.Plan.ID) {
			t.Errorf("two rollouts over the same hosts: %v", err)
		}
		until(t, c, one.Plan.ID, "done")
	})
}

// TestPlannedUndo: who plans an undo, and signs nothing, changes nothing of a rollout that runs.
func TestPlannedUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(8)
		c, stop := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		begin(t, c, d)
		for {
			doc, err := c.Document(d.Plan.ID)
			if err != nil {
				t.Fatal(err)
			}
			if doc.Phase == "done" {
				break
			}
			if doc.Phase == "halted" {
				t.Fatalf("%+v", doc)
			}
			again(t, c, d.Plan.ID, Undo)
			time.Sleep(time.Millisecond)
		}
		stop()
	})
}

// TestResumedInTheMiddle: a rollout that is halted in the middle of a stage goes on to its end
// after a person has resumed it.
func TestResumedInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(30)
		for i := range all { // two of a rack are not changed at once
			all[i].Host.Rack = fmt.Sprint("r", i%6)
		}
		c, stop := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		begin(t, c, d)
		within(t, c, d.Plan.ID, "in the middle of a wave", func(doc *report.FleetRolloutDocument) bool {
			n := 0
			for _, h := range doc.Hosts {
				if h.Stage == "wave 50 %" && h.State == string(rollout.Committed) {
					n++
				}
			}
			if n > 0 && doc.Phase == "ordering" {
				if err := c.Halt(d.Plan.ID, "ann"); err != nil {
					t.Fatal(err)
				}
				t.Logf("%d committed: %v", n, doc.States)
				return true
			}
			return false
		})
		within(t, c, d.Plan.ID, "resumable", func(doc *report.FleetRolloutDocument) bool { return doc.Resumable })
		begin(t, c, again(t, c, d.Plan.ID, Resume))
		until(t, c, d.Plan.ID, "done")
		if n := s.holding(after); n != len(all) {
			t.Errorf("%d of %d hosts hold the new value", n, len(all))
		}
		stop()
	})
}

// TestNoReadingBefore: where a host has no reading from before a stage, none of the stage is
// changed, because nothing could judge it. A person resumes.
func TestNoReadingBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(30)
		c, stop := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		d.Plan.Timing.Soak = time.Second
		var cut string
		for i, h := range d.Plan.Hosts {
			if d.Plan.Stage[i] == rollout.Wave50 && !slices.Contains(d.Plan.Mate, i) {
				cut = h.ID
			}
		}
		begin(t, c, d)
		within(t, c, d.Plan.ID, "soaking", soaking)
		s.cutOff(cut)
		within(t, c, d.Plan.ID, "halted", func(doc *report.FleetRolloutDocument) bool { return doc.Phase == "halted" })
		doc, _ := c.Document(d.Plan.ID)
		for _, h := range doc.Hosts {
			if h.Stage == "wave 50 %" && h.State != string(rollout.Pending) {
				t.Errorf("%s is %s: %s", h.ID, h.State, doc.Halted)
			}
		}
		s.cutOff()
		within(t, c, d.Plan.ID, "resumable", func(doc *report.FleetRolloutDocument) bool { return doc.Resumable })
		begin(t, c, again(t, c, d.Plan.ID, Resume))
		until(t, c, d.Plan.ID, "done")
		stop()
	})
}

// TestGoneForGood: a person who resumes leaves out a host that does not answer; the others go on.
func TestGoneForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(30)
		c, stop := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		d.Plan.Timing.Soak = time.Second
		var waits, changed string
		for i, h := range d.Plan.Hosts {
			switch {
			case d.Plan.Stage[i] == rollout.WaveAll && waits == "":
				waits = h.ID
			case d.Plan.Stage[i] == rollout.Experiment:
				changed = h.ID
			}
		}
		begin(t, c, d)
		within(t, c, d.Plan.ID, "soaking", soaking)
		s.cutOff(waits, changed)
		for range 3 { // what is halted because of them is resumed without them
			within(t, c, d.Plan.ID, "resumable or done", func(doc *report.FleetRolloutDocument) bool {
				return doc.Resumable || doc.Phase == "done"
			})
			if doc, err := c.Document(d.Plan.ID); err == nil && doc.Resumable {
				resume := again(t, c, d.Plan.ID, Resume)
				if len(resume.Missing) != 2 {
					t.Errorf("left out: %+v", resume.Missing)
				}
				begin(t, c, resume)
			}
		}
		doc, err := c.Document(d.Plan.ID)
		if err != nil || doc.Phase != "done" || doc.States["committed"] != len(all)-2 || doc.States["lost"] != 2 {
			t.Errorf("%+v, %v", doc, err)
		}
		stop()
	})
}

// TestHarmBeside: harm on one host is taken back, also while another host still measures.
func TestHarmBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(4)
		for i := range all { // each is of a class of its own, so all measure at the same time
			all[i].Host.Class = fmt.Sprint("c", i)
		}
		s.effect = 0.7
		s.seen = func(string) time.Time { return time.Now() }
		c, stop := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		s.cutOff("h2") // it lives, and its orders are lost
		begin(t, c, d)
		within(t, c, d.Plan.ID, "done", func(doc *report.FleetRolloutDocument) bool { return doc.Phase == "done" })
		// An experiment that was running leaves its trial to its deadline, and there to the guard of its
		// host; the simulated hosts have none.
		time.Sleep(time.Hour)
		for _, h := range all {
			j, err := s.journal(h.Host.ID)
			if err == nil {
				_, err = j.Recover(t.Context())
				err = errors.Join(err, j.Close())
			}
			if err != nil {
				t.Error(err)
			}
		}
		if n := s.holding(before); n != len(all) {
			t.Errorf("%d of %d hosts hold the value from before", n, len(all))
		}
		stop()
	})
}

// TestLostIsUndone: a host that is away while a rollout is undone gets its undo when it is back,
// also where the hub has started again meanwhile.
func TestLostIsUndone(t *testing.T) {
	for name, restart := range map[string]bool{"same hub": false, "restarted": true} {
		synctest.Test(t, func(t *testing.T) {
			s, all := simulate(6)
			disk := durable.NewMem()
			c, stop := s.conduct(t, disk)
			d := draft(t, c, all)
			begin(t, c, d)
			until(t, c, d.Plan.ID, "done")
			undo := again(t, c, d.Plan.ID, Undo)
			s.cutOff("h4")
			begin(t, c, undo)
			until(t, c, d.Plan.ID, "done")
			if n := s.holding(after); n != 1 {
				t.Errorf("%s: %d hosts hold the new value", name, n)
			}
			if c.Taken()["h4"] != d.Plan.ID || len(c.Taken()) != 1 {
				t.Errorf("%s: free for another rollout: %v", name, c.Taken())
			}
			if restart {
				stop()
				c, stop = s.conduct(t, disk)
			}
			s.cutOff()
			within(t, c, d.Plan.ID, name+": undone", func(*report.FleetRolloutDocument) bool {
				return s.holding(before) == len(all)
			})
			until(t, c, d.Plan.ID, "done")
			if len(c.Taken()) > 0 {
				t.Errorf("%s: taken for ever: %v", name, c.Taken())
			}
			stop()
		})
	}
}

// TestLyingHost: what one host reports counts for this host alone. It neither uses up the epochs of
// the others, nor keeps them from being undone where the hub has lost the rollout.
func TestLyingHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(4)
		s.lie = func(host string, r *executor.Report) {
			if host == "h1" {
				r.Epoch = math.MaxUint64
			}
		}
		c, stop := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		for i, h := range d.Plan.Hosts {
			for _, o := range d.Orders(i) {
				if liar := h.ID == "h1"; liar != (o.Epoch == math.MaxUint64) {
					t.Fatalf("order %s of host %s has the epoch %d", o.ID, h.ID, o.Epoch)
				}
			}
		}
		begin(t, c, d)
		until(t, c, d.Plan.ID, "done")
		stop()
		s.lie = func(host string, r *executor.Report) {
			if host == "h1" {
				r.Orders = []executor.Standing{{Order: rollout.OrderID(d.Plan.ID, host, order.Try, 998), Rollout: d.Plan.ID,
					Verb: order.Try, Answer: order.Answer{Code: order.Committed}, Knob: "sysctl:net.core.wmem_max", To: "1"}}
			}
		}
		c, stop = s.conduct(t, durable.NewMem())
		undo, err := c.UndoLost(t.Context(), d.Plan.ID, all, time.Hour)
		if err != nil || undo.Knob != rmem || undo.Generation != 1 || len(undo.Missing) != 1 ||
			!strings.Contains(undo.Missing[0].Reason, "another change") {
			t.Fatalf("%+v, %v", undo, err)
		}
		begin(t, c, undo)
		until(t, c, d.Plan.ID, "done")
		if n := s.holding(before); n != len(all)-1 {
			t.Errorf("%d of %d hosts hold the value from before", n, len(all))
		}
		stop()
	})
}

// TestOldSign: a sign of life from before a trial confirms nothing, also where the host's answer
// comes before the hub has looked at it again.
func TestOldSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(4)
		c, err := Open(Options{Dir: "/rollouts", FS: durable.NewMem(), Hosts: s, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		d := draft(t, c, all)
		begin(t, c, d) // only this test conducts it
		r, err := c.find(d.Plan.ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		spoke := time.Now()
		s.seen = func(string) time.Time { return spoke }
		time.Sleep(time.Second)
		signs := func() []rollout.Event { r.mu.Lock(); defer r.mu.Unlock(); return r.signs() }
		err = errors.Join(r.note(rollout.Event{Kind: rollout.Sent, Host: 0, Verb: order.Try}),
			r.note(rollout.Event{Kind: rollout.Answered, Host: 0, Verb: order.Try, Code: order.InTrial}))
		if old := signs(); err != nil || len(old) > 0 {
			t.Errorf("spoke a second before the trial, and counts as alive in it: %+v, %v", old, err)
		}
		time.Sleep(quick.Settle)
		spoke = time.Now()
		if alive := signs(); len(alive) != 1 || alive[0].Host != 0 {
			t.Errorf("spoke in the trial: %+v", alive)
		}
	})
}
