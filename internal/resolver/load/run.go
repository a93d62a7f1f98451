package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// ErrNoServer means that no program answers at the address.
var ErrNoServer = errors.New("no name server answers")

// part is what one worker or connection counted in one interval.
type part struct {
	number int // of the interval
	tally  *tally
}

// engine sends and receives. It reports its tallies once an interval, and the last ones when it
// returns.
type engine interface {
	// run sends until the clock reads end or ctx ends, then waits for the last answers.
	// It returns when the last query was sent (monotonic).
	run(ctx context.Context, clock clock) (lastSent int64, err error)
	method() string
	reporters() int // how many parts make an interval
	close()
}

// clock is the times of one load.
type clock struct {
	start, end int64         // monotonic nanoseconds
	interval   time.Duration // of reports
	report     func(part)
}

// number returns the interval that a moment is in.
func (c clock) number(now int64) int { return int((now - c.start) / int64(c.interval)) }

// Run runs a load and returns its result. The function each, which may be nil, gets the interim
// results; its calls do not overlap. When ctx ends, the load ends early, and its result is complete
// for the time until then.
func Run(ctx context.Context, o Options, each func(Interval)) (*Result, error) {
	o, err := o.Filled()
	if err != nil {
		return nil, err
	}
	if each == nil {
		each = func(Interval) {}
	}
	if o.Mode == Ramp {
		return ramp(ctx, o, each, func(o Options) (*Result, error) { return once(ctx, o, func(Interval) {}) })
	}
	return once(ctx, o, each)
}

// once runs one open or closed loop.
func once(ctx context.Context, o Options, each func(Interval)) (*Result, error) {
	e, err := newEngine(o)
	if err != nil {
		return nil, err
	}
	defer e.close()
	r := &Result{
		Server: o.Server.String(), Transport: o.Transport, Mode: o.Mode,
		StartTime: time.Now().UTC().Truncate(time.Millisecond), Method: e.method(),
		Sockets: o.Sockets, Intervals: []Interval{},
	}
	if o.Mode == Open {
		r.Target, r.Burst = o.Rate, newPacer(o.Rate/float64(o.Workers), 0).burst
	} else {
		r.Outstanding = o.Outstanding
	}
	if o.Transport == UDP {
		r.Workers = o.Workers
	}
	// A worker never waits for the collector of interim results: it would send late.
	parts := make(chan part, 1024)
	collected := make(chan *tally)
	start := int64(sys.Monotonic())
	go func() { collected <- collect(parts, e.reporters(), o, r, each) }()
	user, system := sys.ProcessTimes()
	last, err := e.run(ctx, clock{start: start, end: start + int64(o.Duration), interval: o.Interval,
		report: func(p part) { parts <- p }})
	userAfter, systemAfter := sys.ProcessTimes()
	close(parts)
	total := <-collected
	if err != nil {
		return nil, err
	}
	r.CPUSeconds = (userAfter - user + systemAfter - system).Seconds()
	// An open loop of which every query left has lasted as long as it was planned.
	r.DurationSeconds = o.Duration.Seconds()
	if ctx.Err() != nil || o.Queries > 0 || last > start+int64(o.Duration) {
		r.DurationSeconds = max(time.Duration(last-start), time.Microsecond).Seconds()
	}
	total.fill(r)
	if total.Answers == 0 && total.refused > 0 {
		return nil, fmt.Errorf("ask %s over %s: %w: the host reports that the port is closed", o.Server, o.Transport,
			ErrNoServer)
	}
	r.warn(o)
	return r, nil
}

// collect merges the parts of all workers and passes on the interim results. An interval is
// complete with the parts of all reporters, or with the first of a later one that is. What arrives
// after the planned end belongs to the last interval.
func collect(parts <-chan part, reporters int, o Options, r *Result, each func(Interval)) *tally {
	total := newTally()
	open, received := map[int]*tally{}, map[int]int{}
	planned := int((o.Duration + o.Interval - 1) / o.Interval)
	next := 0
	flush := func(until int) {
		for ; next < min(until, planned); next++ {
			t := open[next]
			delete(open, next)
			if t == nil {
				t = newTally()
			}
			begin, end := time.Duration(next)*o.Interval, min(time.Duration(next+1)*o.Interval, o.Duration)
			i := t.interval(end, end-begin)
			r.Intervals = append(r.Intervals, i)
			each(i)
		}
	}
	last := -1
	for p := range parts {
		n := min(p.number, planned-1)
		last = max(last, n)
		total.merge(p.tally)
		if open[n] == nil {
			open[n] = newTally()
		}
		open[n].merge(p.tally)
		// The last interval stays open for answers that arrive after it.
		if received[n]++; received[n] == reporters && n < planned-1 {
			flush(n + 1)
		}
	}
	flush(last + 1)
	return total
}

// unansweredAtEnd is how many queries at the end of a load must stay without an answer to show that
// the server is gone: fewer can be lost one by one.
const unansweredAtEnd = 10

// WentAway returns after how many seconds of the load the server answered nothing more; false if it
// answered to the end, or never.
func (r *Result) WentAway() (seconds float64, gone bool) {
	unanswered := 0.0
	for n := len(r.Intervals) - 1; n > 0; n-- {
		if r.Intervals[n].AnswersPerSecond > 0 {
			return 0, false
		}
		before := r.Intervals[n-1]
		unanswered += r.Intervals[n].QueriesPerSecond * (r.Intervals[n].AtSeconds - before.AtSeconds)
		if before.AnswersPerSecond > 0 {
			return before.AtSeconds, unanswered >= unansweredAtEnd
		}
	}
	return 0, false
}

// warn adds what a reader of the figures must know.
func (r *Result) warn(o Options) {
	warn := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	if seconds, gone := r.WentAway(); gone {
		warn("the server answered nothing after %.3g s: the figures are those of the load until then and of its absence",
			seconds)
	}
	if r.Mode == Open && o.Queries == 0 && r.DurationSeconds > 1.02*o.Duration.Seconds() {
		warn("the generator did not keep the rate: it needed %.3g s for the queries of %.3g s",
			r.DurationSeconds, o.Duration.Seconds())
	}
	if r.SendDelay != nil && r.Latency != nil && r.SendDelay.P99 > r.Latency.P99/2 && r.SendDelay.P99 > 0.001 {
		warn("1 %% of the queries left more than %.3g ms after they were due: this host is busy, and the latency contains it",
			r.SendDelay.P99*1e3)
	}
	if r.SocketDrops > 0 {
		warn("the sockets of this host dropped %d answers: they count as lost", r.SocketDrops)
	}
	if r.WrongTotal > 0 {
		warn("%d received messages were no answers", r.WrongTotal)
	}
}
