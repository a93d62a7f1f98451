package sample

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAlign(t *testing.T) {
	tick := time.Date(2026, 11, 22, 12, 0, 7, 0, time.UTC)
	const tolerance = 25 * time.Millisecond
	for _, c := range []struct {
		late      time.Duration
		tolerance time.Duration
		aligned   bool
	}{
		{0, tolerance, true}, {tolerance, tolerance, true}, {-tolerance, tolerance, true},
		{tolerance + 1, tolerance, false}, {-tolerance - 1, tolerance, false},
		{8 * time.Hour, tolerance, false}, // the host slept
		{0, -1, false},
	} {
		now := tick.Add(c.late)
		want := now
		if c.aligned {
			want = tick
		}
		if got := align(tick, now, c.tolerance); !got.Equal(want) {
			t.Errorf("%v late, tolerance %v: filed under %v, want %v", c.late, c.tolerance, got, want)
		}
	}
	if now := time.Now(); !align(time.Time{}, now, tolerance).Equal(now) || align(now, now, tolerance) != now.Round(0) {
		t.Error("a reading for no tick in particular has its own time, and no time has a monotonic part")
	}
}

// What is right for rates: a late reading has counted for longer, a clock that was set has counted for no longer, one that slept has counted over all the time.
func TestRates(t *testing.T) {
	bytes, up := &Series{Metric: receiveBytes, Values: []string{"a"}}, &Series{Metric: interfaceUp, Values: []string{"a"}}
	reborn := &Series{Metric: receiveBytes, Values: []string{"a"}}
	reading := func(at time.Duration, clock time.Duration, points ...Point) *Reading {
		return &Reading{Time: time.Unix(1e9, 0).Add(clock), SinceBoot: at, Points: points}
	}
	before := reading(100*time.Second, 0, Point{up, 0}, Point{bytes, 500})
	for _, c := range []struct {
		name  string
		after *Reading
		want  []Point
	}{
		{"a second", reading(101*time.Second, time.Second, Point{up, 1}, Point{bytes, 1500}), []Point{{up, 1}, {bytes, 1000}}},
		{"late", reading(104*time.Second, 4*time.Second, Point{bytes, 4500}, Point{up, 1}), []Point{{bytes, 1000}, {up, 1}}},
		{"the clock was set back", reading(101*time.Second, -time.Hour, Point{up, 1}, Point{bytes, 1500}), []Point{{up, 1}, {bytes, 1000}}},
		{"another thing under the name", reading(101*time.Second, time.Second, Point{reborn, 9}), []Point{}},
		{"the wrong order", reading(99*time.Second, time.Second, Point{bytes, 9}), nil},
	} {
		if diff := cmp.Diff(c.want, Rates(before, c.after), cmp.Comparer(func(a, b *Series) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A counter that is read every third time keeps its rate in between, and one that ended has none.
func TestMeter(t *testing.T) {
	often, seldom := &Series{Metric: receiveBytes, Values: []string{"a"}}, &Series{Metric: queueBytes, Values: []string{"a", "rx-0"}}
	var m Meter
	var got []float64
	for i := range 8 {
		r := &Reading{SinceBoot: time.Duration(i) * time.Second, Points: []Point{{often, float64(10 * i)}}}
		if i%3 == 0 {
			r.Points = append(r.Points, Point{seldom, float64(90 * i)})
		}
		if i == 7 {
			r.Ended = []*Series{seldom}
		}
		x := NewIndex(m.Add(r))
		v, ok := x.Value("linerate_queue_bytes_total", "a", "rx-0")
		if !ok {
			v = -1
		}
		got = append(got, v)
		if v, ok := x.Value("linerate_interface_receive_bytes_total", "a"); i > 0 && (!ok || v != 10) {
			t.Errorf("reading %d: %v of the counter that is always read", i, v)
		}
	}
	if diff := cmp.Diff([]float64{-1, -1, -1, 90, 90, 90, 90, -1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIndex(t *testing.T) {
	points := []Point{
		{&Series{Metric: queuePackets, Values: []string{"a", "rx-0"}}, 1},
		{&Series{Metric: queuePackets, Values: []string{"a", "rx-1"}}, 2},
		{&Series{Metric: queuePackets, Values: []string{"b", "rx-0"}}, 4},
		{&Series{Metric: tcpSent}, 8},
	}
	x := NewIndex(points)
	if n := len(x.Of("linerate_queue_packets_total")); n != 3 {
		t.Errorf("%d of all interfaces", n)
	}
	if diff := cmp.Diff(points[:2], x.Of("linerate_queue_packets_total", "a"), cmp.Comparer(func(a, b *Series) bool { return a == b })); diff != "" {
		t.Errorf("of a (-want +got):\n%s", diff)
	}
	if s := x.Sum("linerate_queue_packets_total", "a"); s != 3 {
		t.Errorf("sum of a is %v", s)
	}
	if v, ok := x.Value("linerate_queue_packets_total", "b", "rx-0"); !ok || v != 4 {
		t.Errorf("b rx-0 is %v, %v", v, ok)
	}
	if v, ok := x.Value("linerate_tcp_segments_sent_total"); !ok || v != 8 {
		t.Errorf("segments are %v, %v", v, ok)
	}
	if _, ok := x.Value("linerate_queue_packets_total", "b"); ok {
		t.Error("half the labels are enough for a value")
	}
}

// Speeds as people say them.
func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{10e6: "10 Mb/s", 1e9: "1 Gb/s", 2.5e9: "2.5 Gb/s", 100e9: "100 Gb/s", 400e9: "400 Gb/s"} {
		if got := rateText(rate); got != want {
			t.Errorf("%g: %q", rate, got)
		}
	}
}

// What is dear is read seldom, and one slow reading is no reason.
func TestPace(t *testing.T) {
	var p pace
	if !p.due(0) {
		t.Error("not due at first")
	}
	p.done(0, 10*time.Millisecond, 1)
	if p.due(3*time.Second) || !p.due(4*time.Second) {
		t.Errorf("after 10 ms it is due at %v", p.next)
	}
	p.done(4*time.Second, time.Millisecond, 2)
	if p.next != 4*time.Second+800*time.Millisecond {
		t.Errorf("the best of the last is 1 ms, of two: due at %v", p.next)
	}
	for range 4 {
		p.done(0, time.Second, 1)
	}
	if p.next != time.Minute {
		t.Errorf("a second each time: due at %v", p.next)
	}
}
