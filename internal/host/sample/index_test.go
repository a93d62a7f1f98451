package sample

import "slices"

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

// Of gives all points of a metric whose first labels have these values, in the order of the
// reading. None: it is not there.
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

// Value gives the point of a metric with all its labels, in the order of Metric.Labels. False: it
// is not there.
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
