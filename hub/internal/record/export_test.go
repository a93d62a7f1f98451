package record

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Maintain runs the maintenance of one second.
func (s *Store) Maintain(now time.Time) { s.maintain(now) }

// Rest keeps the maintenance of every second waiting until wake is called.
func (s *Store) Rest() (wake func()) {
	s.keeping.Lock()
	return s.keeping.Unlock
}

// WholeRange is Range without thinning.
func (s *Store) WholeRange(ctx context.Context, query string, start, end time.Time,
	step time.Duration) (*promql.Result, error) {
	return s.ask(ctx, s.asking, func(q storage.Queryable) (promql.Query, error) {
		return s.engine.NewRangeQuery(ctx, q, nil, query, start, end, step)
	}, false)
}

// CanThin reports whether samples of a query may be left out.
func (s *Store) CanThin(query string) bool { return s.canThin(query) }

// Occupy takes the place of a query until leave is called.
func (s *Store) Occupy() (leave func()) {
	s.asking <- struct{}{}
	return func() { <-s.asking }
}
