package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/standstill"
)

// Given calls play with a span until its result is right, that is nil. It repeats play, each time
// with twice the span, for one reason only: this process could not work for a quarter of the span
// meanwhile, because it was stopped, or because its threads waited for a processor. A result that
// is wrong although the process could work fails the test, and so does one that is wrong with a
// span of more than longest.
func Given(t testing.TB, span, longest time.Duration, play func(span time.Duration) error) {
	t.Helper()
	for ; ; span *= 2 {
		stop := watch(span / 50)
		err := play(span)
		lost := stop()
		switch {
		case err == nil:
			return
		case lost < span/4 || span > longest:
			t.Errorf("%v (this process lost %v of a span of %v)", err, lost.Round(time.Millisecond), span)
			return
		}
		t.Logf("no verdict, this process lost %v of a span of %v: %v", lost.Round(time.Millisecond), span, err)
	}
}

// watch begins to look at this process at every tick. Stop returns the time that it lost: the
// longest time between two looks, or the time that its threads waited for a processor.
func watch(tick time.Duration) (stop func() time.Duration) {
	before := waited()
	end := standstill.Watch(tick, nil)
	return func() time.Duration {
		return max(end(), waited()-before)
	}
}

// waited returns the time that the threads of this process have been ready to run without a
// processor, the second number of schedstat (sched-stats.rst); 0 where the kernel does not count
// it.
func waited() time.Duration {
	names, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		var running, waiting int64
		if n, err := fmt.Sscan(string(b), &running, &waiting); err == nil && n == 2 {
			sum += time.Duration(waiting)
		}
	}
	return sum
}
