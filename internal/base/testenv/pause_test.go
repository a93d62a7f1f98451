package testenv

import (
	"errors"
	"testing"
	"time"
)

// failing records the failures of a test.
type failing struct {
	testing.TB
	failures int
}

func (f *failing) Helper()               {}
func (f *failing) Logf(string, ...any)   {}
func (f *failing) Errorf(string, ...any) { f.failures++ }

// TestGiven: a wrong result counts unless this process was stopped. For an hour no process is
// stopped, and none looks at itself every 20 ns, so the test does not depend on the machine.
func TestGiven(t *testing.T) {
	wrong := errors.New("wrong")
	for _, c := range []struct {
		name            string
		span            time.Duration
		play            func(n int) error
		played, failure int
	}{
		{"right at once", time.Hour, func(int) error { return nil }, 1, 0},
		{"wrong", time.Hour, func(int) error { return wrong }, 1, 1},
		{"stopped twice", time.Microsecond, func(n int) error {
			if n == 3 {
				return nil
			}
			time.Sleep(time.Millisecond)
			return wrong
		}, 3, 0},
	} {
		f, played := &failing{TB: t}, 0
		Given(f, c.span, time.Hour, func(time.Duration) error { played++; return c.play(played) })
		if played != c.played || f.failures != c.failure {
			t.Errorf("%s: played %d times, %d failures; want %d and %d", c.name, played, f.failures, c.played, c.failure)
		}
	}
	f, played := &failing{TB: t}, 0
	Given(f, time.Microsecond, 4*time.Microsecond, func(time.Duration) error {
		played++
		time.Sleep(time.Millisecond)
		return wrong
	})
	if played != 4 || f.failures != 1 {
		t.Errorf("always stopped: played %d times, %d failures", played, f.failures)
	}
}
