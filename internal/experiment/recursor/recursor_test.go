package recursor

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/nameserver"
	"github.com/linerate/linerate/internal/resolver/load"
)

// The capacity is bounded by the busiest thread, by the CPUs, and by what was lost.
func TestCapacity(t *testing.T) {
	ms := func(threads ...int) map[int]time.Duration {
		m := map[int]time.Duration{}
		for i, n := range threads {
			m[i] = time.Duration(n) * time.Millisecond
		}
		return m
	}
	for _, c := range []struct {
		name          string
		before, after map[int]time.Duration
		counts        load.Counts
		cpus          int
		want          float64
	}{
		{"one thread", ms(1000), ms(1100), load.Counts{Queries: 1000, Answers: 1000}, 2, 10_000},
		{"two threads on two CPUs", ms(0, 500), ms(50, 550), load.Counts{Queries: 1000, Answers: 1000}, 2, 20_000},
		{"eight threads on two CPUs", ms(0, 0, 0, 0, 0, 0, 0, 0), ms(25, 25, 25, 25, 25, 25, 25, 25),
			load.Counts{Queries: 1000, Answers: 1000}, 2, 10_000},
		{"unequal threads", ms(0, 0), ms(80, 20), load.Counts{Queries: 1000, Answers: 1000}, 2, 12_500},
		{"a new thread", ms(0), ms(50, 50), load.Counts{Queries: 1000, Answers: 1000}, 2, 20_000},
		{"half is lost", ms(0), ms(50), load.Counts{Queries: 1000, Answers: 500, Lost: 500}, 1, 5000},
		{"half is late", ms(0), ms(100), load.Counts{Queries: 1000, Answers: 500, Lost: 500, Late: 500}, 1, 10_000},
	} {
		got := observe(&load.Result{Counts: c.counts}, c.before, c.after, c.cpus)
		if math.Abs(got.Objective-c.want) > 1e-6 || got.Discard != "" {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
	if got := observe(&load.Result{}, ms(0), ms(5), 1); got.Discard == "" {
		t.Errorf("a server without answers has the capacity %v", got.Objective)
	}
}

// Every candidate is in the catalogue, its value is one, and it does not disturb more than --allow
// d2 permits.
func TestCandidates(t *testing.T) {
	for _, kind := range []nameserver.Kind{nameserver.Named, nameserver.Unbound, nameserver.Kresd} {
		all := Candidates(kind, "/etc/x.conf", 2)
		if len(all) < 3 {
			t.Errorf("%s has %d candidates", kind, len(all))
		}
		for _, c := range all {
			d, ok := knob.Catalogue().Lookup(c.Knob)
			if !ok || d.Disturbance > knob.DisturbsBriefLoss || d.Advise {
				t.Errorf("%s: %+v, %v", c.Knob, d, ok)
			}
			for _, v := range c.Levels {
				if n, err := d.Normalize(v); err != nil || n != v {
					t.Errorf("%s: %q is %q, %v", c.Knob, v, n, err)
				}
			}
		}
	}
}

// TestWatchClock checks that the watch of a clock ends, also where a load fails: no goroutine is
// left in the bubble.
func TestWatchClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := watchClock()
		defer held() // what Measure does on every way out
		time.Sleep(3 * time.Second)
		if longest := held(); longest > 50*time.Millisecond || longest != held() {
			t.Errorf("held for %v, then %v", longest, held())
		}
	})
}
