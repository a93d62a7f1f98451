package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/sample"
)

// autoregressive returns n values around a mean of 100 with a standard deviation of 20, with a
// correlation of r between neighbours.
func autoregressive(source *rand.Rand, n int, r float64) []float64 {
	out := make([]float64, n)
	x := source.NormFloat64()
	for i := range out {
		out[i] = 100 + 20*x
		x = r*x + math.Sqrt(1-r*r)*source.NormFloat64()
	}
	return out
}

// TestIntervalHoldsTheTruth counts how often the interval of the ratio holds the true one, for
// series of different correlation and length.
func TestIntervalHoldsTheTruth(t *testing.T) {
	rounds := testenv.Sample(2000, 300)
	for _, c := range []struct {
		r             float64
		before, after int
	}{{0, 120, 120}, {0.5, 120, 120}, {0.8, 300, 300}, {0.9, 300, 300}, {0.9, 600, 600}, {0.7, 1200, 300},
		{0.9, 120, 120}, {0.95, 600, 600}} {
		t.Run(fmt.Sprintf("%v of %d and %d", c.r, c.before, c.after), func(t *testing.T) {
			source := rand.New(rand.NewPCG(7, uint64(100*c.r)))
			held := 0
			for range rounds {
				after := autoregressive(source, c.after, c.r)
				for i := range after {
					after[i] *= 1.3
				}
				_, low, high := ratio(pairOf(autoregressive(source, c.before, c.r), after))
				if low <= 1.3 && 1.3 <= high {
					held++
				}
			}
			share := float64(held) / float64(rounds)
			t.Logf("%.3f", share)
			// Two standard errors of the count are allowed, and 0.01 besides. An interval may be
			// wider than it has to be.
			if least := 0.94 - 2*math.Sqrt(0.95*0.05/float64(rounds)); share < least {
				t.Errorf("the interval holds the true ratio in %.3f of the cases, want 0.95", share)
			}
		})
	}
}

// TestNothingMovedByChance counts comparisons of equal intervals in which a row moved.
func TestNothingMovedByChance(t *testing.T) {
	const metrics = 60
	rounds := testenv.Sample(300, 30)
	for _, c := range []struct {
		r             float64
		before, after int
	}{{0, 120, 120}, {0.5, 300, 300}, {0.9, 300, 300}, {0.9, 1200, 300}, {0.9, 120, 120}} {
		t.Run(fmt.Sprintf("%v of %d and %d", c.r, c.before, c.after), func(t *testing.T) {
			source := rand.New(rand.NewPCG(11, uint64(100*c.r)))
			wrong := 0
			for range rounds {
				var pairs []pair
				for m := range metrics {
					b, a := autoregressive(source, c.before, c.r), autoregressive(source, c.after, c.r)
					switch m % 4 {
					case 1: // drops: nothing, mostly
						for _, side := range [][]float64{b, a} {
							for i, v := range side {
								side[i] = math.Max(0, v-140)
							}
						}
					case 2: // a level that never changes
						for _, side := range [][]float64{b, a} {
							for i := range side {
								side[i] = 1500
							}
						}
					}
					pairs = append(pairs, pairOf(b, a))
				}
				for _, v := range judge(pairs) {
					if v.moved {
						wrong++
						break
					}
				}
			}
			share := float64(wrong) / float64(rounds)
			t.Logf("%.3f", share)
			// At most 0.05 and two standard errors of the count. The sources are seeded: every run
			// gives the same count.
			if share > 0.045+2*math.Sqrt(0.05*0.95/float64(rounds)) {
				t.Errorf("in %.3f of the comparisons something moved that did not", share)
			}
		})
	}
}

// TestWhatMovedIsFound is the opposite: one metric of 60 grows by a third, and the comparison finds
// it almost always.
func TestWhatMovedIsFound(t *testing.T) {
	rounds := testenv.Sample(100, 20)
	source := rand.New(rand.NewPCG(13, 13))
	found, others := 0, 0
	for range rounds {
		var pairs []pair
		for m := range 60 {
			b, a := autoregressive(source, 300, 0.7), autoregressive(source, 300, 0.7)
			if m == 17 {
				for i := range a {
					a[i] *= 1.33
				}
			}
			pairs = append(pairs, pairOf(b, a))
		}
		for i, v := range judge(pairs) {
			if v.moved && i == 17 {
				found++
			} else if v.moved {
				others++
			}
		}
	}
	if found < rounds*9/10 || others > rounds/10 {
		t.Errorf("found in %d of %d, and %d others", found, rounds, others)
	}
}

func TestStudentQuantile(t *testing.T) {
	for _, df := range []float64{1, 2, 3, 4, 5, 7, 9.5, 14, 30, 126} {
		for _, p := range []float64{0.9, 0.975, 0.995} {
			want := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
			if got := studentQuantile(p, df); math.Abs(got-want) > 1e-2*want || df >= 3 &&
				math.Abs(got-want) > 1e-3*want {
				t.Errorf("quantile %v of %v degrees of freedom is %v, want %v", p, df, got, want)
			}
		}
	}
}

func TestJudgeIsTheSameEachTime(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 1))
	var pairs []pair
	for range 20 {
		pairs = append(pairs, pairOf(autoregressive(source, 100, 0.5), autoregressive(source, 100, 0.5)))
	}
	if a, b := judge(pairs), judge(pairs); !reflect.DeepEqual(a, b) {
		t.Errorf("%v\n%v", a, b)
	}
}

var (
	noon    = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	metrics = []*sample.Metric{
		{Name: "linerate_interface_receive_bytes_total", Kind: sample.Counter, Labels: []string{"interface"}},
		{Name: "linerate_interface_drops_total", Kind: sample.Counter,
			Labels: []string{"interface", "direction", "place"}},
		{Name: "linerate_interface_mtu_bytes", Kind: sample.Gauge, Labels: []string{"interface"}},
		{Name: "linerate_cpu_seconds_total", Kind: sample.Counter, Labels: []string{"cpu", "mode"}},
		{Name: "linerate_tcp_connections", Kind: sample.Gauge},
		{Name: "linerate_interface_info", Kind: sample.Gauge, Labels: []string{"interface", "driver"}},
		{Name: "linerate_hub_query_seconds_total", Kind: sample.Counter},
	}
)

// history has ten minutes in which eth0 carries 1000 bytes each second, and ten in which it carries
// 2000, with a little noise; the rest is constant.
func history(t *testing.T) *record.Store {
	t.Helper()
	s, err := record.Open(record.Options{Dir: t.TempDir(), Host: "here", Queries: record.Bounds{Time: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	of := func(m int, values ...string) sample.Point {
		return sample.Point{Series: &sample.Series{Metric: metrics[m], Values: values}}
	}
	points := []sample.Point{
		of(0, "eth0"), of(0, "eth1"), of(1, "eth0", "receive", "ring"), of(2, "eth0"), of(2, "eth1"),
		of(3, "0", "softirq"), of(3, "1", "softirq"), of(4), of(5, "eth0", "veth"), of(6),
	}
	source := rand.New(rand.NewPCG(3, 3))
	for i := -1199; i <= 0; i++ {
		grow := 1000.0
		if i > -600 {
			grow = 2000
			points[2].Value += float64(source.IntN(3))
			points[3].Value = 9000
		} else {
			points[3].Value = 1500
		}
		points[0].Value += grow + float64(source.IntN(100))
		points[1].Value += 500 + float64(source.IntN(100))
		points[4].Value = 1500
		points[5].Value += 0.25 + source.Float64()/100
		points[6].Value += 0.5 + source.Float64()/100
		points[7].Value = 10 + float64(source.IntN(5))
		points[8].Value = 1
		points[9].Value += grow
		if err := s.Append(&sample.Reading{Time: noon.Add(time.Duration(i) * time.Second),
			Points: points}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

var marked = Options{
	Before: Interval{noon.Add(-1199 * time.Second), noon.Add(-600 * time.Second)},
	After:  Interval{noon.Add(-599 * time.Second), noon}, Host: "here", Metrics: metrics,
}

func TestRun(t *testing.T) {
	s := history(t)
	d, err := Run(t.Context(), s.Matrix, marked)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range d.Rows {
		line := fmt.Sprintf("%s %v %s", r.Metric, r.Labels, r.Unit)
		if r.Moved {
			line += " moved"
		}
		got = append(got, line)
	}
	want := []string{
		"linerate_interface_mtu_bytes map[interface:eth0] B moved",
		"linerate_interface_drops_total map[direction:receive interface:eth0 place:ring] drops/s moved",
		"linerate_interface_receive_bytes_total map[interface:eth0] B/s moved",
	}
	for i, w := range want {
		if i >= len(got) || got[i] != w {
			t.Errorf("row %d is %q, want %q", i, got[i:min(i+1, len(got))], w)
		}
	}
	if all := strings.Join(got, "\n"); len(got) != 7 || strings.Count(all, "moved") != 3 ||
		strings.Contains(all, "_info") || strings.Contains(all, "_hub_") {
		t.Errorf("rows:\n%s", all)
	}
	for _, r := range d.Rows {
		if r.Metric != "linerate_interface_receive_bytes_total" || r.Labels["interface"] != "eth0" {
			continue
		}
		if r.Ratio == nil || math.Abs(*r.Ratio-2049.5/1049.5) > 0.01 || *r.RatioLow > *r.Ratio ||
			*r.RatioHigh < *r.Ratio || *r.RatioHigh-*r.RatioLow > 0.05 {
			t.Errorf("ratio %v from %v to %v", *r.Ratio, *r.RatioLow, *r.RatioHigh)
		}
		if r.Before.Median < 1040 || r.Before.Median > 1060 || r.Before.P99 < 1090 || r.Before.P99 > 1100 ||
			r.Before.Samples < 595 || r.After.Samples < 595 {
			t.Errorf("before %+v, after %+v", r.Before, r.After)
		}
	}
	one := marked
	one.Interface = "eth1"
	if d, err = Run(t.Context(), s.Matrix, one); err != nil || len(d.Rows) != 4 {
		t.Errorf("of one interface there are %d rows, %v; want its two, processors and connections", len(d.Rows), err)
	}
	other := marked
	other.Host = `no"such`
	if d, err = Run(t.Context(), s.Matrix, other); err != nil || len(d.Rows) != 0 {
		t.Errorf("of another host there are %d rows, %v", len(d.Rows), err)
	}
	short := marked
	short.After.End = short.After.Start.Add(12 * time.Second)
	if d, err = Run(t.Context(), s.Matrix, short); err != nil || len(d.Warnings) != 1 || d.Rows[0].Moved {
		t.Errorf("of twelve seconds: %v %v", d.Warnings, err)
	}
}

func TestCheck(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"overlap":   func(o *Options) { o.After.Start = o.Before.End.Add(-time.Second) },
		"backwards": func(o *Options) { o.Before.End = o.Before.Start.Add(-time.Hour) },
		"short":     func(o *Options) { o.Before.End = o.Before.Start.Add(time.Second) },
		"long":      func(o *Options) { o.Before.Start = o.Before.Start.AddDate(-2, 0, 0) },
		"no host":   func(o *Options) { o.Host = "" },
	} {
		o := marked
		change(&o)
		ask := func(context.Context, string, time.Time, time.Time, time.Duration) ([]record.Row, error) {
			t.Errorf("%s: the history is asked", name)
			return nil, nil
		}
		if _, err := Run(t.Context(), ask, o); !errors.Is(err, ErrBad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPointsAreBounded checks how many points a comparison requests, for intervals of any length.
func TestPointsAreBounded(t *testing.T) {
	for _, length := range []time.Duration{Shortest, time.Hour, 48 * time.Hour, Longest} {
		o := marked
		o.After = Interval{noon, noon.Add(length)}
		asked := 0
		_, err := Run(t.Context(),
			func(_ context.Context, _ string, start, end time.Time, step time.Duration) ([]record.Row, error) {
				asked++
				if n := end.Sub(start) / step; n > MaxPoints {
					t.Errorf("%v: %d points are asked for", length, n)
				}
				return nil, nil
			}, o)
		if err != nil || asked == 0 {
			t.Errorf("%v: %d, %v", length, asked, err)
		}
	}
}
