package load

import (
	"context"
	"errors"
	"time"

	"github.com/linerate/linerate/internal/resolver/message"
)

// Step is one rate of a ramp.
type Step struct {
	Target           float64 `json:"target_queries_per_second"`
	QueriesPerSecond float64 `json:"queries_per_second"`
	AnswersPerSecond float64 `json:"answers_per_second"`
	LossRatio        float64 `json:"loss_ratio"`
	P50              float64 `json:"p50_seconds,omitempty"`
	P99              float64 `json:"p99_seconds,omitempty"`
	Held             bool    `json:"held"`          // within the limits
	Why              string  `json:"why,omitempty"` // it was not held
}

// How a ramp climbs: it doubles until a rate is not held, then halves the gap in between.
const (
	rampBisections = 5
	rampTimeout    = time.Second // answers after that are no use to a client either
	leastSent      = 0.95        // of the rate that the generator must send
)

// ramp finds the highest rate that the server answers within the limits. Its result is that of the
// best step; run runs one.
func ramp(ctx context.Context, o Options, each func(Interval), run func(Options) (*Result, error)) (*Result, error) {
	o.Timeout = min(o.Timeout, rampTimeout)
	o.Interval = o.Duration
	var steps []Step
	var best, latest *Result
	at := 0.0
	fewest := map[string]float64{}
	try := func(rate float64) (bool, error) {
		step := o
		step.Mode, step.Rate = Open, rate
		r, err := run(step)
		if errors.Is(err, ErrNoServer) && latest != nil {
			// It answered before, and may have ended under the load.
			r, err = &Result{Mode: Open, Server: latest.Server, Transport: latest.Transport, Method: latest.Method,
				StartTime: time.Now().UTC().Truncate(time.Millisecond), Sockets: latest.Sockets, Workers: latest.Workers,
				LossRatio: 1, Intervals: []Interval{}, Warnings: []string{err.Error()}}, nil
		}
		if err != nil {
			return false, err
		}
		latest = r
		o.FreshFrom += r.Queries // the names of this step are not new any more
		s := Step{Target: rate, QueriesPerSecond: r.QueriesPerSecond, AnswersPerSecond: r.AnswersPerSecond,
			LossRatio: r.LossRatio}
		if r.Latency != nil {
			s.P50, s.P99 = r.Latency.P50, r.Latency.P99
		}
		s.Why = o.why(r, rate, fewest)
		s.Held = s.Why == ""
		at += o.Duration.Seconds()
		steps = append(steps, s)
		each(Interval{AtSeconds: at, QueriesPerSecond: s.QueriesPerSecond, AnswersPerSecond: s.AnswersPerSecond,
			Lost: r.Lost, Wrong: r.WrongTotal, P50: s.P50, P99: s.P99})
		if s.Held && (best == nil || rate > best.Target) || best == nil && ctx.Err() != nil {
			best = r
		}
		return s.Held, nil
	}
	low, high := 0.0, o.FirstRate
	for len(steps) == 0 || ctx.Err() == nil && high <= MaxRate { // once, so that there is a result
		held, err := try(high)
		if err != nil {
			return nil, err
		}
		if !held {
			break
		}
		low, high = high, 2*high
	}
	for range rampBisections {
		if ctx.Err() != nil || high > MaxRate {
			break
		}
		rate := (low + high) / 2
		held, err := try(rate)
		if err != nil {
			return nil, err
		}
		if held {
			low = rate
		} else {
			high = rate
		}
	}
	if best == nil {
		best = latest // not even the lowest rate was held; its counts say why
		best.Warnings = append(best.Warnings, "no rate of the ramp was held")
	}
	best.Mode, best.Steps, best.Knee = Ramp, steps, low
	return best, nil
}

// why returns why a rate was not held; "": it was. A server that has too much to do need not be
// silent: it may answer SERVFAIL or REFUSED, or truncate everything (response rate limiting). Names
// may have such answers at any rate, so the fewest of all rates so far are its due.
func (o Options) why(r *Result, rate float64, fewest map[string]float64) string {
	answered := 1.0
	if ended := r.Queries - r.Interrupted; ended > 0 {
		answered = float64(r.Answers) / float64(ended)
	}
	more := func(kind string, n uint64) bool {
		share := float64(n) / float64(max(r.Answers, 1))
		if least, seen := fewest[kind]; !seen || share < least {
			fewest[kind] = share
		}
		return share > fewest[kind]+o.MostLoss
	}
	failures := uint64(0)
	for _, c := range r.Codes {
		if c.Code == message.ServerFailure.String() || c.Code == message.Refused.String() {
			failures += c.Total
		}
	}
	switch {
	case r.LossRatio > o.MostLoss:
		return "loss"
	case r.Latency == nil:
		return "no answers"
	case answered < 1-o.MostLoss:
		return "wrong answers"
	case more("failures", failures):
		return "SERVFAIL, REFUSED"
	case more("truncated", r.Truncated):
		return "truncated answers"
	case o.MostP99 > 0 && r.Latency.P99 > o.MostP99.Seconds():
		return "99th percentile"
	case r.QueriesPerSecond < leastSent*rate:
		return "generator"
	}
	return ""
}
