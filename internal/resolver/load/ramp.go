package load

import (
	"context"
	"time"
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
	var best *Result
	at := 0.0
	try := func(rate float64) (bool, error) {
		step := o
		step.Mode, step.Rate = Open, rate
		r, err := run(step)
		if err != nil {
			return false, err
		}
		s := Step{Target: rate, QueriesPerSecond: r.QueriesPerSecond, AnswersPerSecond: r.AnswersPerSecond,
			LossRatio: r.LossRatio, Held: true}
		if r.Latency != nil {
			s.P50, s.P99 = r.Latency.P50, r.Latency.P99
		}
		switch {
		case r.LossRatio > o.MostLoss:
			s.Held, s.Why = false, "loss"
		case r.Latency == nil:
			s.Held, s.Why = false, "no answers"
		case o.MostP99 > 0 && r.Latency.P99 > o.MostP99.Seconds():
			s.Held, s.Why = false, "99th percentile"
		case r.QueriesPerSecond < leastSent*rate:
			s.Held, s.Why = false, "generator"
		}
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
	for ctx.Err() == nil && high <= MaxRate {
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
		// Not even the lowest rate was held; the result says how it failed.
		last := steps[len(steps)-1]
		best = &Result{Server: o.Server.String(), Transport: o.Transport, StartTime: time.Now().UTC(),
			Sockets: o.Sockets, LossRatio: last.LossRatio, QueriesPerSecond: last.QueriesPerSecond,
			AnswersPerSecond: last.AnswersPerSecond, Intervals: []Interval{}}
		best.Warnings = append(best.Warnings, "no rate of the ramp was held")
	}
	best.Mode, best.Steps, best.Knee = Ramp, steps, low
	return best, nil
}
