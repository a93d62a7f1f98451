package record_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/host/sample"
)

// irregular appends a history with everything that happens to series: gaps, resets, ends, idle
// times, readings beside their tick, a clock that was set back.
func irregular(t *testing.T, s *record.Store, seconds int) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	var ss []*sample.Series
	values := make([]float64, 6)
	for i := range values {
		ss = append(ss, series(received, fmt.Sprint("eth", i)))
	}
	gap := 0
	at := noon
	for i := range seconds {
		at = at.Add(time.Second)
		if i == seconds*2/3 {
			at = at.Add(-10 * time.Minute)
		}
		if gap > 0 {
			gap--
			continue
		}
		if random.IntN(400) == 0 {
			gap = random.IntN(200)
		}
		r := &sample.Reading{Time: at}
		if random.IntN(300) == 0 {
			r.Time = at.Add(time.Duration(random.IntN(900)) * time.Millisecond)
		}
		for j := range values {
			switch {
			case j == 1 && random.IntN(300) == 0, j == 2 && random.IntN(20) == 0:
				values[j] = float64(random.IntN(10)) // a reset
			case j == 3 && i/700%2 == 1: // comes and goes
				if i%700 == 0 {
					r.Ended = append(r.Ended, ss[j])
					ss[j] = series(received, fmt.Sprint("eth", j))
					values[j] = 0
				}
				continue
			case j == 4: // idle
			case j == 5 && random.IntN(2) == 0: // every other reading
				continue
			default:
				values[j] += float64(random.IntN(1e9))
			}
			r.Points = append(r.Points, sample.Point{Series: ss[j], Value: values[j]})
		}
		if err := s.Append(r); err != nil {
			t.Fatal(err)
		}
		if i%60 == 0 {
			s.Maintain(at)
		}
	}
}

// TestThinningChangesNoAnswer runs many queries twice: with samples left out that cannot matter,
// and with all.
func TestThinningChangesNoAnswer(t *testing.T) {
	const seconds = 8000
	s := open(t, record.Options{})
	irregular(t, s, seconds)
	random := rand.New(rand.NewPCG(5, 6))
	thinned := 0
	for range 400 {
		step := time.Duration(1+random.IntN(200)) * time.Second
		switch random.IntN(5) {
		case 0:
			step = time.Duration(1+random.IntN(20)) * time.Second
		case 1:
			step = time.Duration(100+random.IntN(20000)) * time.Millisecond
		}
		start := noon.Add(time.Duration(random.IntN(seconds*1000)) * time.Millisecond).Add(-time.Minute)
		if random.IntN(2) == 0 {
			start = start.Truncate(time.Second)
		}
		end := start.Add(time.Duration(random.IntN(3600)) * time.Second)
		if end.Sub(start)/step > 10000 {
			continue
		}
		window := fmt.Sprintf("[%dms]", 1+random.IntN(400000))
		if random.IntN(3) > 0 {
			window = fmt.Sprintf("[%ds]", 1+random.IntN(400))
		}
		name := "linerate_interface_receive_bytes_total"
		query := []string{
			"rate(" + name + window + ")",
			"increase(" + name + window + ")",
			"irate(" + name + window + ")",
			"sum(rate(" + name + window + ")) by (interface)",
			"rate(" + name + window + " offset 47s) / ignoring(x) increase(" + name + "[2m])",
			"topk(2, rate(" + name + window + "))",
			name,
			"max(" + name + ") - min(" + name + " offset 3m)",
			"timestamp(" + name + ")",
			"changes(" + name + window + ")",
			"max_over_time(rate(" + name + window + ")[5m:10s])",
			"rate(" + name + window + " @ " + fmt.Sprint(start.Unix()) + ")",
			"absent(" + name + `{interface="eth3"})`,
			"delta(" + name + window + ")",
		}[random.IntN(14)]
		if s.CanThin(query) {
			thinned++
		}
		got, err := s.Range(t.Context(), query, start, end, step)
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.WholeRange(t.Context(), query, start, end, step)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Fatalf("%s from %v to %v step %v: samples were left out that matter (-whole +thinned):\n%s", query, start,
				end, step, diff)
		}
		if _, ok := got.Value.(promql.Matrix); !ok {
			t.Fatalf("%s gives %T", query, got.Value)
		}
	}
	if thinned < 200 {
		t.Errorf("of 400 queries only %d could leave samples out: the test shows little", thinned)
	}
}

// BenchmarkThinning evaluates twelve hours of rates of 40 interfaces as a page does: with the
// samples left out that cannot change the answer, and with all.
func BenchmarkThinning(b *testing.B) {
	const seconds = 12 * 3600
	s, err := record.Open(record.Options{Dir: b.TempDir(), Host: "near"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	random := rand.New(rand.NewPCG(7, 7))
	points := make([]sample.Point, 40)
	for i := range points {
		points[i].Series = series(received, fmt.Sprint("eth", i))
	}
	for i := range seconds {
		for j := range points {
			points[j].Value += float64(random.IntN(1e6))
		}
		at := noon.Add(time.Duration(i) * time.Second)
		if err := s.Append(&sample.Reading{Time: at, Points: points}); err != nil {
			b.Fatal(err)
		}
		if i%60 == 0 {
			s.Maintain(at)
		}
	}
	end := noon.Add(seconds * time.Second)
	query := "rate(linerate_interface_receive_bytes_total[2m])"
	for name, ask := range map[string]func(context.Context, string, time.Time, time.Time,
		time.Duration) (*promql.Result, error){"thinned": s.Range, "whole": s.WholeRange} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := ask(b.Context(), query, noon, end, 100*time.Second); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
