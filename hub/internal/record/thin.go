package record

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// canThin reports whether the windows of a query follow from the hints that the engine gives with
// each selector: not within subqueries, not at fixed times, and not with modifiers that look beyond
// a window.
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

// thinner leaves out samples that cannot change an answer. A rate depends on the first and the last
// sample of its window, their number, and the samples beside a reset; a selector without a window
// on the newest sample before each step. The engine then reads two samples a step instead of a
// hundred: BenchmarkThinning takes a third of the time.
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

func (q *thinner) Select(ctx context.Context, sorted bool, hints *storage.SelectHints,
	matchers ...*labels.Matcher) storage.SeriesSet {
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
	whole.DisableTrimming = true // would re-encode the first and the last chunk
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

// windows are those of a selector at the steps of a query: from the one that ends at first to the
// one that ends at last. Each is open at its start.
type windows struct {
	first, last, step, length int64 // milliseconds
	bare                      bool  // no window: it ends at a step, and the sample may be as old as lookback
	pairs                     bool  // of a rate: the first sample matters, and those beside resets
	two                       bool  // the last two matter
}

// lookback is the engine's largest age of a sample for a selector without a window.
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
	w.first = h.Start - 1 + w.length // windows are open at their start: the engine asks from a millisecond after it
	return w, w.first <= w.last
}

// thinning holds the buffers of one query.
type thinning struct {
	it      chunkenc.Iterator
	metas   chunks.Iterator
	samples []point  // samples that a window may still need, oldest first
	kept    []uint64 // one bit for each sample
	resets  []int    // indexes of samples that are smaller than the one before
}

// errOverlap reports overlapping chunks of a series, which late samples may cause until the blocks
// are merged.
var errOverlap = errors.New("chunks overlap")

// next reads another chunk; false: no more.
func (t *thinning) next(markers bool) (bool, error) {
	if !t.metas.Next() {
		return false, t.metas.Err()
	}
	meta := t.metas.At()
	n := len(t.samples)
	if n > 0 && meta.MinTime <= t.samples[n-1].t {
		return false, errOverlap
	}
	read := false
	if meta.Chunk.Encoding() == chunkenc.EncXOR2 {
		t.samples, read = appendXOR2(t.samples, meta.Chunk.Bytes())
	}
	if !read {
		t.samples = t.samples[:n]
		t.it = meta.Chunk.Iterator(t.it)
		for t.it.Next() == chunkenc.ValFloat {
			at, v := t.it.At()
			t.samples = append(t.samples, point{at, v})
		}
		if err := t.it.Err(); err != nil {
			return false, err
		}
	}
	t.look(n, markers)
	for len(t.kept)*64 < len(t.samples) {
		t.kept = append(t.kept, 0)
	}
	return true, nil
}

// look checks new samples from an index on: it deletes staleness markers unless the query needs
// them, and records resets.
func (t *thinning) look(n int, markers bool) {
	before := math.Inf(-1)
	if n > 0 {
		before = t.samples[n-1].v
	}
	for i, p := range t.samples[n:] {
		if !(p.v >= before) { // or NaN
			if !markers && math.Float64bits(p.v) == value.StaleNaN {
				t.samples = slices.Delete(t.samples, n+i, n+i+1)
				t.look(n+i, markers)
				return
			}
			t.resets = append(t.resets, n+i)
		}
		before = p.v
	}
}

func (t *thinning) keep(i int) { t.kept[i/64] |= 1 << (i % 64) }

// past returns the index of the first sample after a time, at or behind an index.
func (t *thinning) past(from int, time int64) int {
	// It is often as far away as last time; exponential steps find it soon.
	step, to := 64, from
	for to < len(t.samples) && t.samples[to].t <= time {
		from = to + 1
		to += step
		step *= 2
	}
	to = min(to, len(t.samples))
	return from + sort.Search(to-from, func(i int) bool { return t.samples[from+i].t > time })
}

// thin returns the samples of a series that matter.
func (t *thinning) thin(series storage.ChunkSeries, w windows) (*points, error) {
	out := &points{labels: series.Labels()}
	t.metas = series.Iterator(t.metas)
	t.samples, t.kept, t.resets = t.samples[:0], t.kept[:0], t.resets[:0]
	more, low, high := true, 0, 0 // the samples of a window are those from low to before high
	var err error
	for end := w.first; end <= w.last; end += w.step {
		for more && (len(t.samples) == 0 || t.samples[len(t.samples)-1].t <= end) {
			if more, err = t.next(w.bare); err != nil {
				return nil, err
			}
		}
		low, high = t.past(low, end-w.length), t.past(high, end)
		t.mark(low, high, end, w)
		if low > 1<<16 {
			n := low / 64 * 64
			t.take(out, n)
			t.samples = append(t.samples[:0], t.samples[n:]...)
			t.kept = append(t.kept[:0], t.kept[n/64:]...)
			gone := sort.SearchInts(t.resets, n)
			t.resets = append(t.resets[:0], t.resets[gone:]...)
			for i := range t.resets {
				t.resets[i] -= n
			}
			low, high = low-n, high-n
		}
	}
	t.take(out, len(t.samples))
	return out, nil
}

// take moves the kept ones of the first samples.
func (t *thinning) take(out *points, n int) {
	for i, word := range t.kept[:(n+63)/64] {
		for ; word != 0; word &= word - 1 {
			out.all = append(out.all, t.samples[i*64+bits.TrailingZeros64(word)])
		}
	}
}

// mark keeps what matters in the window from low to before high.
func (t *thinning) mark(low, high int, end int64, w windows) {
	n := high - low
	if n <= 0 {
		return
	}
	t.keep(high - 1)
	if w.two && n > 1 {
		t.keep(high - 2)
	}
	if !w.pairs {
		return
	}
	t.keep(low)
	if n < 3 {
		return
	}
	// If the time before the first or after the last sample exceeds the distance of samples, a rate
	// extrapolates by the number of samples.
	first, last := t.samples[low].t, t.samples[high-1].t
	apart := 1.1 * float64(last-first) / float64(n-1)
	if float64(first-(end-w.length)) >= apart || float64(end-last) >= apart {
		for i := low; i < high; i++ {
			t.keep(i)
		}
		return
	}
	for _, i := range t.resets[sort.SearchInts(t.resets, low+1):] {
		if i >= high {
			break
		}
		t.keep(i - 1)
		t.keep(i)
	}
}
