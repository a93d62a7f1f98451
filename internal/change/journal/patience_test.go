package journal_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
)

// TestPauseIsOneStep: a wait whose timer elapsed while the process was paused goes on, and an
// answer that is there at the end of the wait counts.
func TestPauseIsOneStep(t *testing.T) {
	clock := func(ticks int) chan time.Time {
		c := make(chan time.Time, ticks)
		for range ticks {
			c <- time.Time{}
		}
		return c
	}
	ready, ended := make(chan int, 1), make(chan int)
	ready <- 7
	close(ended)
	for name, c := range map[string]struct {
		answer chan int
		ticks  int
		want   int
		ok     bool
	}{
		"an answer at once": {ready, 0, 7, true},
		"no answer":         {make(chan int), 16, 0, false},
		"an end":            {ended, 0, 0, true},
	} {
		if got, ok := journal.AwaitSteps(c.answer, clock(c.ticks), 16); ok != c.ok || got != c.want {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
	}
	// The pause: 15 steps have passed at once, and the other side answers then.
	slow, steps := make(chan int), clock(15)
	go func() {
		for len(steps) > 0 {
			time.Sleep(time.Millisecond)
		}
		slow <- 8
	}()
	if got, ok := journal.AwaitSteps(slow, steps, 16); !ok || got != 8 {
		t.Errorf("an answer after a pause: %d, %t", got, ok)
	}
	both := make(chan int, 1)
	both <- 9
	for range 50 { // select takes either of two
		if got, ok := journal.AwaitSteps(both, clock(1), 1); !ok || got != 9 {
			t.Fatalf("an answer with the last step: %d, %t", got, ok)
		}
		both <- 9
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, ok := journal.AwaitFor(make(chan int), 2*time.Second); ok || time.Since(began) != 2*time.Second {
			t.Errorf("without an answer: %t after %v", ok, time.Since(began))
		}
		if _, ok := journal.AwaitFor(make(chan int), 0); ok || time.Since(began) != 2*time.Second {
			t.Errorf("without patience: %t after %v", ok, time.Since(began))
		}
	})
}

// TestWorkingGuardHasLonger: the writer waits for a guard whose start takes long, as in a starved
// guest, while it uses its processor. It gives one up that hangs, or that works for a minute.
func TestWorkingGuardHasLonger(t *testing.T) {
	const patience = 10 * time.Second
	for name, c := range map[string]struct {
		works, answers time.Duration // how long it uses its processor, and when it answers
		waited         time.Duration
		want           string
	}{
		"slow":         {35 * time.Second, 35 * time.Second, 35 * time.Second, ""},
		"hangs":        {0, time.Hour, patience, "no answer within 10s"},
		"hangs later":  {15 * time.Second, time.Hour, 3 * patience, "no answer within 30s"},
		"never ready":  {time.Hour, time.Hour, 6 * patience, "no answer within 1m0s"},
		"busy and not": {25 * time.Second, 29 * time.Second, 29 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			ready, guard := io.Pipe()
			defer ready.Close()
			time.AfterFunc(c.answers, func() { _, _ = io.WriteString(guard, "ready\n") })
			began := time.Now()
			err := journal.Handshake(t.Context(), ready, patience, func() uint64 {
				return uint64(min(time.Since(began), c.works))
			})
			if waited := time.Since(began); waited != c.waited || fmt.Sprint(err) != cmp.Or(c.want, "<nil>") {
				t.Errorf("%s: %v after %v, want %q after %v", name, err, waited, c.want, c.waited)
			}
		})
	}
}

// late is a pipe to a guard whose first deadlines pass before it is written to, as those of a
// writer that is paused in between.
type late struct {
	deadlines, passed int
	got               []byte
}

func (l *late) SetWriteDeadline(time.Time) error { l.deadlines++; return nil }

func (l *late) Write(b []byte) (int, error) {
	if l.deadlines <= l.passed {
		l.got = append(l.got, b[0])
		return 1, os.ErrDeadlineExceeded
	}
	l.got = append(l.got, b...)
	return len(b), nil
}

func (l *late) Close() error { return nil }

// TestPausedWriterReachesItsGuard: a message whose deadline passed while the writer was paused is
// written all the same, once; a pipe that stays full is an error.
func TestPausedWriterReachesItsGuard(t *testing.T) {
	for passed, want := range map[int]error{0: nil, 1: nil, 3: nil, 16: os.ErrDeadlineExceeded} {
		l := &late{passed: passed}
		err := journal.SendTo(l, "extend 12345678901234567890")
		if !errors.Is(err, want) || want == nil && (err != nil || string(l.got) != "extend 12345678901234567890\n") {
			t.Errorf("%d deadlines passed: %q, %v", passed, l.got, err)
		}
	}
}
