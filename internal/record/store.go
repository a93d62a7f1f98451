package record

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/linerate/linerate/internal/sample"
)

// Options of a store.
type Options struct {
	Dir       string
	Host      string        // the label host of all that is appended
	Retention time.Duration // 0: 15 days
	MaxBytes  int64         // of blocks and log together; 0: no bound
	Logger    *slog.Logger
}

// Store keeps series.
type Store struct {
	db     *tsdb.DB
	engine *promql.Engine
	host   string
	keep   time.Duration

	mu   sync.Mutex
	refs map[*sample.Series]ref
}

type ref struct {
	labels labels.Labels
	id     storage.SeriesRef
}

// Open opens the directory, or makes it.
func Open(o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	db, err := tsdb.Open(o.Dir, o.Logger, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return nil, fmt.Errorf("open history %s: %w", o.Dir, err)
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50e6, Timeout: 10 * time.Second, Logger: o.Logger, Parser: parser.NewParser(parser.Options{})})
	return &Store{db: db, engine: engine, host: o.Host, keep: o.Retention, refs: make(map[*sample.Series]ref)}, nil
}

// Append stores a reading, and marks what ended in it: no query sees the series of things that are gone after their end. Many may append.
func (s *Store) Append(r *sample.Reading) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	app := s.db.Appender(context.Background())
	for _, p := range r.Points {
		known := s.refs[p.Series]
		if known.labels.IsEmpty() {
			b := labels.NewScratchBuilder(len(p.Series.Values) + 2)
			b.Add(labels.MetricName, p.Series.Metric.Name)
			b.Add("host", s.host)
			for i, name := range p.Series.Metric.Labels {
				b.Add(name, p.Series.Values[i])
			}
			b.Sort()
			known.labels = b.Labels()
		}
		id, err := app.Append(known.id, known.labels, r.Time.UnixMilli(), p.Value)
		if err != nil {
			_ = app.Rollback()
			return fmt.Errorf("append to history: %w", err)
		}
		known.id = id
		s.refs[p.Series] = known
	}
	stale := math.Float64frombits(value.StaleNaN)
	for _, ended := range r.Ended {
		known, ok := s.refs[ended]
		if !ok {
			continue
		}
		// Out of order, or twice at a time: then another series under the same labels has begun, which is as good as an end.
		_, _ = app.Append(known.id, known.labels, r.Time.UnixMilli(), stale)
		delete(s.refs, ended)
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("append to history: %w", err)
	}
	return nil
}

// Instant answers a query for one moment.
func (s *Store) Instant(ctx context.Context, query string, at time.Time) (*promql.Result, error) {
	q, err := s.engine.NewInstantQuery(ctx, s.db, nil, query, at)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadQuery, err)
	}
	return q.Exec(ctx), nil
}

// Range answers a query for every step from start to end.
func (s *Store) Range(ctx context.Context, query string, start, end time.Time, step time.Duration) (*promql.Result, error) {
	q, err := s.engine.NewRangeQuery(ctx, s.db, nil, query, start, end, step)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadQuery, err)
	}
	return q.Exec(ctx), nil
}

// Querier gives the series between two moments as Prometheus's packages read them.
func (s *Store) Querier(start, end time.Time) (storage.Querier, error) {
	return s.db.Querier(start.UnixMilli(), end.UnixMilli())
}

// Status says how the store is.
func (s *Store) Status() Status {
	h := s.db.Head()
	return Status{State: DiskOK, Retention: s.keep, Series: int(h.NumSeries()), Oldest: time.UnixMilli(h.MinTime()), Newest: time.UnixMilli(h.MaxTime())}
}

// Close ends it.
func (s *Store) Close() error { return s.db.Close() }
