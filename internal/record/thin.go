package record

import (
	"context"
	"errors"
	"math"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// canThin tells whether the windows of a query follow from the hints that the engine gives with each selector: not within subqueries,
// not at fixed times, and not with modifiers that look beyond a window.
func (s *Store) canThin(query string) bool {
	expr, err := s.parser.ParseExpr(query)
	if err != nil {
		return false
	}
	can := true
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.SubqueryExpr:
			can = false
		case *parser.VectorSelector:
			if n.Timestamp != nil || n.StartOrEnd != 0 || n.Anchored || n.Smoothed {
				can = false
			}
		}
		return nil
	})
	return can
}

// thinner leaves out samples that cannot change an answer. Of a window that begins and ends with a sample, a rate is the same whether
// the samples between are there or not, apart from those beside a reset; of a selector without a window the newest sample before each
// step is all that counts. The engine then walks over two samples a step instead of a hundred.
type thinner struct {
	storage.Querier
	chunks func() (storage.ChunkQuerier, error)
	open   []storage.ChunkQuerier
}

func (q *thinner) Close() error {
	for _, c := range q.open {
		_ = c.Close()
	}
	return q.Querier.Close()
}

func (q *thinner) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	w, ok := windowsOf(hints)
	if !ok {
		return q.Querier.Select(ctx, sorted, hints, matchers...)
	}
	c, err := q.chunks()
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	q.open = append(q.open, c)
	whole := *hints
	whole.DisableTrimming = true // would encode the first and the last chunk again
	set := &pointsSet{}
	from := c.Select(ctx, true, &whole, matchers...)
	var t thinning
	for from.Next() {
		if set.err = ctx.Err(); set.err != nil {
			return set
		}
		p, err := t.thin(from.At(), w)
		if errors.Is(err, errOverlap) {
			return q.Querier.Select(ctx, sorted, hints, matchers...)
		}
		if err != nil {
			set.err = err
			return set
		}
		if len(p.all) > 0 {
			set.all = append(set.all, p)
		}
	}
	set.err = from.Err()
	return set
}

// windows are those that a selector has at the steps of a query: from the one that ends at first to the one that ends at last. Each is
// open at its beginning.
type windows struct {
	first, last, step, length int64 // milliseconds
	bare                      bool  // no window: its end is a step, and the sample may be as old as lookback
	pairs                     bool  // of a rate: the first sample matters, and those beside resets
	two                       bool  // the last two matter
}

// lookback is how old a sample may be that a selector without a window still shows: the engine's own.
const lookback = 5 * 60 * 1000

func windowsOf(h *storage.SelectHints) (windows, bool) {
	if h == nil || h.Step <= 0 || h.Limit > 0 || h.ShardCount > 0 {
		return windows{}, false
	}
	w := windows{step: h.Step, last: h.End, length: h.Range}
	switch {
	case h.Range == 0:
		w.bare, w.length = true, lookback
	case h.Func == "rate" || h.Func == "increase":
		w.pairs = true
	case h.Func == "irate":
		w.two = true
	default:
		return windows{}, false
	}
	w.first = h.Start - 1 + w.length // windows are open at their beginning: the engine asks from a millisecond after it
	return w, w.first <= w.last
}

// thinning has the buffers of one query.
type thinning struct {
	it     chunkenc.Iterator // to be used again
	metas  chunks.Iterator
	chunk  chunkenc.Iterator // of the chunk that is being read
	last   int64             // time of the sample before
	inside []inside
}

// inside is a sample within a window.
type inside struct {
	point
	keep bool
}

// errOverlap says that chunks of a series overlap, which samples that came late may do until they are merged.
var errOverlap = errors.New("chunks overlap")

// next gives the samples of a series one after the other.
func (t *thinning) next() (int64, float64, bool, error) {
	for {
		if t.chunk != nil {
			switch t.chunk.Next() {
			case chunkenc.ValFloat:
				at, v := t.chunk.At()
				t.last = at
				return at, v, true, nil
			case chunkenc.ValNone:
				if err := t.chunk.Err(); err != nil {
					return 0, 0, false, err
				}
			}
		}
		if !t.metas.Next() {
			t.chunk = nil
			return 0, 0, false, t.metas.Err()
		}
		if t.metas.At().MinTime <= t.last {
			return 0, 0, false, errOverlap
		}
		t.it = t.metas.At().Chunk.Iterator(t.it)
		t.chunk = t.it
	}
}

// thin gives the samples of a series that matter.
func (t *thinning) thin(series storage.ChunkSeries, w windows) (*points, error) {
	out := &points{labels: series.Labels()}
	t.metas, t.chunk = series.Iterator(t.metas), nil
	t.last = math.MinInt64
	at, v, more, err := t.next()
	buf, head := t.inside[:0], 0
	for end := w.first; end <= w.last; end += w.step {
		begin := end - w.length
		for ; more && at <= end; at, v, more, err = t.next() {
			if at <= w.first-w.length || (!w.bare && isStale(v)) {
				continue
			}
			buf = append(buf, inside{point{at, v}, false})
		}
		if err != nil {
			return nil, err
		}
		for head < len(buf) && buf[head].t <= begin {
			if buf[head].keep {
				out.all = append(out.all, buf[head].point)
			}
			head++
		}
		w.mark(buf[head:], begin, end)
		if head > 1<<16 {
			buf = append(buf[:0], buf[head:]...)
			head = 0
		}
	}
	for _, s := range buf[head:] {
		if s.keep {
			out.all = append(out.all, s.point)
		}
	}
	t.inside = buf[:0]
	return out, nil
}

func isStale(v float64) bool { return math.Float64bits(v) == value.StaleNaN }

func (w windows) mark(in []inside, begin, end int64) {
	n := len(in)
	if n == 0 {
		return
	}
	in[n-1].keep = true
	if w.two && n > 1 {
		in[n-2].keep = true
	}
	if !w.pairs {
		return
	}
	in[0].keep = true
	if n < 3 {
		return
	}
	// What a rate adds for the time before the first and after the last sample depends on how many there are, if that time is longer
	// than samples are apart.
	apart := 1.1 * float64(in[n-1].t-in[0].t) / float64(n-1)
	if whole := float64(in[0].t-begin) >= apart || float64(end-in[n-1].t) >= apart; whole {
		for i := range in {
			in[i].keep = true
		}
		return
	}
	for i := 1; i < n; i++ {
		if !(in[i].v >= in[i-1].v) { // a reset, or not a number
			in[i-1].keep, in[i].keep = true, true
		}
	}
}
