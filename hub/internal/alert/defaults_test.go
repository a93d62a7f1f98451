package alert

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/switches"
	"github.com/linerate/linerate/internal/host/sample"
)

// history is a store that a test fills with what happened on a host.
type history struct {
	t      *testing.T
	store  *record.Store
	series map[string]*sample.Series
	end    time.Time
}

func newHistory(t *testing.T) *history {
	t.Helper()
	store, err := record.Open(record.Options{Dir: t.TempDir(), Host: "near", Retention: 30 * 24 * time.Hour,
		Queries: record.Bounds{Time: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return &history{t: t, store: store, series: make(map[string]*sample.Series)}
}

// point returns the value of a series; labels are names and values alternately.
func (h *history) point(value float64, metric string, labels ...string) sample.Point {
	key := fmt.Sprint(metric, labels)
	s := h.series[key]
	if s == nil {
		s = &sample.Series{Metric: &sample.Metric{Name: metric}}
		for i := 0; i < len(labels); i += 2 {
			s.Metric.Labels = append(s.Metric.Labels, labels[i])
			s.Values = append(s.Values, labels[i+1])
		}
		h.series[key] = s
	}
	return sample.Point{Series: s, Value: value}
}

// fill appends a reading for every step of a time that ends at a fixed moment. ago is its distance
// from the end.
func (h *history) fill(long, step time.Duration, points func(ago time.Duration) []sample.Point) {
	h.t.Helper()
	h.end = time.Now().Truncate(time.Hour)
	for ago := long; ago >= 0; ago -= step {
		if all := points(ago); len(all) > 0 {
			if err := h.store.Append(&sample.Reading{Time: h.end.Add(-ago), Points: all}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// fired evaluates one rule from the end of the history on, for as long as it must hold, and returns
// the active alerts. The queries always see the end of the history.
func (h *history) fired(name string) []Active {
	h.t.Helper()
	now := h.end
	w, err := New(Options{
		Rules: []Config{(Config{Name: name}).complete(Defaults()).filled(Config{})}, Host: "near",
		Now: func() time.Time { return now },
		Query: func(ctx context.Context, query string, _ time.Time) ([]record.Labelled, error) {
			return h.store.Vector(ctx, query, h.end)
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for range 30 { // seven and a half minutes: the longest time for which a rule must hold is five
		w.Evaluate(h.t.Context())
		if warnings := w.Warnings(); len(warnings) > 0 {
			h.t.Fatal(warnings)
		}
		now = now.Add(15 * time.Second)
	}
	return w.Active()
}

// rising is a counter that grows at one rate, and at another at the end.
func rising(ago, last time.Duration, before, lately float64) float64 {
	const origin = 1e6
	if ago >= last {
		return origin - before*ago.Seconds()
	}
	return origin - before*last.Seconds() + lately*(last-ago).Seconds()
}

// TestDefaultRules gives every rule that comes with the hub histories in which it must fire, and in
// which it must not.
func TestDefaultRules(t *testing.T) {
	drops := func(before, lately float64, place string) func(*history) {
		return func(h *history) {
			h.fill(90*time.Minute, 15*time.Second, func(ago time.Duration) []sample.Point {
				return []sample.Point{h.point(rising(ago, 4*time.Minute, before, lately),
					"linerate_interface_drops_total", "interface", "eth0", "direction", "receive", "place", place)}
			})
		}
	}
	up := func(at func(ago time.Duration) float64) func(*history) {
		return func(h *history) {
			h.fill(150*time.Minute, 30*time.Second, func(ago time.Duration) []sample.Point {
				return []sample.Point{h.point(at(ago), "linerate_interface_up", "interface", "eth0"),
					h.point(1, "linerate_interface_up", "interface", "eth1")}
			})
		}
	}
	speed := func(before, lately float64) func(*history) {
		return func(h *history) {
			h.fill(6*time.Hour, time.Minute, func(ago time.Duration) []sample.Point {
				v := before
				if ago < time.Hour {
					v = lately
				}
				return []sample.Point{h.point(v, "linerate_interface_speed_bits_per_second", "interface", "eth0")}
			})
		}
	}
	tcp := func(sent, again float64) func(*history) {
		return func(h *history) {
			h.fill(20*time.Minute, 15*time.Second, func(ago time.Duration) []sample.Point {
				return []sample.Point{
					h.point(rising(ago, 0, sent, sent), "linerate_tcp_segments_sent_total"),
					h.point(rising(ago, 0, again, again), "linerate_tcp_retransmits_total"),
				}
			})
		}
	}
	cpu := func(softirq, irq float64) func(*history) {
		return func(h *history) {
			h.fill(10*time.Minute, time.Second, func(ago time.Duration) []sample.Point {
				return []sample.Point{
					h.point(rising(ago, 0, softirq, 0), "linerate_cpu_seconds_total", "cpu", "3", "mode", "softirq"),
					h.point(rising(ago, 0, irq, 0), "linerate_cpu_seconds_total", "cpu", "3", "mode", "irq"),
					h.point(rising(ago, 0, 0.01, 0), "linerate_cpu_seconds_total", "cpu", "4", "mode", "softirq"),
					h.point(rising(ago, 0, 0.99, 0), "linerate_cpu_seconds_total", "cpu", "4", "mode", "user"),
				}
			})
		}
	}
	// measured is one result every two hours for a week, scattered around a gigabit, and then the
	// last.
	measured := func(weeks time.Duration, last float64) func(*history) {
		return func(h *history) {
			h.fill(weeks, 2*time.Hour, func(ago time.Duration) []sample.Point {
				v := 1e9 * (1 + 0.02*math.Sin(ago.Hours()))
				if ago == 0 {
					v = last
				}
				return []sample.Point{h.point(v, "linerate_measurement_throughput_bits_per_second", "target", "far",
					"test", "stream", "direction", "up")}
			})
		}
	}
	success := func(last float64) func(*history) {
		return func(h *history) {
			h.fill(5*time.Hour, time.Hour, func(ago time.Duration) []sample.Point {
				v := 1 - last
				if ago < 2*time.Hour {
					v = last
				}
				if ago == 0 {
					return nil // the next one is not due yet
				}
				return []sample.Point{h.point(v, "linerate_measurement_success", "target", "far", "test", "stream",
					"direction", "up")}
			})
		}
	}
	// port is a port of a switch: frames sent, dropped in the queue and damaged, each second.
	port := func(sent, dropped, damaged float64) func(*history) {
		return func(h *history) {
			of := []string{"switch", "core", "port", "Gi0/1", "direction"}
			h.fill(15*time.Minute, 30*time.Second, func(ago time.Duration) []sample.Point {
				return []sample.Point{
					h.point(rising(ago, 0, sent, 0), "linerate_switch_port_transmit_packets_total", of[:4]...),
					h.point(rising(ago, 0, dropped, 0), "linerate_switch_port_discards_total", append(of[:5:5], "transmit")...),
					h.point(rising(ago, 0, 50, 0), "linerate_switch_port_discards_total", append(of[:5:5], "receive")...),
					h.point(rising(ago, 0, damaged, 0), "linerate_switch_port_errors_total",
						append(of[:5:5], "receive", "kind", "any")...),
				}
			})
		}
	}
	answers := func(since time.Duration) func(*history) {
		return func(h *history) {
			h.fill(15*time.Minute, 30*time.Second, func(ago time.Duration) []sample.Point {
				return []sample.Point{h.point(b2f(ago >= since), "linerate_switch_up", "switch", "core")}
			})
		}
	}
	const week = 7 * 24 * time.Hour
	covered := map[string][2]bool{"history-disk-full": {true, true}} // in TestFindings
	for _, c := range []struct {
		rule, name string
		fill       func(*history)
		want       string // text; empty: must not fire
	}{
		{"drops-rise", "from nothing", drops(0, 50, "ring"),
			"eth0 on near loses 42.11 packets a second (receive, ring), three times as many as in the hour before"},
		{"drops-rise", "from little", drops(2, 50, "kernel"),
			"eth0 on near loses 42.42 packets a second (receive, kernel), three times as many as in the hour before"},
		{"drops-rise", "as always", drops(50, 55, "ring"), ""},
		{"drops-rise", "none", drops(0, 0, "ring"), ""},
		{"drops-rise", "unwanted packets", drops(0, 50, "unwanted"), ""},
		{"link-down", "a while ago", up(func(ago time.Duration) float64 { return b2f(ago > 2*time.Hour) }),
			"eth0 on near is down and was up within the last day"},
		{"link-down", "was up for a moment", up(func(ago time.Duration) float64 { return b2f(ago == time.Minute) }),
			"eth0 on near is down and was up within the last day"},
		{"link-down", "never up", up(func(time.Duration) float64 { return 0 }), ""},
		{"link-down", "up", up(func(time.Duration) float64 { return 1 }), ""},
		{"link-down", "up again", up(func(ago time.Duration) float64 { return b2f(ago < time.Hour) }), ""},
		{"link-slower", "a hundred of a thousand", speed(1e9, 1e8),
			"eth0 on near runs at 100Mb/s, and ran faster within the last week"},
		{"link-slower", "faster", speed(1e9, 1e10), ""},
		{"link-slower", "the same", speed(1e9, 1e9), ""},
		{"retransmits", "one in twenty", tcp(1000, 50), "near retransmits 5% of its TCP segments"},
		{"retransmits", "one in a thousand", tcp(1000, 1), ""},
		{"retransmits", "of next to nothing", tcp(10, 5), ""},
		{"softirq-saturated", "softirq", cpu(0.97, 0),
			"CPU 3 of near spends 97% of its time in interrupts and softirqs"},
		{"softirq-saturated", "both", cpu(0.6, 0.35),
			"CPU 3 of near spends 95% of its time in interrupts and softirqs"},
		{"softirq-saturated", "half", cpu(0.5, 0.1), ""},
		{"measurement-slower", "half", measured(week, 5e8),
			"stream up to far carries 500Mb/s, less than nine of ten results in the last week"},
		{"measurement-slower", "the lowest so far", measured(week, 0.978e9), ""},
		{"measurement-slower", "as ever", measured(week, 1e9), ""},
		{"measurement-slower", "too few to say", measured(20*time.Hour, 5e8), ""},
		{"measurement-fails", "fails", success(0), "stream to far failed, and has not succeeded since"},
		{"measurement-fails", "succeeds again", success(1), ""},
		{"switch-drops", "one in a hundred", port(1000, 10, 0),
			"port Gi0/1 of switch core dropped 3k frames within five minutes"},
		{"switch-drops", "one in a million", port(1e6, 1, 0), ""},
		{"switch-drops", "none", port(1000, 0, 0), ""},
		{"switch-errors", "one each second", port(1000, 0, 1),
			"port Gi0/1 of switch core counted 300 errors (receive) within five minutes"},
		{"switch-errors", "none", port(1000, 10, 0), ""},
		{"switch-silent", "for ten minutes", answers(10 * time.Minute), "switch core has not answered for five minutes"},
		{"switch-silent", "answers", answers(0), ""},
	} {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			c.fill(h)
			all := h.fired(c.rule)
			switch {
			case c.want == "" && len(all) != 0:
				t.Errorf("fires: %+v", all)
			case c.want != "" && (len(all) != 1 || all[0].State != Firing || all[0].Text != c.want):
				t.Errorf("%+v, want %q", all, c.want)
			}
		})
		both := covered[c.rule]
		both[1] = both[1] || c.want == ""
		both[0] = both[0] || c.want != ""
		covered[c.rule] = both
	}
	for _, d := range Defaults() {
		if both := covered[d.Name]; !both[0] || !both[1] {
			t.Errorf("rule %s has no history that fires it, or none that does not", d.Name)
		}
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// TestDefaultRulesAskForWhatThereIs checks the names of metrics in the queries against the
// catalogue of the sampler.
func TestDefaultRulesAskForWhatThereIs(t *testing.T) {
	known := make(map[string]bool)
	for _, m := range append(sample.Metrics(), switches.Metrics()...) {
		known[m.Name] = true
	}
	for _, d := range Defaults() {
		for _, name := range regexp.MustCompile(`linerate_[a-z0-9_]+`).FindAllString(d.Query, -1) {
			if !known[name] && !strings.HasPrefix(name, "linerate_measurement_") {
				// which package schedule has, and tests there
				t.Errorf("rule %s queries %s, which the hub does not sample", d.Name, name)
			}
		}
	}
}

// TestBadQueryIsAnErrorAtTheStart checks that a mistake in a query is an error of New, and not only
// a line in the log.
func TestBadQueryIsAnErrorAtTheStart(t *testing.T) {
	h := newHistory(t)
	_, err := New(Options{
		Rules: []Config{{Name: "good", Query: "rate(linerate_tcp_retransmits_total[5m]) > 1"},
			{Name: "mine", Query: "rate(linerate_tcp_retransmits_total[5m] > 1"}},
		Query: h.store.Vector,
	})
	if !errors.Is(err, record.ErrBadQuery) || !strings.Contains(err.Error(), "alert mine: query: ") ||
		strings.Contains(err.Error(), "alert good") {
		t.Error(err)
	}
}
