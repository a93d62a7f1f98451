package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
)

// TestTend: a journal that stays open takes back what expires meanwhile, and only that.
func TestTend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &bubbleClock{start: time.Now()}
		mem, k := durable.NewMem(), host()
		o := options(mem, k, nil)
		o.Boottime, o.Mode = clock.Boottime, journal.Deadline
		j := open(t, o)
		apply(t, j, journal.Request{For: 2 * time.Second}, mtu, "9000")
		apply(t, j, journal.Request{For: time.Hour}, ring, "512")
		j.Close()

		o.Mode = journal.Lease
		holder := open(t, o)
		apply(t, holder, journal.Request{}, rmem, "B")
		var reported atomic.Int64
		holder.Tend(func(outcomes []journal.Outcome, err error) {
			if err != nil {
				t.Error(err)
			}
			reported.Add(int64(len(outcomes)))
		})
		if err := holder.OnTrial(); !errors.Is(err, journal.ErrOnTrial) || !strings.Contains(err.Error(), "change 0001 of") {
			t.Error(err)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if k.get(mtu) != "1500" || k.get(ring) != "512" || k.get(rmem) != "B" || reported.Load() != 1 {
			t.Errorf("after the deadline: %v, %d outcomes", k.clone().values, reported.Load())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if err := holder.OnTrial(); err != nil || k.get(ring) != "256" {
			t.Errorf("%v, %v", err, k.clone().values)
		}
		holder.Close()
	})
}

// stopped waits until a process that got SIGSTOP has stopped.
func stopped(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(journaltest.Patience); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || time.Now().After(end) {
			t.Fatalf("%q, %v", b, err)
		}
		if _, state, _ := strings.Cut(string(b), ") "); strings.HasPrefix(state, "T") {
			return
		}
	}
}

// TestUnguarded: a trial whose guard was killed is shown as such, and recovered before its
// deadline.
func TestUnguarded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	o := processOptions(s.knobs, s.state)
	o.Mode, o.Guard = journal.Deadline, &journal.GuardOptions{Exe: os.Args[0], Args: []string{s.knobs},
		Handshake: journaltest.Patience}
	j := open(t, o)
	apply(t, j, journal.Request{For: time.Hour}, rmem, "B")
	guard := guardOf(t, j)
	j.Close()
	again := open(t, o)
	state := func() (journal.State, bool) {
		t.Helper()
		changes := again.Changes()
		if len(changes) != 1 {
			t.Fatalf("%+v", changes)
		}
		return changes[0].State, changes[0].Unguarded
	}
	if state, unguarded := state(); state != journal.Trial || unguarded {
		t.Errorf("with its guard: %s, unguarded %v", state, unguarded)
	}
	if out, err := again.Recover(t.Context()); err != nil || len(out) != 0 {
		t.Errorf("recovery of a trial that is guarded: %+v, %v", out, err)
	}
	if err := syscall.Kill(guard.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped(t, guard.PID())
	if state, unguarded := state(); state != journal.Trial || !unguarded {
		t.Errorf("its guard stopped: %s, unguarded %v", state, unguarded)
	}
	kill(t, guard)
	if state, unguarded := state(); state != journal.Trial || !unguarded {
		t.Errorf("without its guard: %s, unguarded %v", state, unguarded)
	}
	out, err := again.Recover(t.Context())
	if err != nil || len(out) != 1 || out[0].Change.Note != "undone by recovery: its guard was killed or stopped" {
		t.Errorf("%+v, %v", out, err)
	}
	if s.values()[rmem] != "A" {
		t.Error(s.values())
	}
}

// TestStoppedGuardIsReplaced: a writer that lives replaces a guard that a signal has stopped, and
// ends it: one that continues later would believe that its writer is gone.
func TestStoppedGuardIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	o := processOptions(s.knobs, s.state)
	o.Guard = &journal.GuardOptions{Exe: os.Args[0], Args: []string{s.knobs}, Handshake: journaltest.Patience}
	j := open(t, o)
	apply(t, j, journal.Request{For: time.Hour}, rmem, "B")
	first := guardOf(t, j)
	if err := syscall.Kill(first.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped(t, first.PID())
	apply(t, j, journal.Request{For: time.Hour}, mtu, "9000")
	<-first.Exited()
	second := guardOf(t, j)
	if second == first {
		t.Fatal("the stopped guard was not replaced")
	}
	if got := s.values(); got[rmem] != "B" || got[mtu] != "9000" {
		t.Errorf("the trial ended with its first guard: %v", got)
	}
	kill(t, second)
	j.Tend(nil)
	for end := time.Now().Add(journaltest.Patience); guardOf(t, j) == second; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing replaced the second guard")
		}
	}
	if changes := j.Changes(); len(changes) != 2 || changes[0].Unguarded || changes[1].Unguarded {
		t.Errorf("under the third guard: %+v", changes)
	}
	j.Close()
	<-guardOf(t, j).Exited()
	if diff := cmp.Diff(host().values, s.values()); diff != "" {
		t.Error(diff)
	}
}

// TestGuardIsReplacedAtLast: a writer that cannot start another guard at once, as on a host that is
// short of memory, tries again.
func TestGuardIsReplacedAtLast(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	program := filepath.Join(t.TempDir(), "guard")
	link := func() error { return os.Symlink(os.Args[0], program) }
	if err := link(); err != nil {
		t.Fatal(err)
	}
	o := processOptions(s.knobs, s.state)
	o.Guard = &journal.GuardOptions{Exe: program, Args: []string{s.knobs}, Handshake: journaltest.Patience}
	j := open(t, o)
	apply(t, j, journal.Request{For: time.Hour}, rmem, "B")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	kill(t, guardOf(t, j))
	failed := make(chan error, 1)
	j.Tend(func(_ []journal.Outcome, err error) {
		select {
		case failed <- err:
		default:
		}
	})
	if err := <-failed; !errors.Is(err, journal.ErrUnguarded) {
		t.Error(err)
	}
	if err := link(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(journaltest.Patience); j.Guard() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the trial stays without a guard")
		}
	}
	j.Close()
}
