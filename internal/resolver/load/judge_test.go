package load

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

// TestTruncatedByOthers judges answers of a load balancer, which truncates without the server
// behind it. NOERROR with the TC bit was another code than the list expects.
func TestTruncatedByOthers(t *testing.T) {
	set, err := names.Read(strings.NewReader("www.bench.test A NXDOMAIN"), message.QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for truncated, want := range map[bool]Counts{true: {Answers: 1, Truncated: 1}, false: {WrongTotal: 1}} {
		j, places, sum := newJudge(set, UDP), newTable(1, 0x1234), newTally()
		m := make([]byte, set.Longest())
		set.Compose(m, 0, 0, places.add(0, 1, 0, 0))
		m[2] |= 0x80
		if truncated {
			m[2] |= 2
		}
		if !j.receive(m, 2, places, sum) || sum.Counts != want {
			t.Errorf("truncated is %v: %+v, want %+v", truncated, sum.Counts, want)
		}
	}
}

// TestLimitedAnswers truncates an answer that was whole before, as response rate limiting of named
// does with every second answer that it does not drop; an answer that is always too long is none of
// them.
func TestLimitedAnswers(t *testing.T) {
	set, err := names.Read(strings.NewReader("www.bench.test A\nlong.bench.test TXT"), message.QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j, places, sum := newJudge(set, UDP), newTable(8, 0x1234), newTally()
	for _, a := range []struct {
		index     uint32
		truncated bool
		limited   uint64 // so far
	}{{0, true, 0}, {1, true, 0}, {0, false, 0}, {0, true, 1}, {1, true, 1}, {0, false, 1}, {0, true, 2}} {
		m := make([]byte, set.Longest())
		m = m[:set.Compose(m, a.index, 0, places.add(0, 1, a.index, 0))]
		m[2] |= 0x80
		if a.truncated {
			m[2] |= 2
		}
		if !j.receive(m, 2, places, sum) || sum.limited != a.limited {
			t.Errorf("question %d, truncated is %v: %d limited, want %d", a.index, a.truncated, sum.limited, a.limited)
		}
	}
	if j.limited(1 << 31) {
		t.Error("a fresh name was answered before")
	}
}

// TestLongIntervals plans one interval that is longer than any load.
func TestLongIntervals(t *testing.T) {
	v := newIntervals(Options{Interval: time.Duration(math.MaxInt64)}, 0, 1, func(Interval) {})
	r := reporter{clock: clock{interval: v.o.Interval, report: v.add}}
	r.hand(newTally(), int64(MaxDuration), sent)
	if all := v.finish(MaxDuration); len(all) != 1 || all[0].AtSeconds != MaxDuration.Seconds() {
		t.Errorf("%+v", all)
	}
}

// TestIntervals holds the rates of interim results. Those of the last interval were too high by all
// answers that arrived behind the last query, or too low when the load ended within it; and an
// interval in which the process stood still had the queries of the next ones.
func TestIntervals(t *testing.T) {
	const second, ms = int64(time.Second), int64(time.Millisecond)
	type hand struct {
		reporter         int
		to               int64
		queries, answers uint64
		stage            stage
	}
	for name, c := range map[string]struct {
		mode   Mode
		lasted time.Duration
		hands  []hand
		want   []Interval // end, and rates of queries and answers
	}{
		"answers after half a second": {Open, 2 * time.Second, []hand{{0, second, 100, 50, sends},
			{0, 2 * second, 100, 100, sent}, {0, 2500 * ms, 0, 50, waits}},
			[]Interval{{1, 100, 50, 0, 0, 0, 0, 0}, {2, 100, 100, 0, 0, 0, 0, 0}}},
		"ended within an interval": {Open, 1600 * time.Millisecond, []hand{{0, second, 100, 100, sends},
			{0, 1600 * ms, 60, 60, sent}, {0, 1601 * ms, 0, 0, waits}},
			[]Interval{{1, 100, 100, 0, 0, 0, 0, 0}, {1.6, 100, 100, 0, 0, 0, 0, 0}}},
		"a late look": {Open, 2 * time.Second, []hand{{0, 1400 * ms, 140, 140, sends}, {0, 2 * second, 60, 60, sent},
			{0, 2 * second, 0, 0, waits}}, []Interval{{1, 100, 100, 0, 0, 0, 0, 0}, {2, 100, 100, 0, 0, 0, 0, 0}}},
		"stood still": {Open, 4 * time.Second, []hand{{0, second, 100, 100, sends}, {0, 3 * second, 200, 200, sends},
			{0, 4 * second, 100, 100, sent}, {0, 4 * second, 0, 0, waits}},
			[]Interval{{1, 100, 100, 0, 0, 0, 0, 0}, {2, 100, 100, 0, 0, 0, 0, 0}, {3, 100, 100, 0, 0, 0, 0, 0},
				{4, 100, 100, 0, 0, 0, 0, 0}}},
		"stood still at the end": {Open, 2600 * time.Millisecond, []hand{{0, second, 100, 100, sends},
			{0, 2550 * ms, 100, 100, sends}, {0, 2600 * ms, 60, 60, sent}, {0, 2600 * ms, 0, 0, waits}},
			[]Interval{{1, 100, 100, 0, 0, 0, 0, 0}, {2.6, 100, 100, 0, 0, 0, 0, 0}}},
		"a short last one": {Open, 2100 * time.Millisecond, []hand{{0, second, 100, 100, sends},
			{0, 2 * second, 100, 90, sends}, {0, 2100 * ms, 32, 9, sent}, {0, 2200 * ms, 0, 10, waits}},
			[]Interval{{1, 100, 100, 0, 0, 0, 0, 0}, {2.1, 120, 90, 0, 0, 0, 0, 0}}},
		"stood still over the end": {Open, 2050 * time.Millisecond, []hand{{0, second, 100, 100, sends},
			{0, 2050 * ms, 105, 84, sent}, {0, 2060 * ms, 0, 21, waits}},
			[]Interval{{1, 100, 100, 0, 0, 0, 0, 0}, {2.05, 100, 80, 0, 0, 0, 0, 0}}},
		"two workers": {Open, 2 * time.Second, []hand{{1, second, 50, 50, sends}, {0, 1250 * ms, 100, 75, sends},
			{0, 2 * second, 60, 75, sent}, {1, 2 * second, 50, 50, sent}, {0, 3 * second, 0, 10, waits}},
			[]Interval{{1, 130, 110, 0, 0, 0, 0, 0}, {2, 130, 150, 0, 0, 0, 0, 0}}},
		"one worker has few": {Open, 2 * time.Second, []hand{{0, 10 * ms, 1, 1, sent}, {1, second, 50, 50, sends},
			{1, 2 * second, 50, 50, sent}, {0, 3 * second, 0, 10, waits}},
			[]Interval{{1, 150, 150, 0, 0, 0, 0, 0}, {2, 50, 50, 0, 0, 0, 0, 0}}},
		// A query takes its place until its answer arrives.
		"closed": {Closed, 2 * time.Second, []hand{{0, ms, 100, 0, sent}, {0, 2 * second, 0, 100, waits}},
			[]Interval{{2, 50, 50, 0, 0, 0, 0, 0}}},
	} {
		passed := 0
		v := newIntervals(Options{Mode: c.mode, Interval: time.Second}, 0, 2, func(Interval) { passed++ })
		if name != "two workers" && name != "one worker has few" {
			v = newIntervals(v.o, 0, 1, v.each)
		}
		reporters := []reporter{{clock: clock{interval: time.Second, report: v.add}},
			{clock: clock{interval: time.Second, report: v.add}, number: 1}}
		for _, h := range c.hands {
			sum := newTally()
			sum.Queries, sum.Answers = h.queries, h.answers
			reporters[h.reporter].hand(sum, h.to, h.stage)
		}
		all := v.finish(c.lasted)
		same := slices.EqualFunc(all, c.want, func(x, y Interval) bool {
			return math.Abs(x.AtSeconds-y.AtSeconds) < 1e-9 && math.Abs(x.QueriesPerSecond-y.QueriesPerSecond) < 0.5 &&
				math.Abs(x.AnswersPerSecond-y.AnswersPerSecond) < 0.5
		})
		if !same || passed < len(all) {
			t.Errorf("%s: %+v, want %+v", name, all, c.want)
		}
	}
}

// TestPartsAfterALateOne hands nothing away a moment after a part that was late: a worker that made
// up for a second in which it stood still showed ten times its rate.
func TestPartsAfterALateOne(t *testing.T) {
	const ms = int64(time.Millisecond)
	r := reporter{clock: clock{interval: time.Second, report: func(part) {}}}
	for _, c := range []struct {
		at  int64
		due bool
	}{{999 * ms, false}, {1900 * ms, true}, {2005 * ms, false}, {2399 * ms, false}, {2400 * ms, true}, {3001 * ms, true}} {
		due := r.due(c.at)
		if due != c.due {
			t.Errorf("after %v due is %v", time.Duration(c.at), due)
		}
		if due {
			r.hand(newTally(), c.at, sends)
		}
	}
}
