package record_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/host/sample"
)

func TestBounds(t *testing.T) {
	s := open(t, record.Options{Retention: 365 * 24 * time.Hour, Queries: record.Bounds{Samples: 5_000, Points: 100}})
	some(t, s, 100, 0, 1000)
	ctx := t.Context()
	end := noon.Add(999 * time.Second)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx        context.Context
		query      string
		start, end time.Time
		step       time.Duration
		want       error
	}{
		"fits":                    {ctx, "sum(rate(linerate_test_total[1m]))", noon, end, 50 * time.Second, nil},
		"no PromQL":               {ctx, "rate(", noon, end, 20 * time.Second, record.ErrBadQuery},
		"no step":                 {ctx, "1", noon, end, 0, record.ErrBadQuery},
		"the end first":           {ctx, "1", end, noon, time.Second, record.ErrBadQuery},
		"too many points":         {ctx, "1", noon, end, time.Second, record.ErrTooMuch},
		"as many as there may be": {ctx, "1", noon, noon.Add(99 * time.Second), time.Second, nil},
		"one more":                {ctx, "1", noon, noon.Add(100 * time.Second), time.Second, record.ErrTooMuch},
		"too many samples":        {ctx, "linerate_test_total", noon, end, 11 * time.Second, record.ErrTooMuch},
		"canceled": {canceled, "sum(rate(linerate_test_total[1m]))", noon, end, 20 * time.Second,
			record.ErrCanceled},
		"a subquery of seconds": {ctx, "sum_over_time((vector(1))[1000h:1s])", noon, noon, time.Second,
			record.ErrTooMuch},
		"a subquery in another": {ctx, "sum_over_time((sum_over_time((vector(1))[30h:1s]))[30h:1s])", noon, noon,
			time.Second, record.ErrTooMuch},
		"a subquery":              {ctx, "max_over_time((sum(linerate_test_total))[10m:])", end, end, time.Second, nil},
		"one window of a century": {ctx, "sum_over_time(linerate_test_total[100y])", end, end, time.Second, nil},
		"windows of a year": {ctx, "sum_over_time(linerate_test_total[1y])", noon, noon.Add(99 * time.Second),
			time.Second, record.ErrTooMuch},
	} {
		if _, err := s.Matrix(c.ctx, c.query, c.start, c.end, c.step); !errors.Is(err, c.want) ||
			(err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	var queries float64
	for _, p := range s.Own() {
		if p.Series.Metric.Name == "linerate_hub_queries_total" {
			queries += p.Value
		}
	}
	if queries != 14 {
		t.Errorf("%v queries were counted, want %d", queries, 14)
	}
}

// TestBusy allows one query at a time: others wait as long as one may take, and then fail.
func TestBusy(t *testing.T) {
	s := open(t, record.Options{Queries: record.Bounds{Time: time.Millisecond, Concurrent: 1}})
	leave := s.Occupy()
	if _, err := s.Instant(t.Context(), "1", noon); !errors.Is(err, record.ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Vector(canceled, "1", noon); !errors.Is(err, record.ErrCanceled) {
		t.Errorf("%v, want ErrCanceled", err)
	}
	leave()
	s = open(t, record.Options{Queries: record.Bounds{Time: time.Nanosecond}})
	if _, err := s.Vector(t.Context(), "1", noon); !errors.Is(err, record.ErrTimeout) {
		t.Errorf("%v, want ErrTimeout", err)
	}
}

// TestSameSecond reopens the history within a second: the sample of that second stays, and later
// ones follow.
func TestSameSecond(t *testing.T) {
	dir := t.TempDir()
	s := open(t, record.Options{Dir: dir})
	some(t, s, killSeries, 0, 50)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, record.Options{Dir: dir})
	one := series(tested, "0")
	if err := s.Append(&sample.Reading{Time: noon.Add(49 * time.Second),
		Points: []sample.Point{{Series: one, Value: 1e9}}}); err != nil {
		t.Fatal(err)
	}
	some(t, s, killSeries, 50, 50)
	if err := verify(s, 0, 100); err != nil {
		t.Error(err)
	}
}

// TestClockGoesBack appends an hour, sets the clock back, and goes on: no error, and later samples
// are there.
func TestClockGoesBack(t *testing.T) {
	for _, by := range []time.Duration{time.Second, 10 * time.Minute, 3 * time.Hour, 24 * 365 * 10 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, record.Options{Dir: dir})
			before, after := series(tested, "before"), series(tested, "after")
			ahead := noon.Add(by)
			for i := range 3600 {
				at := ahead.Add(time.Duration(i-3600) * time.Second)
				if err := s.Append(&sample.Reading{Time: at,
					Points: []sample.Point{{Series: before, Value: float64(i)}}}); err != nil {
					t.Fatal(err)
				}
				if i%60 == 0 {
					s.Maintain(at)
				}
			}
			step := func(from, to int) {
				t.Helper()
				for i := from; i < to; i++ {
					at := noon.Add(time.Duration(i) * time.Second)
					if err := s.Append(&sample.Reading{Time: at, Points: []sample.Point{{Series: before, Value: 1},
						{Series: after, Value: float64(i)}}}); err != nil {
						t.Fatal(err)
					}
					if i%60 == 0 {
						s.Maintain(at.Add(time.Duration(i) * time.Hour))
					}
				}
				got, err := s.Matrix(t.Context(), "linerate_test_total{series=\"after\"}", noon,
					noon.Add(time.Duration(to-1)*time.Second), time.Second)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != 1 || len(got[0].Values) != to {
					t.Fatalf("%d series after the clock went back, want one with %d samples", len(got), to)
				}
				for i, v := range got[0].Values {
					if v != float64(i) {
						t.Fatalf("second %d has %v", i, v)
					}
				}
			}
			step(0, 600)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, record.Options{Dir: dir})
			step(600, 1200)
			if st := s.Status(); st.State != record.DiskOK {
				t.Errorf("status %+v", st)
			}
			got, err := s.Vector(t.Context(), `count_over_time(linerate_test_total{series="before"}[1h])`,
				ahead.Add(-time.Second))
			if err != nil || len(got) != 1 || got[0].Value < 3600 {
				t.Errorf("before the clock went back: %v, %v, want 3600 samples", got, err)
			}
		})
	}
}

// TestKeptIsBounded fills the memory too: the store drops the oldest readings, and counts them.
func TestKeptIsBounded(t *testing.T) {
	s := open(t, record.Options{MinFreeBytes: 1 << 60, KeptBytes: 200_000})
	some(t, s, 100, 0, 1000)
	st := s.Status()
	if st.State != record.DiskFull || st.Lost == 0 || st.KeptInMemory > 250*time.Second ||
		st.KeptInMemory < 150*time.Second {
		t.Errorf("status %+v, want some 200 s in memory and the rest lost", st)
	}
	if st.KeptInMemory+time.Duration(st.Lost)*time.Second != 1000*time.Second {
		t.Errorf("%v in memory and %d readings lost of 1000", st.KeptInMemory, st.Lost)
	}
	got, err := s.Vector(t.Context(), "count(linerate_test_total)", noon.Add(999*time.Second))
	if err != nil || len(got) != 1 || got[0].Value != 100 {
		t.Errorf("%v, %v, want 100 series in memory", got, err)
	}
	q, err := s.Querier(noon, noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	values, _, err := q.LabelValues(t.Context(), "host", nil)
	if err != nil || len(values) != 1 || values[0] != "near" {
		t.Errorf("hosts %v, %v", values, err)
	}
	names, _, err := q.LabelNames(t.Context(), nil)
	if err != nil || len(names) != 4 { // __name__, host, result, series
		t.Errorf("names %v, %v", names, err)
	}
}
