package peak_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/record/peak"
	"github.com/linerate/linerate/internal/host/sample"
)

// noon is a whole minute.
var noon = time.Unix(1_700_006_400, 0).UTC()

func counter(t *testing.T, name string, labels ...string) *sample.Series {
	t.Helper()
	for _, m := range sample.Metrics() {
		if m.Name == name {
			return &sample.Series{Metric: m, Values: labels}
		}
	}
	t.Fatalf("no metric %s", name)
	return nil
}

// reading returns one a number of seconds after noon, taken late by some time.
func reading(seconds int, late time.Duration, points ...sample.Point) *sample.Reading {
	at := time.Duration(seconds) * time.Second
	return &sample.Reading{Time: noon.Add(at), SinceBoot: time.Hour + at + late, Points: points}
}

// TestBurst checks that a burst of one second has the same height over an hour and over a week, in
// the history that the page asks.
func TestBurst(t *testing.T) {
	store, err := record.Open(record.Options{Dir: t.TempDir(), Host: "here", MinFreeBytes: -1,
		Queries: record.Bounds{Time: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	in := counter(t, "linerate_interface_receive_bytes_total", "eth0")
	const quiet, burst = 1000.0, 5e9 // bytes per second
	var k peak.Keeper
	value := 0.0
	for i := range 3601 {
		value += quiet
		if i == 1801 {
			value += burst - quiet
		}
		r := reading(i-3600, 0, sample.Point{Series: in, Value: value})
		if err := store.Append(r); err != nil {
			t.Fatal(err)
		}
		if over := k.Take(r); over != nil {
			if err := store.Append(over); err != nil {
				t.Fatal(err)
			}
		}
	}
	highest := func(expression string) float64 {
		t.Helper()
		found, err := store.Vector(t.Context(), expression, noon)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", expression, found, err)
		}
		return found[0].Value
	}
	for _, length := range []string{"35m", "1h", "7d"} {
		e := fmt.Sprintf("max_over_time(linerate_interface_receive_bytes_peak_per_second[%s])", length)
		if got := highest(e); got != burst {
			t.Errorf("%s: %g bytes/s, want %g", e, got, burst)
		}
	}
	// What the page asks for short steps agrees.
	if got := highest("max_over_time(irate(linerate_interface_receive_bytes_total[2s])[35m:1s])"); math.Abs(
		got/burst-1) > 0.001 {
		t.Errorf("by the second: %g bytes/s, want %g", got, burst)
	}
	if mean := highest("max_over_time(rate(linerate_interface_receive_bytes_total[15m])[1h:15m])"); mean > burst/100 {
		t.Errorf("the highest mean of 15 minutes is %g bytes/s: the burst tests nothing", mean)
	}
}

// TestKeeper checks late and missing readings, counters that reset, end or rest, and a clock that
// is set.
func TestKeeper(t *testing.T) {
	in := counter(t, "linerate_interface_receive_bytes_total", "eth0")
	up := counter(t, "linerate_interface_up", "eth0")
	var k peak.Keeper
	take := func(r *sample.Reading) (at time.Time, most float64) {
		t.Helper()
		over := k.Take(r)
		if over == nil {
			return time.Time{}, 0
		}
		if len(over.Points) != 1 || over.Points[0].Series.Metric.Name != "linerate_interface_receive_bytes_peak_per_second" {
			t.Fatalf("%+v", over)
		}
		return over.Time, over.Points[0].Value
	}
	value := func(v float64) []sample.Point { return []sample.Point{{Series: in, Value: v}, {Series: up, Value: v}} }
	want := func(what string, r *sample.Reading, at time.Time, most float64) {
		t.Helper()
		if gotAt, got := take(r); !gotAt.Equal(at) || got != most {
			t.Errorf("%s: %g at %v, want %g at %v", what, got, gotAt, most, at)
		}
	}
	none := time.Time{}
	want("the first", reading(1, 0, value(100)...), none, 0)
	want("a late one", reading(2, 500*time.Millisecond, value(250)...), none, 0) // 150 in 1.5 s
	want("one after it", reading(3, 0, value(280)...), none, 0)                  // 30 in 0.5 s
	want("after five missing ones", reading(9, 0, value(880)...), none, 0)       // 600 in 6 s
	want("a reset", reading(10, 0, value(5)...), none, 0)
	want("the end of the minute", reading(60, 0, value(10)...), noon.Add(time.Minute), 100)
	want("a quiet minute", reading(120, 0, value(10)...), none, 0)
	want("growth", reading(121, 0, value(40)...), none, 0)
	want("a minute without a reading at its end", reading(185, 0, value(50)...), noon.Add(3*time.Minute), 30)
	want("growth", reading(186, 0, value(90)...), none, 0)
	// SinceBoot goes on when the clock is set back.
	back := &sample.Reading{Time: noon.Add(time.Second), SinceBoot: time.Hour + 187*time.Second, Points: value(91)}
	want("the clock set back", back, none, 0)
	back.Ended, back.Points, back.Time = []*sample.Series{in}, nil, noon.Add(time.Minute)
	if over := k.Take(back); over == nil || len(over.Points) != 1 || over.Points[0].Value != 1 || len(over.Ended) != 1 {
		t.Errorf("the end of a series: %+v", over)
	}
}

// TestMetrics checks that each peak has the labels of its counter, and that names are new.
func TestMetrics(t *testing.T) {
	names := make(map[string]*sample.Metric)
	for _, m := range sample.Metrics() {
		names[m.Name] = m
	}
	if len(peak.Metrics()) < 10 {
		t.Errorf("%d metrics", len(peak.Metrics()))
	}
	for _, m := range peak.Metrics() {
		if names[m.Name] != nil {
			t.Errorf("%s is two metrics", m.Name)
		}
	}
}
