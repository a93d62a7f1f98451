package load

import (
	"math"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/resolver/answer"
	"github.com/linerate/linerate/internal/resolver/message"
)

// TestUsualCost lets a thread be suspended now and then: the usual cost of sending hardly notices,
// and a first report of that kind is forgotten soon.
func TestUsualCost(t *testing.T) {
	var u usualCost
	if got := u.of(3); got != 0 {
		t.Errorf("an unknown cost is %d", got)
	}
	u.learn(0, 3_000_000)
	for n := range 100 {
		took := int64(6000 + 100*(n%7))
		if n%20 == 19 {
			took = 2_000_000
		}
		u.learn(0, took)
		u.learn(1, 2*took)
	}
	for message, want := range map[int]float64{0: 6300, 1: 12600, 9: 12600} {
		if got := float64(u.of(message)); math.Abs(got-want) > want/5 {
			t.Errorf("message %d usually costs %g ns, want %g", message, got, want)
		}
	}
}

// TestWakeUps wakes up late by 40 to 79 µs: two of three wake-ups are less late than what is usual,
// and it is never more than half of the time between two.
func TestWakeUps(t *testing.T) {
	w := &worker{}
	below := 0
	for n := range int64(3000) {
		late := 40_000 + 1000*(n*17%40)
		w.wokeUp(late, 1e6)
		if n >= 1000 && float64(late) <= w.early {
			below++
		}
	}
	if below < 1200 || below > 1500 {
		t.Errorf("%d of 2000 wake-ups are less late than %g ns", below, w.early)
	}
	for range 100 {
		w.wokeUp(90_000, 50_000)
	}
	if w.early > 25_000 {
		t.Errorf("wakes up %g ns early for queries 50 µs apart", w.early)
	}
}

// TestArrival reads times of arrival while the realtime clock is slowed and set: a message that
// waited for long keeps its time, and one from before a step counts as arrived now.
func TestArrival(t *testing.T) {
	const second = 1_000_000_000
	w := &worker{}
	for _, c := range []struct {
		name        string
		now, real   int64 // a reading of both clocks
		at, arrived int64
	}{
		{"at once", 100 * second, 1000 * second, 1000*second - 1000, 100*second - 1000},
		{"a process that stood still", 130 * second, 1030 * second, 1001 * second, 101 * second},
		{"a slower clock", 131 * second, 1031*second - 5_000_000, 1031*second - 5_001_000, 131*second - 1000},
		{"without a time", 132 * second, 1032 * second, 0, 132 * second},
		{"later than now", 133 * second, 1033 * second, 1034 * second, 133 * second},
		{"before the clock was set forward", 134 * second, 5034 * second, 1033 * second, 134 * second},
		{"likewise, in the next call", 135 * second, 5035 * second, 1033 * second, 135 * second},
		{"after the clock was set", 136 * second, 5036 * second, 5035 * second, 135 * second},
		{"before the clock was set back", 137 * second, 2037 * second, 5036 * second, 137 * second},
	} {
		w.compare(c.now, c.real)
		if got, known := w.arrival(c.at, c.now); got != c.arrived || known != (got != c.now) {
			t.Errorf("%s: arrived at %d, %t, want %d", c.name, got, known, c.arrived)
		}
	}
}

// TestLateBeforeASweep lets a worker that has looked at no clock since it sent a query read the
// answer, which arrived after the timeout: the query is lost all the same.
func TestLateBeforeASweep(t *testing.T) {
	t.Parallel()
	s := serve(t, answer.Options{Faults: answer.Faults{Every: map[answer.Fault]uint64{answer.Late: 1},
		LateBy: 20 * time.Millisecond}})
	o, err := Options{Server: s.Addr(), Timeout: time.Millisecond, Sockets: 1, Names: questions(t)}.Filled()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBatched(o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	w := b.workers[0]
	if err := w.send(&w.ports[0], 1, 0); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); w.tally.Answers+w.tally.Late == 0 && time.Now().Before(until); {
		if _, err := w.poller.Await(time.Second); err != nil {
			t.Fatal(err)
		}
		if _, err := w.drain(); err != nil {
			t.Fatal(err)
		}
	}
	if w.tally.Answers != 0 || w.tally.Late != 1 || w.tally.Lost != 1 || w.waiting != 0 {
		t.Errorf("got %+v, %d waiting", w.tally.Counts, w.waiting)
	}
}

// TestLatencyCountsFromDue holds what a query is charged: a late sender in full, an early one from
// when it left, and one without a schedule from when it left.
func TestLatencyCountsFromDue(t *testing.T) {
	set := questions(t)
	for name, c := range map[string]struct {
		due, sent, arrived int64
		latency, service   float64 // nanoseconds
		delay              float64 // −1: none
	}{
		"on time":           {1000, 1000, 51_000, 50_000, 50_000, 0},
		"late":              {1000, 21_000, 71_000, 70_000, 50_000, 20_000},
		"early":             {3000, 1000, 51_000, 50_000, 50_000, 0},
		"no schedule":       {0, 21_000, 71_000, 50_000, 50_000, -1},
		"taken for slower":  {1000, 80_000, 71_000, 70_000, 0, 70_000},
		"none and the same": {0, 80_000, 71_000, 0, 0, -1},
	} {
		j, tab, total := newJudge(set, UDP), newTable(8, 0), newTally()
		id := tab.add(c.due, 0, 0, 0)
		tab.departedAt(tab.next-1, c.sent)
		tab.departedAt(tab.next-1+uint32(len(tab.queries)), 1) // another query, which had this place before
		query := make([]byte, set.Longest())
		query = query[:set.Compose(query, 0, 0, id)]
		query[2] |= 0x80 // an answer without records
		if !j.receive(query, c.arrived, tab, total) {
			t.Fatalf("%s: %v", name, total.kinds[message.OtherCode])
		}
		if got := total.latency.Snapshot().P50 * 1e9; math.Abs(got-c.latency) > c.latency/500 {
			t.Errorf("%s: the latency is %g ns, want %g", name, got, c.latency)
		}
		if got := total.service.Snapshot().P50 * 1e9; math.Abs(got-c.service) > c.service/500 {
			t.Errorf("%s: the latency since sent is %g ns, want %g", name, got, c.service)
		}
		switch s := total.delay.Snapshot().OrNil(); {
		case (s == nil) != (c.delay < 0):
			t.Errorf("%s: sent late by %+v", name, s)
		case s != nil && math.Abs(s.P50*1e9-c.delay) > c.delay/500:
			t.Errorf("%s: sent late by %g s", name, s.P50)
		}
	}
}
