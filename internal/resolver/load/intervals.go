package load

import (
	"math"
	"slices"
	"time"
)

// part is what one reporter counted in a time of the load: a worker, or all connections.
type part struct {
	reporter int
	number   int   // of the interval in which the time ends
	from, to int64 // monotonic nanoseconds
	tally    *tally
	stage    stage
}

// stage is where a reporter is in its load.
type stage uint8

// The stages.
const (
	sends stage = iota // further queries follow
	sent               // the last query has left
	waits              // for the last answers
)

// reporter hands the tallies of a worker, or of all connections, to the collector.
type reporter struct {
	clock  clock
	number int   // among all
	turn   int   // the interval in which its next tally begins
	from   int64 // when that is
	stage  stage
}

// due reports whether an interval has ended. After a part that was late the next one has the time
// of its interval and of the following one: the few milliseconds between them, in which a worker
// makes up for the time that it stood still, are no rate.
func (r *reporter) due(now int64) bool {
	return r.stage == sends && r.clock.number(now) > r.turn && now-r.from >= int64(r.clock.interval/2)
}

// hand gives away what was counted until a moment. What was counted when the last query has left is
// of the interval that this moment ends, or is in.
func (r *reporter) hand(t *tally, to int64, s stage) {
	n := r.clock.number(to)
	p := part{r.number, n - 1, r.from, to, t, s}
	if s == sent {
		p.number = max(r.clock.number(to-1), r.turn)
	}
	r.turn, r.from, r.stage = n, to, s
	r.clock.report(p)
}

// interim is an interval that is being collected.
type interim struct {
	tally *tally
	rates []rate // of each reporter
}

// rate is what one reporter counted in a time. Two rates from one moment are of one part.
type rate struct {
	queries, answers uint64
	from             int64 // monotonic nanoseconds
	nanoseconds      int64
}

// intervals makes interim results from the parts of all reporters.
//
// Their rates are of the time that a part is really of: a worker reports when it looks at its
// clock, some milliseconds after an interval, or as much later as this process stood still. An
// answer that arrives when the last query has left is in no rate of an open loop: the last interval
// would have those of as much time as answers take. A last interval of less than half the time is
// one with the interval before it, as a few queries in a few milliseconds are no rate.
type intervals struct {
	o      Options
	start  int64
	each   func(Interval)
	total  *tally
	rest   *tally // what arrived behind the last query
	open   map[int]*interim
	latest []int // newest interval of each reporter; finished: it sends no more
	next   int   // the interval to pass on
	before *interim
	end    int64 // of the newest part
	all    []Interval
}

const finished = math.MaxInt

func newIntervals(o Options, start int64, reporters int, each func(Interval)) *intervals {
	return &intervals{o: o, start: start, each: each, total: newTally(), rest: newTally(), open: map[int]*interim{},
		latest: slices.Repeat([]int{-1}, reporters), all: []Interval{}}
}

// add takes a part, and passes on the intervals that no reporter will add to.
func (v *intervals) add(p part) {
	v.total.merge(p.tally)
	if p.stage == waits {
		v.rest.merge(p.tally)
		return
	}
	v.end = max(v.end, p.to)
	// A reporter that stood still has one part for several intervals, and the same rate in all.
	for n := v.latest[p.reporter] + 1; n <= p.number; n++ {
		v.at(n).rates[p.reporter] = rate{p.tally.Queries, p.tally.Answers, p.from, p.to - p.from}
	}
	v.at(p.number).tally.merge(p.tally)
	if v.latest[p.reporter] = p.number; p.stage == sent {
		v.latest[p.reporter] = finished
	}
	if until := slices.Min(v.latest); until != finished {
		v.pass(until + 1)
	}
}

func (v *intervals) at(number int) *interim {
	i := v.open[number]
	if i == nil {
		i = &interim{newTally(), make([]rate, len(v.latest))}
		v.open[number] = i
	}
	return i
}

// pass passes on the intervals before one.
func (v *intervals) pass(until int) {
	for ; v.next < until; v.next++ {
		v.before = v.at(v.next)
		delete(v.open, v.next)
		v.show(v.before, time.Duration(v.next+1)*v.o.Interval)
	}
}

func (v *intervals) show(i *interim, end time.Duration) {
	s := i.tally.latency.Snapshot()
	x := Interval{AtSeconds: end.Seconds(), Lost: i.tally.Lost, Wrong: i.tally.WrongTotal, P50: s.P50, P99: s.P99,
		Max: s.Max}
	for _, r := range i.rates {
		if r.nanoseconds > 0 {
			x.QueriesPerSecond += float64(r.queries) / float64(r.nanoseconds) * 1e9
			x.AnswersPerSecond += float64(r.answers) / float64(r.nanoseconds) * 1e9
		}
	}
	v.all = append(v.all, x)
	v.each(x)
}

// finish passes on the last interval, when all reporters have ended. The rates of the whole load
// are of a time (see lasted), to whose end the last answers count in a closed loop.
func (v *intervals) finish(lasted time.Duration) []Interval {
	newest := v.next
	for n := range v.open {
		newest = max(newest, n)
	}
	v.pass(newest)
	last, end := v.at(newest), time.Duration(v.end-v.start)
	longest := int64(0)
	answers := v.rest.Answers
	if v.o.Mode != Closed {
		answers, lasted = 0, end
	}
	for i := range last.rates {
		if r := &last.rates[i]; r.nanoseconds > 0 {
			r.nanoseconds += max(int64(lasted-end), 0)
			r.answers, answers = r.answers+answers, 0 // they are of all reporters
		}
		longest = max(longest, last.rates[i].nanoseconds)
	}
	last.tally.merge(v.rest)
	end = max(end, lasted)
	short := min(longest, int64(end-time.Duration(newest)*v.o.Interval)) < int64(v.o.Interval/2)
	if v.before != nil && short {
		last.tally.merge(v.before.tally)
		for i, r := range v.before.rates {
			if l := &last.rates[i]; l.nanoseconds == 0 || l.from != r.from {
				l.queries, l.answers, l.nanoseconds = l.queries+r.queries, l.answers+r.answers, l.nanoseconds+r.nanoseconds
			}
		}
		v.all = v.all[:len(v.all)-1]
	}
	v.show(last, end)
	return v.all
}
