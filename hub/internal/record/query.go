package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

const (
	// subqueryStep is the default step of subqueries, as in Prometheus.
	subqueryStep = time.Minute
	// maxSubquerySteps is the largest number of evaluations of a subquery: two days of seconds.
	maxSubquerySteps = 200_000
	// maxWork is the largest number of samples that all windows of one series may have together at
	// one a second: some seconds of CPU time. The engine checks for cancellation between series and
	// not between the windows of one, so a time limit alone does not bound it.
	maxWork = 2e9
)

// slow has the functions that take longer for a sample than a sum, which takes 3 ns, and how many
// times: 50 ns to sort it, 14 for a line through it, 8 to compare it.
var slow = map[string]float64{"quantile_over_time": 20, "stddev_over_time": 5, "stdvar_over_time": 5, "deriv": 5,
	"predict_linear": 5, "changes": 3, "resets": 3}

// bounded returns an error if the engine could not be stopped while it evaluates a query for a
// number of steps over a time. It leaves invalid PromQL to the engine.
func (s *Store) bounded(query string, span, step time.Duration) error {
	if err := BoundedRepeats(query); err != nil {
		return err
	}
	expr, err := s.parser.ParseExpr(query)
	if err != nil {
		return nil
	}
	if err := boundedRegexps(expr, s.series()); err != nil {
		return err
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		steps, span := 1+float64(span)/float64(max(step, 1)), span
		for _, outer := range path {
			if sub, ok := outer.(*parser.SubqueryExpr); ok {
				span += sub.Range
				steps = 1 + float64(span)/float64(cmp.Or(sub.Step, subqueryStep))
			}
		}
		var window float64 // in samples
		switch n := node.(type) {
		case *parser.MatrixSelector:
			window = min(n.Range, s.o.Retention).Seconds() // at most the retention
		case *parser.SubqueryExpr:
			apart := float64(cmp.Or(n.Step, subqueryStep))
			window = float64(n.Range) / apart
			if inner := float64(span+n.Range) / apart; inner > maxSubquerySteps && err == nil {
				err = fmt.Errorf("%w: a subquery would be evaluated %.0f times, %d is the most: take a longer "+
					"step in it", ErrTooMuch, inner, maxSubquerySteps)
			}
		}
		if n := len(path); n > 0 {
			if call, ok := path[n-1].(*parser.Call); ok {
				window *= max(1, slow[call.Func.Name])
			}
		}
		if steps*window > maxWork && err == nil {
			err = fmt.Errorf("%w: %.0f windows that cost as much as %.0f samples each: take a longer step or "+
				"shorter windows", ErrTooMuch, steps, window)
		}
		return nil
	})
	return err
}

// Instant evaluates a query at one time. The error is one of this package; that of the result is
// nil.
func (s *Store) Instant(ctx context.Context, query string, at time.Time) (*promql.Result, error) {
	return s.instant(ctx, query, at, s.asking)
}

// instant is Instant in one of certain places.
func (s *Store) instant(ctx context.Context, query string, at time.Time, places chan struct{}) (*promql.Result, error) {
	if err := s.bounded(query, 0, 1); err != nil {
		s.asked(named(err), 0)
		return nil, err
	}
	return s.ask(ctx, places, func(q storage.Queryable) (promql.Query, error) {
		return s.engine.NewInstantQuery(ctx, q, nil, query, at)
	}, false)
}

// Range evaluates a query for every step from start to end. The error is one of this package; that
// of the result is nil.
func (s *Store) Range(ctx context.Context, query string, start, end time.Time,
	step time.Duration) (*promql.Result, error) {
	var err error
	switch {
	case step < time.Millisecond:
		err = fmt.Errorf("%w: a step of %v is less than a millisecond", ErrBadQuery, step)
	case end.Before(start):
		err = fmt.Errorf("%w: the end %v is before the start %v", ErrBadQuery, end.UTC(), start.UTC())
	case end.Sub(start)/step >= time.Duration(s.o.Queries.Points):
		err = fmt.Errorf("%w: more than %d points for each series: take a longer step", ErrTooMuch, s.o.Queries.Points)
	default:
		err = s.bounded(query, end.Sub(start), step)
	}
	if err != nil {
		s.asked(named(err), 0)
		return nil, err
	}
	return s.ask(ctx, s.asking, func(q storage.Queryable) (promql.Query, error) {
		return s.engine.NewRangeQuery(ctx, q, nil, query, start, end, step)
	}, s.canThin(query))
}

func (s *Store) ask(ctx context.Context, places chan struct{},
	prepare func(storage.Queryable) (promql.Query, error), thin bool) (*promql.Result, error) {
	began := time.Now()
	r, err := s.answer(ctx, places, prepare, thin)
	s.asked(named(err), time.Since(began))
	return r, err
}

func (s *Store) answer(ctx context.Context, places chan struct{},
	prepare func(storage.Queryable) (promql.Query, error), thin bool) (*promql.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Queries.Time)
	defer cancel()
	q, err := prepare(queryable{s, thin})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadQuery, err)
	}
	select {
	case places <- struct{}{}: // a free place: the engine reports what is wrong with the context
	default:
		if err := wait(ctx, places); err != nil {
			return nil, err
		}
	}
	defer func() { <-places }()
	r := q.Exec(ctx)
	if r.Err != nil {
		return nil, typed(r.Err)
	}
	return r, nil
}

// series returns about how many series the store has; at least 100, so that small hosts have the
// bounds of others.
func (s *Store) series() int {
	if s.loading.Load() {
		return 100 // it answers no query
	}
	return max(100, int(s.head().NumSeries()))
}

// wait takes a place when one is free.
func wait(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w: %d run already", ErrBusy, cap(places))
		}
		return fmt.Errorf("%w: %w", ErrCanceled, ctx.Err())
	}
}

// named returns the label of [metricQueries] for an error.
func named(err error) string {
	for word, is := range map[string]error{"bad": ErrBadQuery, "too-much": ErrTooMuch, "timeout": ErrTimeout,
		"canceled": ErrCanceled, "busy": ErrBusy} {
		if errors.Is(err, is) {
			return word
		}
	}
	if err != nil {
		return "failed"
	}
	return "ok"
}

// Querier returns the series between two times, both included. The caller must close it.
func (s *Store) Querier(start, end time.Time) (storage.Querier, error) {
	return queryable{s, false}.Querier(start.UnixMilli(), end.UnixMilli())
}

// queryable is the store for the engine: the database, and what waits in memory.
type queryable struct {
	s    *Store
	thin bool // leave out samples that cannot matter
}

func (q queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	q.s.mu.Lock()
	closed := q.s.closed
	waiting := q.s.kept.between(mint, maxt)
	q.s.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if q.s.loading.Load() {
		return nil, ErrLoading
	}
	q.s.access.RLock()
	inner, err := q.s.db.Querier(mint, maxt)
	if err != nil {
		q.s.access.RUnlock()
		return nil, err
	}
	switch {
	case waiting != nil:
		inner = storage.NewMergeQuerier([]storage.Querier{inner, waiting}, nil, storage.ChainedSeriesMerge)
	case q.thin:
		inner = &thinner{Querier: inner,
			chunks: func() (storage.ChunkQuerier, error) { return q.s.db.ChunkQuerier(mint, maxt) }}
	}
	return &querier{Querier: inner, release: sync.OnceFunc(q.s.access.RUnlock)}, nil
}

// querier releases the database when it is closed.
type querier struct {
	storage.Querier
	release func()
}

func (q *querier) Close() error {
	defer q.release()
	return q.Querier.Close()
}
