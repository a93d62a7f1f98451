package standstill_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/base/standstill"
)

// TestWatch lets a look take long on a simulated clock, as if the process stood still there.
func TestWatch(t *testing.T) {
	const tick = 10 * time.Millisecond
	for name, c := range map[string]struct {
		pause, want time.Duration
	}{
		"runs":         {0, tick},
		"stands still": {time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sum time.Duration
				looks := 0
				began := time.Now()
				end := standstill.Watch(tick, func(took time.Duration) {
					sum += took
					if looks++; looks == 3 {
						time.Sleep(c.pause)
					}
				})
				time.Sleep(2*time.Second + tick/2)
				longest := end()
				if longest != c.want {
					t.Errorf("longest time between two looks %v, want %v", longest, c.want)
				}
				if all := time.Since(began); sum != all {
					t.Errorf("looks add up to %v of %v", sum, all)
				}
			})
		})
	}
}

// TestWatchEnds counts the time since the last look, also where no tick came.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := standstill.Watch(time.Hour, nil)
		time.Sleep(time.Minute)
		if longest := end(); longest != time.Minute {
			t.Errorf("longest time between two looks %v, want 1m0s", longest)
		}
	})
}
