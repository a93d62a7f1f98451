package record

import (
	"math"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/host/sample"
)

func metric(name string, kind sample.Kind, help string, labels ...string) *sample.Metric {
	return &sample.Metric{Name: "linerate_hub_" + name, Kind: kind, Help: help, Labels: labels}
}

var (
	metricSamples = metric("samples_total", sample.Counter,
		"Samples that the hub has appended to the history since it started.")
	metricSeries = metric("series", sample.Gauge, "Series that had a sample in the last minutes.")
	metricBytes  = metric("history_bytes", sample.Gauge,
		"Size of the history on disk: blocks, log and reserve.")
	metricFree     = metric("history_free_bytes", sample.Gauge, "Free space on the file system of the history.")
	metricWritable = metric("history_writable", sample.Gauge, "1: readings go to the disk; 0: they stay in memory.")
	metricKept     = metric("history_kept_seconds", sample.Gauge,
		"Time span of the readings that wait in memory for room on the disk.")
	metricLost = metric("history_lost_readings_total", sample.Counter,
		"Readings dropped from memory before there was room on the disk.")
	metricErrors  = metric("history_write_errors_total", sample.Counter, "Writes of readings or blocks that failed.")
	metricRefused = metric("history_refused_samples_total", sample.Counter,
		"Samples refused because the history had one with the same time.")
	metricQueries = metric("queries_total", sample.Counter,
		"Queries by result: ok, bad, too-much, timeout, canceled, busy, failed.", "result")
	metricQuerying = metric("query_seconds_total", sample.Counter, "Time of all queries.")
)

// Metrics returns the metrics of the store itself, which it adds to every reading.
func Metrics() []*sample.Metric {
	return []*sample.Metric{
		metricSamples, metricSeries, metricBytes, metricFree, metricWritable, metricKept, metricLost, metricErrors,
		metricRefused,
		metricQueries, metricQuerying,
	}
}

var results = []string{"ok", "bad", "too-much", "timeout", "canceled", "busy", "failed"}

// own holds the store's figures about itself.
type own struct {
	samples, errors, refused uint64
	queries                  []uint64 // by result
	querySeconds             float64

	bytes, free int64
	oldestMS    int64          // of the oldest sample on disk
	points      []sample.Point // the fixed ones, then one for each result
	last        time.Time      // of the last reading with them

	counts []count // the last minute, oldest first
}

type count struct {
	at      time.Time
	samples uint64
}

func (o *own) init() {
	o.queries = make([]uint64, len(results))
	for _, m := range Metrics() {
		if len(m.Labels) == 0 {
			o.points = append(o.points, sample.Point{Series: &sample.Series{Metric: m}})
		}
	}
	for _, r := range results {
		o.points = append(o.points, sample.Point{Series: &sample.Series{Metric: metricQueries, Values: []string{r}}})
	}
}

func (o *own) took(samples int) { o.samples += uint64(samples) }

// asked counts a query.
func (s *Store) asked(result string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own.queries[slices.Index(results, result)]++
	s.own.querySeconds += took.Seconds()
}

// ownPoints returns the store's own points for a second, at most once. The caller holds mu.
func (s *Store) ownPoints(at time.Time) []sample.Point {
	if d := at.Sub(s.own.last); d > -time.Second && d < time.Second {
		return nil
	}
	s.own.last = at
	return s.itself()
}

// Own returns the points of the store's own metrics as they are now.
func (s *Store) Own() []sample.Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.itself())
}

func (s *Store) itself() []sample.Point {
	o := &s.own
	for i, p := range o.points {
		o.points[i].Value = s.value(p.Series)
	}
	return o.points
}

func (s *Store) value(of *sample.Series) float64 {
	o := &s.own
	switch of.Metric {
	case metricSamples:
		return float64(o.samples)
	case metricSeries:
		return float64(len(s.refs))
	case metricBytes:
		return float64(o.bytes)
	case metricFree:
		return float64(o.free)
	case metricWritable:
		if s.state == DiskOK {
			return 1
		}
		return 0
	case metricKept:
		return s.kept.span().Seconds()
	case metricLost:
		return float64(s.kept.lost)
	case metricErrors:
		return float64(o.errors)
	case metricRefused:
		return float64(o.refused)
	case metricQuerying:
		return o.querySeconds
	}
	return float64(o.queries[slices.Index(results, of.Values[0])])
}

// span returns the time from the oldest to the newest kept reading, both included.
func (q *kept) span() time.Duration {
	n := len(q.readings)
	if n == 0 {
		return 0
	}
	return time.Duration(q.readings[n-1].timeMS-q.readings[0].timeMS)*time.Millisecond + time.Second
}

// measure updates the sizes and rates.
func (s *Store) measure() {
	s.takeReserve()
	bytes, err := size(s.o.Dir)
	free := s.freeBytes()
	now := time.Now()
	s.access.RLock()
	oldest, oldestErr := s.db.StartTime()
	s.access.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.own
	if o.free = free; err == nil {
		o.bytes = bytes
	}
	if oldestErr == nil && oldest != math.MaxInt64 {
		o.oldestMS = oldest
	}
	o.counts = append(o.counts, count{now, o.samples})
	for len(o.counts) > 2 && now.Sub(o.counts[1].at) >= time.Minute {
		o.counts = o.counts[1:]
	}
}

// Status returns the state of the store.
func (s *Store) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.own
	st := Status{
		Loading: s.loading.Load(), Bytes: o.bytes, FreeBytes: o.free, State: s.state, Since: s.since, Cause: s.cause,
		KeptInMemory: s.kept.span(), Lost: s.kept.lost, Series: len(s.refs), Retention: s.o.Retention,
	}
	if n := len(o.counts); n > 1 {
		st.SamplesPerSecond = float64(o.counts[n-1].samples-o.counts[0].samples) / o.counts[n-1].at.Sub(
			o.counts[0].at).Seconds()
	}
	if s.newestMS > 0 && o.oldestMS > 0 {
		st.Newest = time.UnixMilli(s.newestMS).UTC()
		st.Oldest = time.UnixMilli(o.oldestMS).UTC()
	}
	if n := s.kept.len(); n > 0 {
		st.Newest = time.UnixMilli(s.kept.readings[n-1].timeMS).UTC()
		if st.Oldest.IsZero() {
			st.Oldest = time.UnixMilli(s.kept.readings[0].timeMS).UTC()
		}
	}
	return st
}
