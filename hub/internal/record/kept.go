package record

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// kept holds readings that wait for room on the disk, oldest first.
type kept struct {
	readings []reading
	bytes    int64
	limit    int64
	lost     uint64 // dropped readings
}

func (q *kept) len() int { return len(q.readings) }

// push adds a copy. Readings of the same series share the list of series.
func (q *kept) push(e *reading) {
	if len(e.series) == 0 {
		return
	}
	c := reading{timeMS: e.timeMS, values: slices.Clone(e.values)}
	if n := len(q.readings); n > 0 && slices.Equal(q.readings[n-1].series, e.series) {
		c.series = q.readings[n-1].series
	} else {
		c.series = slices.Clone(e.series)
		q.bytes += 8 * int64(len(c.series))
	}
	q.bytes += 8*int64(len(c.values)) + 64
	q.readings = append(q.readings, c)
	for q.bytes > q.limit && len(q.readings) > 1 {
		q.drop(1)
		q.lost++
	}
}

// drop removes the oldest.
func (q *kept) drop(n int) {
	for i := range n {
		e := &q.readings[i]
		q.bytes -= 8*int64(len(e.values)) + 64
		if i+1 == len(q.readings) || &q.readings[i+1].series[:1][0] != &e.series[:1][0] {
			q.bytes -= 8 * int64(len(e.series))
		}
		*e = reading{}
	}
	q.readings = q.readings[n:]
	if len(q.readings) == 0 {
		q.readings, q.bytes = nil, 0
	}
}

// between returns a querier of the kept readings between two times in ms, or nil if there are none.
func (q *kept) between(mint, maxt int64) storage.Querier {
	var in []reading
	for _, e := range q.readings {
		if e.timeMS >= mint && e.timeMS <= maxt {
			in = append(in, e)
		}
	}
	if len(in) == 0 {
		return nil
	}
	return &keptQuerier{readings: in}
}

// keptQuerier is a storage.Querier of kept readings, which never change.
type keptQuerier struct{ readings []reading }

func (k *keptQuerier) matching(matchers []*labels.Matcher) map[*known]bool {
	out := make(map[*known]bool)
	for i, e := range k.readings {
		if i > 0 && len(e.series) > 0 && len(k.readings[i-1].series) > 0 && &e.series[0] == &k.readings[i-1].series[0] {
			continue
		}
		for _, series := range e.series {
			if _, ok := out[series]; !ok {
				out[series] = !slices.ContainsFunc(matchers,
					func(m *labels.Matcher) bool { return !m.Matches(series.labels.Get(m.Name)) })
			}
		}
	}
	maps.DeleteFunc(out, func(_ *known, matches bool) bool { return !matches })
	return out
}

func (k *keptQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
	wanted := k.matching(matchers)
	at := make(map[uint64]*points, len(wanted))
	for _, e := range k.readings {
		for i, series := range e.series {
			if !wanted[series] {
				continue
			}
			hash := series.labels.Hash()
			p := at[hash]
			if p == nil {
				p = &points{labels: series.labels}
				at[hash] = p
			}
			if n := len(p.all); n == 0 || p.all[n-1].t < e.timeMS {
				p.all = append(p.all, point{e.timeMS, e.values[i]})
			}
		}
	}
	all := slices.SortedFunc(maps.Values(at), func(a, b *points) int { return labels.Compare(a.labels, b.labels) })
	return &pointsSet{all: all}
}

func (k *keptQuerier) LabelValues(_ context.Context, name string, _ *storage.LabelHints,
	matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values := make(map[string]bool)
	for series := range k.matching(matchers) {
		if v := series.labels.Get(name); v != "" {
			values[v] = true
		}
	}
	return slices.Sorted(maps.Keys(values)), nil, nil
}

func (k *keptQuerier) LabelNames(_ context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	names := make(map[string]bool)
	for series := range k.matching(matchers) {
		series.labels.Range(func(l labels.Label) { names[l.Name] = true })
	}
	return slices.Sorted(maps.Keys(names)), nil, nil
}

func (*keptQuerier) Close() error { return nil }
