package record

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// point is a sample as Prometheus's packages have it.
type point struct {
	t int64 // milliseconds
	v float64
}

func (p *point) T() int64                      { return p.t }
func (p *point) ST() int64                     { return 0 }
func (p *point) F() float64                    { return p.v }
func (p *point) H() *histogram.Histogram       { return nil }
func (p *point) FH() *histogram.FloatHistogram { return nil }
func (p *point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p *point) Copy() chunks.Sample           { c := *p; return &c }

// points holds the samples of one series in memory, oldest first.
type points struct {
	labels labels.Labels
	all    []point
}

func (p *points) Labels() labels.Labels   { return p.labels }
func (p *points) Get(i int) chunks.Sample { return &p.all[i] }
func (p *points) Len() int                { return len(p.all) }

func (p *points) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return storage.NewListSeriesIterator(p)
}

// pointsSet is a series set, sorted by labels.
type pointsSet struct {
	all []*points
	i   int
	err error
}

func (s *pointsSet) Next() bool {
	if s.err != nil || s.i >= len(s.all) {
		return false
	}
	s.i++
	return true
}

func (s *pointsSet) At() storage.Series                { return s.all[s.i-1] }
func (s *pointsSet) Err() error                        { return s.err }
func (s *pointsSet) Warnings() annotations.Annotations { return nil }
