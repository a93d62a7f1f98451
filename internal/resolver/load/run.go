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

// engine sends and receives. It reports its tallies once an interval, and the last ones when it
// returns.
type engine interface {
	// run sends until the clock reads end or ctx ends, then waits for the last answers.
	// It returns when the last query was sent (monotonic).
	run(ctx context.Context, clock clock) (lastSent int64, err error)
	method() string
	reporters() int // how many parts an interval has
	// warnings says what a reader of the result must know, after run.
	warnings() []string
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

// sendEnd returns until when the rates of a reporter count that sends no more, whose newest query
// left at a moment and whose next one would be due at another; 0: it has no schedule.
func (c clock) sendEnd(newest, due int64) int64 {
	end := max(int64(sys.Monotonic()), due) // each query stands for the time until the next one
	if end > c.end {
		return max(newest, c.end)
	}
	return end
}

// Run runs a load and returns its result. The function each, which may be nil, gets the interim
// results; its calls do not overlap. When ctx ends, the load ends at once, and its result is that
// of the time until then.
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
	collected := make(chan *intervals)
	start := int64(sys.Monotonic())
	go func() {
		v := newIntervals(o, start, e.reporters(), each)
		for p := range parts {
			v.add(p)
		}
		collected <- v
	}()
	user, system := sys.ProcessTimes()
	last, err := e.run(ctx, clock{start: start, end: start + int64(o.Duration), interval: o.Interval,
		report: func(p part) { parts <- p }})
	userAfter, systemAfter := sys.ProcessTimes()
	ran := time.Duration(int64(sys.Monotonic()) - start)
	close(parts)
	interim := <-collected
	total := interim.total
	if err != nil {
		return nil, err
	}
	r.CPUSeconds = (userAfter - user + systemAfter - system).Seconds()
	whole := ctx.Err() == nil && (o.Queries == 0 || total.Queries < o.Queries)
	lasted := total.lasted(o, time.Duration(last-start), ran, whole)
	r.DurationSeconds = lasted.Seconds()
	r.Intervals, r.answersAfter = interim.finish(lasted), interim.rest.Answers
	total.fill(r)
	if total.Answers+total.Late+total.WrongTotal == 0 && total.refused > 0 {
		return nil, fmt.Errorf("ask %s over %s: %w: the host reports that the port is closed", o.Server, o.Transport,
			ErrNoServer)
	}
	if o.Queries > total.Queries && ctx.Err() == nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the load ended after %v, with %d of %d queries sent", o.Duration,
			total.Queries, o.Queries))
	}
	if total.limited >= fewLimited {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d truncated answers are to questions that were answered whole before: "+
			"the server limits how often it answers, and loss and rates are those of its limit", total.limited))
	}
	r.warn(o, whole)
	r.Warnings = append(r.Warnings, e.warnings()...)
	return r, nil
}

// lasted returns the time that the rates of a load are of. Its newest query was sent after a time,
// the wait for all answers ended after another, and it is whole if nothing but --duration ended it.
func (t *tally) lasted(o Options, sent, ran time.Duration, whole bool) time.Duration {
	d := max(sent, time.Microsecond)
	if whole {
		d = max(d, o.Duration)
	}
	switch {
	case o.Mode == Closed:
		// A query takes its place for as long as it is waited for, and the last ones too. By Little's law
		// the rate is otherwise too high by one time of waiting.
		waits := t.latency.Snapshot().Mean*float64(t.Answers) + o.Timeout.Seconds()*float64(t.Lost) +
			(ran-sent).Seconds()*float64(t.Interrupted)
		place := waits / float64(max(t.Answers+t.Lost+t.Interrupted, 1))
		d = max(d, min(sent+time.Duration(place*1e9), ran))
	case !whole: // each query stands for the time until the next one is due
		d = max(d, time.Duration(float64(t.Queries)/o.Rate*1e9))
	}
	return d
}

// fewLimited is how many truncated answers to questions that were answered whole before show a
// limit (response rate limiting): what a server has just learned may make few answers longer.
const fewLimited = 10

// unansweredAtEnd is how many queries at the end of a load must stay without an answer to show that
// the server is gone: fewer can be lost one by one.
const unansweredAtEnd = 10

// WentAway returns after how many seconds of the load no sound answer arrived any more; false if
// some arrived to the end, or never.
func (r *Result) WentAway() (seconds float64, gone bool) {
	if r.answersAfter > 0 {
		return 0, false
	}
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
func (r *Result) warn(o Options, whole bool) {
	warn := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	if seconds, gone := r.WentAway(); gone {
		warn("no sound answer arrived after %.3g s: the figures are those of the load until then and of the time without",
			seconds)
	}
	if r.Mode == Open && whole && r.DurationSeconds > 1.02*o.Duration.Seconds() {
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
