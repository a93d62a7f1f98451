package record

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// Labelled is the value of one series at one time.
type Labelled struct {
	Labels map[string]string
	Time   time.Time
	Value  float64
}

// Row is one series over time. Both slices have one length, oldest first.
type Row struct {
	Labels map[string]string
	Times  []time.Time
	Values []float64
}

// Vector evaluates a query of the hub itself at one time, in a place that queries of users do not
// take, and returns plain values for packages that do not know Prometheus's types. A scalar has no
// labels. A query that returns text or a range gets [ErrBadQuery].
func (s *Store) Vector(ctx context.Context, query string, at time.Time) ([]Labelled, error) {
	r, err := s.instant(ctx, query, at, s.reserved)
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, typed(r.Err)
	}
	switch v := r.Value.(type) {
	case promql.Vector:
		out := make([]Labelled, len(v))
		for i, p := range v {
			out[i] = Labelled{p.Metric.Map(), time.UnixMilli(p.T).UTC(), p.F}
		}
		return out, nil
	case promql.Scalar:
		return []Labelled{{map[string]string{}, time.UnixMilli(v.T).UTC(), v.V}}, nil
	}
	return nil, fmt.Errorf("%w: %q returns a %s, not a vector", ErrBadQuery, query, r.Value.Type())
}

// Matrix evaluates a query for every step from start to end, and returns plain values.
func (s *Store) Matrix(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]Row, error) {
	r, err := s.Range(ctx, query, start, end, step)
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, typed(r.Err)
	}
	m, err := r.Matrix()
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrBadQuery, query, err)
	}
	out := make([]Row, len(m))
	for i, series := range m {
		row := Row{Labels: series.Metric.Map(), Times: make([]time.Time, len(series.Floats)),
			Values: make([]float64, len(series.Floats))}
		for j, p := range series.Floats {
			row.Times[j], row.Values[j] = time.UnixMilli(p.T).UTC(), p.F
		}
		out[i] = row
	}
	return out, nil
}
