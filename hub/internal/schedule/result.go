package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
)

// labels that identify a measurement
var labels = []string{"target", "test", "direction"}

func gauge(name, help string, more ...string) *sample.Metric {
	return &sample.Metric{Name: "linerate_measurement_" + name, Kind: sample.Gauge, Help: help,
		Labels: append(slices.Clone(labels), more...)}
}

// Metrics of measurements.
var (
	throughput = gauge("throughput_bits_per_second",
		"Payload rate that the receiver of a scheduled measurement counted; the sum of both directions where both ran.")
	transactions = gauge("transactions_per_second",
		"Answered requests in a scheduled measurement of rr or crr.")
	roundTrip = gauge("rtt_seconds",
		"Round trip of pings or transactions in a scheduled measurement: the smallest and three quantiles.", "quantile")
	lossRatio   = gauge("loss_ratio", "Share of the datagrams or pings of a scheduled measurement that were lost.")
	retransmits = gauge("retransmits", "Segments that a scheduled measurement retransmitted, from the sender's "+
		"TCP_INFO.")
	success = gauge("success",
		"1 when a scheduled measurement came to its end, 0 when it failed; its test and direction are those of "+
			"the whole run.")
)

// Metrics returns all metrics of measurements.
func Metrics() []*sample.Metric {
	return []*sample.Metric{throughput, transactions, roundTrip, lossRatio, retransmits, success}
}

// Cell is the last measurement from one host to a target.
type Cell struct {
	From       string    `json:"from"`
	To         string    `json:"to"`
	Test       string    `json:"test"`
	Direction  string    `json:"direction"`
	Time       time.Time `json:"time"`
	Throughput *float64  `json:"throughput_bits_per_second,omitempty"`
	RTT        *float64  `json:"rtt_p50_seconds,omitempty"`
	Loss       *float64  `json:"loss_ratio,omitempty"`
	Event      string    `json:"event,omitempty"` // id of the event with its document
	Error      string    `json:"error,omitempty"` // why the results are not newer
}

// id returns the identity of a cell.
func (c Cell) id() Cell { return Cell{From: c.From, To: c.To, Test: c.Test, Direction: c.Direction} }

// Matrix returns the last results, sorted by host, target, test and direction.
func (s *Scheduler) Matrix() []Cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Cell, 0, len(s.cells))
	for _, c := range s.cells {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Test, b.Test),
			cmp.Compare(a.Direction, b.Direction))
	})
	return all
}

// remember puts the outcome of a run into the matrix.
func (s *Scheduler) remember(p *plan, e timeline.Event, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := ""
	if e.State == "failed" {
		failed = sentence(o.err)
	}
	fresh := make(map[Cell]bool)
	for _, r := range o.results {
		c := Cell{From: s.o.Host, To: p.Target, Test: string(r.Test), Direction: string(r.Direction)}
		id := c.id()
		c.Time, c.Event, c.Loss = e.End, e.ID, r.LossRatio
		if r.ThroughputBitsPerSec > 0 {
			c.Throughput = &r.ThroughputBitsPerSec
		}
		if r.RTT != nil {
			c.RTT = &r.RTT.P50
		}
		s.cells[id], fresh[id] = c, true
	}
	if failed == "" {
		return
	}
	// A failed run leaves the old results in its cells, with the error beside them; a cell without
	// results gets the error alone.
	for _, spec := range p.specs(p.amounts) {
		id := Cell{From: s.o.Host, To: p.Target, Test: string(spec.Test),
			Direction: string(cmp.Or(spec.Direction, traffic.Up))}
		if fresh[id] {
			continue
		}
		c, known := s.cells[id]
		if !known {
			c = id
			c.Time, c.Event = e.End, e.ID
		}
		c.Error = failed
		s.cells[id] = c
	}
}

// point returns the value of one series, whose pointer is the same in every run.
func (s *Scheduler) point(m *sample.Metric, value float64, of ...string) sample.Point {
	key := m.Name + "\xff" + strings.Join(of, "\xff")
	series := s.series[key]
	if series == nil {
		series = &sample.Series{Metric: m, Values: of}
		s.series[key] = series
	}
	return sample.Point{Series: series, Value: value}
}

// points returns the results of a run as points.
func (s *Scheduler) points(p *plan, o outcome) []sample.Point {
	var all []sample.Point
	for _, r := range o.results {
		test, direction := string(r.Test), string(r.Direction)
		if r.Test == traffic.Stream || r.Test == traffic.UDP {
			all = append(all, s.point(throughput, r.ThroughputBitsPerSec, p.Target, test, direction))
		}
		if r.Test == traffic.RR || r.Test == traffic.CRR {
			all = append(all, s.point(transactions, r.TransactionsPerSec, p.Target, test, direction))
		}
		if r.RTT != nil {
			for _, q := range []struct {
				name  string
				value float64
			}{{"min", r.RTT.Min}, {"0.5", r.RTT.P50}, {"0.9", r.RTT.P90}, {"0.99", r.RTT.P99}} {
				all = append(all, s.point(roundTrip, q.value, p.Target, test, direction, q.name))
			}
		}
		if r.LossRatio != nil {
			all = append(all, s.point(lossRatio, *r.LossRatio, p.Target, test, direction))
		}
		if r.RetransmitsTotal != nil {
			all = append(all, s.point(retransmits, float64(*r.RetransmitsTotal), p.Target, test, direction))
		}
	}
	well := 1.0
	if o.err != nil {
		well = 0
	}
	return append(all, s.point(success, well, p.Target, p.test(), p.direction()))
}

// title returns the result on one line for people.
func (p *plan) title(o outcome) string {
	what := p.test()
	if p.Direction != "" {
		what += " " + p.Direction
	}
	switch {
	case o.err != nil:
		return fmt.Sprintf("%s to %s failed: %s", what, p.Target, sentence(o.err))
	case len(o.results) == 0:
		return fmt.Sprintf("%s to %s", what, p.Target)
	}
	return fmt.Sprintf("%s to %s: %s", what, p.Target, report.Figures(o.results))
}
