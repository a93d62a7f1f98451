package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/record/peak"
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host/sample"
)

// Bounds of a comparison.
const (
	MaxPoints = 1800 // of a series in one interval
	MaxRows   = 2000
	// Shortest is the shortest interval.
	Shortest = 10 * time.Second
	// Longest is the longest interval.
	Longest = 366 * 24 * time.Hour
)

// Schema is the schema of the document.
const Schema = "linerate.compare/1"

// Interval is a part of a history.
type Interval struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// Matrix queries a history, as [record.Store.Matrix] does.
type Matrix func(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]record.Row, error)

// Options of a comparison.
type Options struct {
	Before, After Interval
	Host          string
	Interface     string // empty: all
	// Metrics are those to compare. Run leaves out those whose names end in _info, which have no
	// value that could move, the peaks of counters that it compares, and those of the hub itself.
	Metrics []*sample.Metric
	// Every is the time between two samples; 0: a second.
	Every time.Duration
}

// Side is a series in one interval.
type Side struct {
	Mean    float64 `json:"mean"`
	Median  float64 `json:"median"`
	P99     float64 `json:"p99"`
	Samples int     `json:"samples"` // steps with a value
}

// Row is one series in both intervals.
type Row struct {
	Metric string            `json:"metric"`
	Labels map[string]string `json:"labels"` // without the host
	Unit   string            `json:"unit"`   // of the values; counters per second
	Before Side              `json:"before"`
	After  Side              `json:"after"`
	// Ratio of the means, after to before, and its 95 % confidence interval for this row alone.
	// Absent if before is zero or negative, or with too few samples.
	Ratio     *float64 `json:"ratio,omitempty"`
	RatioLow  *float64 `json:"ratio_low,omitempty"`
	RatioHigh *float64 `json:"ratio_high,omitempty"`
	// Moved reports a difference that chance does not make in 5 of 100 whole comparisons.
	Moved bool `json:"moved"`
	// Chance is the probability that chance alone makes a difference this large somewhere in the
	// comparison; 1 for a row that was not judged.
	Chance float64 `json:"chance_ratio"`
	Judged bool    `json:"judged"` // the row has enough samples
}

// Document is linerate.compare/1: two intervals and what differs, most moved first.
type Document struct {
	Schema    string   `json:"schema"`
	Host      string   `json:"host"`
	Interface string   `json:"interface,omitempty"`
	Before    Interval `json:"before"`
	After     Interval `json:"after"`
	Step      float64  `json:"step_seconds"`
	Rows      []Row    `json:"rows"`
	Truncated bool     `json:"truncated"` // the history has more series than rows
	Warnings  []string `json:"warnings,omitempty"`
}

// ErrBad reports invalid options; the text has the reason.
var ErrBad = errors.New("cannot compare")

// Check returns what is wrong with the options.
func (o Options) Check() error {
	for name, i := range map[string]Interval{"before": o.Before, "after": o.After} {
		switch length := i.End.Sub(i.Start); {
		case length < Shortest:
			return fmt.Errorf("%w: the interval %s must last at least %v", ErrBad, name, Shortest)
		case length > Longest:
			return fmt.Errorf("%w: the interval %s may last at most a year", ErrBad, name)
		}
	}
	switch {
	case o.Before.Start.Before(o.After.End) && o.After.Start.Before(o.Before.End):
		return fmt.Errorf("%w: the intervals overlap", ErrBad)
	case o.Host == "":
		return fmt.Errorf("%w: no host given", ErrBad)
	}
	return nil
}

// series is one row before the judgement.
type series struct {
	row           Row
	before, after []float64
}

// Run queries the history and judges the answers. It returns an error of the history unchanged, and
// ErrBad for invalid options.
func Run(ctx context.Context, ask Matrix, o Options) (*Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	step := stepOf(o)
	d := &Document{Schema: Schema, Host: o.Host, Interface: o.Interface, Before: o.Before, After: o.After,
		Step: step.Seconds(), Rows: []Row{}}
	var all []series
	var pairs []pair
	for _, m := range o.Metrics {
		if strings.HasSuffix(m.Name, "_info") || strings.HasSuffix(m.Name, peak.Suffix) ||
			strings.HasPrefix(m.Name, "linerate_hub_") {
			continue
		}
		some, err := o.read(ctx, ask, m, step)
		if err != nil {
			return nil, err
		}
		for _, s := range some {
			if len(all) == MaxRows {
				d.Truncated = true
				break
			}
			// Keep only what the judgement needs: a thousand series have many points.
			pairs = append(pairs, pairOf(s.before, s.after))
			s.before, s.after = nil, nil
			all = append(all, s)
		}
	}
	for i, v := range judge(pairs) {
		r := &all[i].row
		r.Judged, r.Moved, r.Chance = v.judged, v.moved, v.chance
		if v.judged && finite(v.ratio, v.low, v.high) {
			r.Ratio, r.RatioLow, r.RatioHigh = &v.ratio, &v.low, &v.high
		}
		d.Rows = append(d.Rows, *r)
	}
	slices.SortStableFunc(d.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Chance, b.Chance), -cmp.Compare(a.far(), b.far()), cmp.Compare(a.Metric, b.Metric))
	})
	if len(d.Rows) > 0 && !slices.ContainsFunc(d.Rows, func(r Row) bool { return r.Judged }) {
		d.Warnings = append(d.Warnings, "too few samples for a judgement: mark longer intervals")
	}
	return d, nil
}

// far returns the distance of a ratio from 1, the same in both directions.
func (r Row) far() float64 {
	if r.Ratio == nil {
		return math.Abs(r.After.Mean - r.Before.Mean)
	}
	return math.Abs(math.Log(*r.Ratio))
}

func finite(all ...float64) bool {
	return !slices.ContainsFunc(all, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// stepOf returns one step for both intervals, so that their blocks are equal: a whole number of
// samples.
func stepOf(o Options) time.Duration {
	longest := max(o.Before.End.Sub(o.Before.Start), o.After.End.Sub(o.After.Start))
	n := (longest + o.Every*MaxPoints - 1) / (o.Every * MaxPoints)
	return max(n, 1) * o.Every
}

// read queries one metric in both intervals.
func (o Options) read(ctx context.Context, ask Matrix, m *sample.Metric, step time.Duration) ([]series, error) {
	query := o.query(m, step)
	found := make(map[string]*series)
	for i, in := range []Interval{o.Before, o.After} {
		// The first value is that of the first whole step.
		rows, err := ask(ctx, query, in.Start.Add(step), in.End, step)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			labels := maps.Clone(r.Labels)
			delete(labels, "host")
			delete(labels, "__name__")
			key := fmt.Sprint(labels)
			s := found[key]
			if s == nil {
				s = &series{row: Row{Metric: m.Name, Labels: labels, Unit: unit(m)}}
				found[key] = s
			}
			if i == 0 {
				s.before, s.row.Before = r.Values, sideOf(r.Values)
			} else {
				s.after, s.row.After = r.Values, sideOf(r.Values)
			}
		}
	}
	var all []series
	for _, key := range slices.Sorted(maps.Keys(found)) {
		s := found[key]
		// A series that exists in one interval only cannot be compared; that it appeared or
		// disappeared is an event.
		if len(s.before) > 0 && len(s.after) > 0 && finite(s.row.Before.Mean, s.row.After.Mean) {
			all = append(all, *s)
		}
	}
	return all, nil
}

// query returns the PromQL with one series for each object of the metric. A window of one sample
// more than the step holds exactly the growth between two steps.
func (o Options) query(m *sample.Metric, step time.Duration) string {
	selector := fmt.Sprintf("%s{host=%s", m.Name, quote(o.Host))
	if o.Interface != "" && slices.Contains(m.Labels, "interface") {
		selector += ",interface=" + quote(o.Interface)
	}
	selector += "}"
	q := fmt.Sprintf("avg_over_time(%s[%dms])", selector, step.Milliseconds())
	if m.Kind == sample.Counter {
		q = fmt.Sprintf("rate(%s[%dms])", selector, (step + o.Every).Milliseconds())
	}
	var added []string
	for _, l := range m.Labels {
		if l == "cpu" || l == "queue" {
			added = append(added, l)
		}
	}
	if len(added) > 0 {
		q = "sum without(" + strings.Join(added, ",") + ")(" + q + ")"
	}
	return q
}

// quote returns a PromQL string, whose escapes are those of Go.
func quote(s string) string { return fmt.Sprintf("%q", s) }

func sideOf(values []float64) Side {
	return Side{Mean: stats.Mean(values), Median: stats.Median(values), P99: stats.Quantile(values, 0.99),
		Samples: len(values)}
}

// unit returns the unit in the name of a metric; counters per second.
func unit(m *sample.Metric) string {
	base := strings.TrimSuffix(m.Name, "_total")
	for suffix, u := range map[string]string{"_bits_per_second": "bit/s", "_bytes": "B", "_seconds": "s", "_ratio": "1",
		"_packets": "packets"} {
		if strings.HasSuffix(base, suffix) {
			base = u
			break
		}
	}
	if strings.HasPrefix(base, "linerate_") {
		base = base[strings.LastIndexByte(base, '_')+1:]
		if m.Kind != sample.Counter {
			base = ""
		}
	}
	if m.Kind != sample.Counter {
		return base
	}
	if base == "s" {
		return "1" // seconds per second
	}
	return base + "/s"
}
