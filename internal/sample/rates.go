package sample

import "slices"

// Rates gives what happened between two readings of one sampler: of a counter how much a second, of a gauge its later level. Series that are not in both
// are left out, but for gauges. The time between the two is that of the system's own clock ([Reading.SinceBoot]), so that neither a clock that is set nor a
// host that slept makes a rate wrong. Nothing comes of readings in the wrong order.
func Rates(before, after *Reading) []Point {
	seconds := (after.SinceBoot - before.SinceBoot).Seconds()
	if seconds <= 0 {
		return nil
	}
	rates := make([]Point, 0, len(after.Points))
	// Both are in nearly the same order: the place of a series in one is most often that in the other.
	var places map[*Series]int
	find := func(i int, s *Series) (float64, bool) {
		if i < len(before.Points) && before.Points[i].Series == s {
			return before.Points[i].Value, true
		}
		if places == nil {
			places = make(map[*Series]int, len(before.Points))
			for i, p := range before.Points {
				places[p.Series] = i
			}
		}
		at, ok := places[s]
		if !ok {
			return 0, false
		}
		return before.Points[at].Value, true
	}
	for i, p := range after.Points {
		if p.Series.Metric.Kind == Gauge {
			rates = append(rates, p)
			continue
		}
		if was, ok := find(i, p.Series); ok {
			rates = append(rates, Point{p.Series, max(0, p.Value-was) / seconds})
		}
	}
	return rates
}

// Meter gives rates reading after reading, also of counters that are too dear to be read each time: those keep their last rate until the next. It belongs to
// one goroutine.
type Meter struct {
	counters map[*Series]*metered
	readings int
	last     []Point
}

type metered struct {
	value float64
	at    float64 // seconds since boot
	rate  float64
	known bool
	seen  int
}

// meterPatience is for how many readings a series may be missing.
const meterPatience = 120

// Add takes the next reading and gives the rates since the one before in which each series was, as [Rates] does. The points are the caller's until
// the next call.
func (m *Meter) Add(r *Reading) []Point {
	if m.counters == nil {
		m.counters = make(map[*Series]*metered)
	}
	m.readings++
	now := r.SinceBoot.Seconds()
	m.last = m.last[:0]
	for _, p := range r.Points {
		if p.Series.Metric.Kind == Gauge {
			m.last = append(m.last, p)
			continue
		}
		c := m.counters[p.Series]
		if c == nil {
			c = &metered{}
			m.counters[p.Series] = c
		} else if now > c.at {
			c.rate, c.known = max(0, p.Value-c.value)/(now-c.at), true
		}
		c.value, c.at, c.seen = p.Value, now, m.readings
		if c.known {
			m.last = append(m.last, Point{p.Series, c.rate})
		}
	}
	for _, s := range r.Ended {
		delete(m.counters, s)
	}
	for s, c := range m.counters {
		switch {
		case c.seen == m.readings:
		case m.readings-c.seen > meterPatience:
			delete(m.counters, s)
		case c.known:
			m.last = append(m.last, Point{s, c.rate})
		}
	}
	return m.last
}

// Index finds points by metric and labels.
type Index struct {
	byMetric map[string][]Point
}

// NewIndex takes the points of a reading, or rates of them.
func NewIndex(points []Point) *Index {
	x := &Index{byMetric: make(map[string][]Point)}
	for _, p := range points {
		name := p.Series.Metric.Name
		x.byMetric[name] = append(x.byMetric[name], p)
	}
	return x
}

// Of gives all points of a metric whose first labels have these values, in the order of the reading. None: it is not there.
func (x *Index) Of(metric string, labels ...string) []Point {
	all := x.byMetric[metric]
	if len(labels) == 0 {
		return all
	}
	var found []Point
	for _, p := range all {
		if len(p.Series.Values) >= len(labels) && slices.Equal(p.Series.Values[:len(labels)], labels) {
			found = append(found, p)
		}
	}
	return found
}

// Value gives the point of a metric with all its labels, in the order of Metric.Labels. False: it is not there.
func (x *Index) Value(metric string, labels ...string) (float64, bool) {
	for _, p := range x.byMetric[metric] {
		if slices.Equal(p.Series.Values, labels) {
			return p.Value, true
		}
	}
	return 0, false
}

// Sum adds up the points of a metric whose first labels have these values.
func (x *Index) Sum(metric string, labels ...string) float64 {
	total := 0.0
	for _, p := range x.byMetric[metric] {
		if len(p.Series.Values) >= len(labels) && slices.Equal(p.Series.Values[:len(labels)], labels) {
			total += p.Value
		}
	}
	return total
}
