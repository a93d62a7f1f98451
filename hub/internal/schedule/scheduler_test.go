package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/traffic"
)

// run is one start that a target saw.
type run struct {
	target string
	at     time.Duration // since the world's start
	bytes  int64
}

// world is the environment of a scheduler, in a bubble of time.
type world struct {
	t       *testing.T
	began   time.Time
	fs      durable.FS
	key     string
	o       Options
	runs    []run
	now     int                              // runs under way
	takes   func(r *rand.Rand) time.Duration // a test beyond its own duration
	answers func(target string) error        // nil: the target is alive
	tune    func(at time.Duration) string    // since the world's start; nil: no tune runs
	random  *rand.Rand
	events  map[string]timeline.Event
	order   []string
	docs    map[string][]byte
	points  []sample.Reading
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, began: time.Now(), fs: durable.NewMem(), key: filepath.Join(t.TempDir(), "key"),
		random: rand.New(rand.NewPCG(1, 2)),
		events: make(map[string]timeline.Event), docs: make(map[string][]byte)}
	if err := os.WriteFile(w.key, []byte("some-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.o = Options{
		Host: "near", Version: "test", Dir: "/var/state", FS: w.fs, Seed: 7,
		Append: func(r *sample.Reading) error { w.points = append(w.points, *r); return nil },
		Put: func(e timeline.Event, d []byte) error {
			if _, known := w.events[e.ID]; !known {
				w.order = append(w.order, e.ID)
			}
			w.events[e.ID], w.docs[e.ID] = e, d
			return nil
		},
		open: w.open,
		tuning: func() string {
			if w.tune == nil {
				return ""
			}
			return w.tune(time.Since(w.began))
		},
	}
	return w
}

// open is a target that behaves as the test wants, and checks that no other run is under way.
func (w *world) open(ctx context.Context, target string, o peer.ConnectOptions) (*reach.Way, error) {
	if o.Key != "some-key" && !strings.Contains(target, "://") {
		w.t.Errorf("key %q", o.Key)
	}
	if w.now++; w.now > 1 {
		w.t.Errorf("%d runs at once", w.now)
	}
	w.runs = append(w.runs, run{target: target, at: time.Since(w.began)})
	mine := &w.runs[len(w.runs)-1]
	if w.answers != nil {
		if err := w.answers(target); err != nil {
			w.now--
			return nil, err
		}
	}
	return &reach.Way{Close: func() { w.now-- },
		Run: func(ctx context.Context, spec traffic.Spec, _ func(traffic.Interval)) (*traffic.Result, error) {
			spec, err := spec.Normalize()
			if err != nil {
				return nil, err
			}
			d := spec.Duration + max(spec.WarmUp, 0)
			if w.takes != nil {
				d += w.takes(w.random)
			}
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			r := &traffic.Result{Test: spec.Test, Direction: spec.Direction, Streams: 1,
				RTT: &stats.Latencies{Min: 1, P50: 2, P90: 3, P99: 4}}
			if spec.Bulk() {
				r.Bytes = spec.Bytes
				if spec.Bytes == 0 {
					r.Bytes = int64(spec.RateBitsPerSec / 8 * (spec.Duration + max(spec.WarmUp, 0)).Seconds())
				}
				r.Bytes *= ways(spec)
				r.ThroughputBitsPerSec = float64(r.Bytes) * 8 / spec.Duration.Seconds()
			}
			mine.bytes += r.Bytes
			return r, nil
		}}, nil
}

// pass runs a scheduler for a time, as between two restarts of the hub.
func (w *world) pass(long time.Duration, configs ...Config) *Scheduler {
	w.t.Helper()
	for i := range configs {
		if !strings.Contains(configs[i].Target, "://") {
			configs[i].KeyFile = w.key
		}
	}
	w.o.Schedules = configs
	s, err := New(w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	time.Sleep(long) // of the bubble
	synctest.Wait()
	cancel()
	<-ended
	return s
}

func (w *world) of(target string) (at []time.Duration) {
	for _, r := range w.runs {
		if r.target == target {
			at = append(at, r.at)
		}
	}
	return at
}

// TestTimes checks the promises about times, over half a day of many measurements that sometimes
// take longer than planned.
func TestTimes(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.o.Seed = seed + 1
			r := rand.New(rand.NewPCG(seed, 0))
			var configs []Config
			for i := range 1 + r.IntN(8) {
				every := time.Duration(10+r.IntN(600)) * time.Second
				j := span(time.Duration(r.Int64N(int64(every/2) + 1)))
				configs = append(configs, Config{Name: fmt.Sprint("m", i), Target: fmt.Sprint("far", i), Test: "stream",
					Duration: span(time.Duration(1+r.IntN(8)) * time.Second),
					Every:    span(every), Jitter: &j})
			}
			w.takes = func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(3*time.Second)) }
			w.pass(12*time.Hour, configs...)
			for _, c := range configs {
				at := w.of(c.Target)
				every := c.Every.Duration()
				slots := make(map[int64]bool)
				for i, a := range at {
					if slot := int64(a / every); slots[slot] {
						t.Fatalf("seed %d: %s every %v: two runs in slot %d", seed, c.Name, every, slot)
					} else {
						slots[slot] = true
					}
					if i > 0 && a-at[i-1] < every-c.jitter() {
						t.Fatalf("seed %d: %s every %v, jitter %v: %v after the one before", seed, c.Name, every,
							c.jitter(), a-at[i-1])
					}
				}
				// Every measurement gets its turns: when all wait for each other, still a good part
				// of the slots.
				if want := int(12*time.Hour/every) / 3; len(at) < want && len(configs) < 4 {
					t.Errorf("seed %d: %s every %v: %d runs in half a day, want at least %d", seed, c.Name, every,
						len(at), want)
				}
			}
		})
	}
}

// TestDelaysAreUniform checks that delays fill their range evenly, and that slots, names and hosts
// differ.
func TestDelaysAreUniform(t *testing.T) {
	s := &Scheduler{seed: 1}
	ten := span(10 * time.Second)
	p := &plan{Config: Config{Name: "a", Every: span(time.Minute), Jitter: &ten}}
	var tenths [10]int
	for slot := range int64(10000) {
		d := s.delay(p, slot)
		if d < 0 || d >= 10*time.Second {
			t.Fatalf("slot %d: %v", slot, d)
		}
		tenths[d/time.Second]++
	}
	for i, n := range tenths {
		if n < 850 || n > 1150 { // five standard deviations
			t.Errorf("%d of 10000 delays are in second %d", n, i)
		}
	}
	other := &plan{Config: Config{Name: "b", Every: p.Every, Jitter: &ten}}
	host := &Scheduler{seed: 2}
	here, again := s.delay(p, 1), (&Scheduler{seed: 1}).delay(p, 1)
	if here == s.delay(other, 1) || here == host.delay(p, 1) || here != again {
		t.Error("delays are the same for two names or hosts, or differ for one")
	}
}

// TestBytesOfADay checks the cap over every day of four days with restarts.
func TestBytesOfADay(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			r := rand.New(rand.NewPCG(seed, 1))
			c := Config{Name: "m", Target: "far", Test: "stream", Direction: []string{"up", "bidir"}[seed%2],
				Duration: span(5 * time.Second), Every: span(time.Duration(1+r.IntN(30)) * time.Minute)}
			if seed%3 == 0 {
				c.Bytes = "10M"
			} else {
				c.Rate = "10M"
			}
			c.BytesPerDay = fmt.Sprintf("%dM", 30+r.IntN(500))
			a, err := Config{Name: c.Name, Target: c.Target, KeyFile: w.key, Test: c.Test, Direction: c.Direction,
				Duration: c.Duration, Every: c.Every, Bytes: c.Bytes, Rate: c.Rate, BytesPerDay: c.BytesPerDay}.check()
			if err != nil {
				t.Fatal(err)
			}
			for left := 4 * 24 * time.Hour; left > 0; {
				long := min(left, time.Duration(r.Int64N(int64(40*time.Hour))))
				w.pass(long, c)
				away := time.Duration(r.Int64N(int64(3 * time.Hour)))
				time.Sleep(away)
				left -= long + away
			}
			first, sum := 0, int64(0)
			for _, r := range w.runs {
				sum += r.bytes
				for w.runs[first].at < r.at-24*time.Hour {
					sum -= w.runs[first].bytes
					first++
				}
				if sum > a.bytesPerDay {
					t.Fatalf("seed %d: %d bytes in the day before %v, with a cap of %s", seed, sum, r.at, c.BytesPerDay)
				}
			}
			if len(w.runs) < 4 {
				t.Errorf("seed %d: %d runs in four days", seed, len(w.runs))
			}
		})
	}
}

// TestRestartsMeasureNoMoreOften checks that a hub which restarts often measures its targets no
// more often.
func TestRestartsMeasureNoMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 30 {
			w.pass(3*time.Minute-7*time.Second, Config{Name: "m", Target: "icmp://far", Duration: span(time.Second),
				Every: span(10 * time.Minute)})
		}
		// 86 minutes, with at least nine between two.
		if n := len(w.runs); n < 8 || n > 10 {
			t.Errorf("%d runs in 86 minutes: %v", n, w.of("icmp://far"))
		}
	})
}

// TestEndedRunsCost ends the hub during every run: the bytes of those count in bytes_per_day too.
func TestEndedRunsCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		none := span(0)
		c := Config{Name: "m", Target: "far", Test: "stream", Rate: "8M", Duration: span(30 * time.Second),
			Every: span(time.Minute), Jitter: &none, BytesPerDay: "100M"}
		for range 10 {
			w.pass(20*time.Second, c) // amid a run
			time.Sleep(time.Minute)
		}
		if len(w.runs) > 3 { // of 33 MB each
			t.Errorf("%d runs", len(w.runs))
		}
	})
}

func TestTargetGoneAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		gone := false
		w.answers = func(string) error {
			if gone {
				return errors.New("connect to far: connection refused")
			}
			return nil
		}
		none := span(0)
		c := Config{Name: "m", Target: "far", Test: "stream", Rate: "8M", Every: span(time.Minute), Jitter: &none}
		s := w.pass(30*time.Second, c)
		if cells := s.Matrix(); len(cells) != 1 || cells[0].Throughput == nil || *cells[0].Throughput < 8e6 ||
			cells[0].Error != "" || cells[0].Direction != "up" {
			t.Errorf("matrix %+v", cells)
		}
		gone = true
		s = w.pass(6*time.Hour, c)
		// After the first two a minute apart at 2, 4, 8, 16, 32 and then 60 minutes.
		at := w.of("far")
		if n := len(at); n < 11 || n > 13 {
			t.Errorf("%d runs in six hours against a dead target: %v", n, at)
		}
		if last := at[len(at)-1] - at[len(at)-2]; last != time.Hour {
			t.Errorf("the last two were %v apart", last)
		}
		if cells := s.Matrix(); len(cells) != 1 || cells[0].Throughput == nil ||
			cells[0].Error != "connect to far: connection refused" {
			t.Errorf("matrix of a dead target: %+v", cells)
		}
		if all := s.Warnings(); len(all) != 1 || all[0] != "measurement m: connect to far: connection refused" {
			t.Errorf("warnings %q", all)
		}
		gone = false
		s = w.pass(2*time.Hour, c)
		if n := len(w.of("far")) - len(at); n < 55 {
			t.Errorf("%d runs in two hours after it was back", n)
		}
		if all := s.Warnings(); len(all) != 0 || s.Matrix()[0].Error != "" {
			t.Errorf("warnings %q, matrix %+v", all, s.Matrix())
		}
		states := make(map[string]int)
		for _, e := range w.events {
			states[e.State+" "+string(e.Severity)]++
			if (e.State == "failed") != strings.Contains(e.Title, "failed: connect to far: connection refused") {
				t.Errorf("event %+v", e)
			}
		}
		if states["failed warning"] != len(at)-1 || len(states) != 2 {
			t.Errorf("events %v", states)
		}
		// Every run has an event, except the one that the end may have hit.
		var well []float64
		for _, r := range w.points {
			for _, p := range r.Points {
				if p.Series.Metric == success {
					well = append(well, p.Value)
				}
			}
		}
		if len(well) < len(w.runs)-1 || well[0] != 1 || well[1] != 0 || well[len(well)-1] != 1 {
			t.Errorf("success %v of %d runs", well, len(w.runs))
		}
	})
}

// TestSlowTargetIsCut checks that a target which never ends costs its time limit and no more.
func TestSlowTargetIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.takes = func(*rand.Rand) time.Duration { return 100 * time.Hour }
		s := w.pass(time.Minute, Config{Name: "m", Target: "far", Test: "ping", Every: span(time.Minute),
			TimeLimit: span(20 * time.Second)})
		if len(w.order) != 1 {
			t.Fatalf("%d events", len(w.order))
		}
		e := w.events[w.order[0]]
		if e.State != "failed" || !strings.Contains(e.Title, "took longer than its time limit") ||
			e.End.Sub(e.Time) != 20*time.Second {
			t.Errorf("event %+v", e)
		}
		if all := s.Warnings(); len(all) != 1 {
			t.Errorf("warnings %q", all)
		}
	})
}

// TestTargetThatBreaksUs checks that a panic while reading a target's input ends the run and not
// the hub.
func TestTargetThatBreaksUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answers = func(string) error { w.now--; panic("index out of range") }
		w.pass(3*time.Minute, Config{Name: "m", Target: "far", Test: "ping", Every: span(time.Minute)})
		for _, e := range w.events {
			if e.State != "failed" ||
				!strings.Contains(e.Title, "internal error: index out of range") {
				t.Errorf("event %+v", e)
			}
		}
		if len(w.events) < 2 {
			t.Errorf("%d events", len(w.events))
		}
	})
}

// TestHangingRunIsReported checks that a run which does not return is reported, that no other run
// starts beside it, and that the hub ends anyway.
func TestHangingRunIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		forever := make(chan struct{})
		w.answers = func(string) error { <-forever; return nil }
		s := w.pass(time.Hour, Config{Name: "m", Target: "far", Test: "ping", Every: span(time.Minute)},
			Config{Name: "n", Target: "icmp://other", Every: span(time.Minute)})
		if all := s.Warnings(); len(all) != 1 || !strings.Contains(all[0], "hangs") || len(w.runs) != 1 &&
			w.runs[1].target != "far" {
			t.Errorf("warnings %q, runs %v", all, w.runs)
		}
		close(forever)
		synctest.Wait()
	})
}

func TestTuneKeepsMeasurementsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		none := span(0)
		c := Config{Name: "m", Target: "far", Test: "stream", Rate: "8M", Duration: span(30 * time.Second),
			Every: span(2 * time.Minute), Jitter: &none}
		// A tune begins beside a run; another one is there at the next two slots.
		w.tune = func(at time.Duration) string {
			if at > 9500*time.Millisecond && at < 5*time.Minute {
				return "a tune is under way"
			}
			return ""
		}
		w.pass(7*time.Minute, c)
		var got []string
		for _, id := range w.order {
			e := w.events[id]
			got = append(got, fmt.Sprintf("%s %v %v: %s", e.State, e.Time.Sub(w.began), e.End.Sub(e.Time), e.Title))
		}
		want := []string{
			"cut 0s 10s: stream to far failed: was cut off: a tune is under way",
			"skipped 2m0s 4m0s: stream to far skipped: a tune is under way (2 times)",
			"done 6m0s 31s: stream to far: 8.27 Mb/s",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		// A run that was cut off has no result: one run is in the history.
		if len(w.points) != 1 {
			t.Errorf("%d readings", len(w.points))
		}
	})
}

func TestBusyInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rate := 2e8
		w.o.Busy = func(_ context.Context, name string) (float64, bool) { return rate, name == "eth7" }
		c := Config{Name: "m", Target: "far", Test: "ping", Every: span(time.Minute), UnlessBusyAbove: "100M",
			Interface: "eth7"}
		w.pass(10*time.Minute, c)
		if len(w.runs) != 0 || len(w.events) != 1 || !strings.Contains(w.events[w.order[0]].Title,
			"skipped: eth7 carries more than 100 Mb/s already (10 times)") {
			t.Errorf("%d runs, events %+v", len(w.runs), w.events)
		}
		rate = 5e7
		w.pass(10*time.Minute, c)
		if len(w.runs) < 9 {
			t.Errorf("%d runs on a quiet interface", len(w.runs))
		}
		w.runs = nil
		c.Interface = "eth8"
		w.pass(10*time.Minute, c)
		if len(w.runs) != 0 || !strings.Contains(w.events[w.order[len(w.order)-1]].Title,
			"the load of eth8 is unknown") {
			t.Errorf("%d runs on an interface with an unknown load, events %+v", len(w.runs), w.events)
		}
		if _, err := New(Options{Schedules: []Config{c}}); err == nil {
			t.Error("no error without a source for the load")
		}
	})
}

// TestDocument checks that the document of a run is what `linerate measure` would have printed.
func TestDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pass(5*time.Minute, Config{Name: "m", Target: "far", Every: span(10 * time.Minute)})
		if len(w.order) != 1 {
			t.Fatalf("%d events", len(w.order))
		}
		var d struct {
			Schema string
			Target string
			Host   struct{ Name string }
			Tests  []struct{ Test, Direction string }
		}
		if err := json.Unmarshal(w.docs[w.order[0]], &d); err != nil || d.Schema != "linerate.measure/1" ||
			d.Target != "far" || d.Host.Name != "near" || len(d.Tests) < 7 {
			t.Errorf("document %+v, %v", d, err)
		}
		known := make(map[*sample.Metric]bool)
		for _, m := range Metrics() {
			known[m] = true
		}
		for _, p := range w.points[0].Points {
			if !known[p.Series.Metric] || len(p.Series.Values) != len(p.Series.Metric.Labels) {
				t.Errorf("%s %q is not in the catalogue", p.Series.Metric.Name, p.Series.Values)
			}
		}
	})
}
