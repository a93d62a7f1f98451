package sys_test

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// TestSleeps checks that no sleep is longer than asked for where the time has passed, and that
// repeated ones reach it: a signal may end each of them early.
func TestSleeps(t *testing.T) {
	for name, sleep := range map[string]func(time.Duration){"ordinary": sys.SleepUntil, "kept": sys.SleepUntilKept} {
		sleep(0)
		sleep(sys.Monotonic() - time.Hour)
		at, calls := sys.Monotonic()+2*time.Millisecond, 0
		for ; sys.Monotonic() < at; calls++ {
			sleep(at)
		}
		if calls > 100 {
			t.Errorf("%s: %d sleeps for two milliseconds", name, calls)
		}
	}
}
