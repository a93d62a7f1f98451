package reporttest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
)

// series returns a stream whose intervals have these rates in Mb/s.
func series(direction traffic.Direction, rates ...float64) traffic.Result {
	r := traffic.Result{Test: traffic.Stream, Direction: direction, StartTime: Noon, Streams: 1,
		DurationSeconds: float64(len(rates)), ThroughputBitsPerSec: stats.Mean(rates) * 1e6}
	for i, rate := range rates {
		r.Intervals = append(r.Intervals, traffic.Interval{StartSeconds: float64(i), EndSeconds: float64(i + 1),
			ThroughputBitsPerSec: rate * 1e6})
	}
	return r
}

// Before returns a measurement of a path; After one of the same path, whose upward direction has
// become slower.
func Before() *report.MeasureDocument {
	ping := traffic.Result{Test: traffic.Ping, Direction: traffic.Up, StartTime: Noon, DurationSeconds: 1, Streams: 1,
		RTT: &stats.Latencies{Count: 20, Min: 0.0201, Mean: 0.0202, P50: 0.0202, Max: 0.0205}}
	mtu := traffic.Result{Test: traffic.MTU, Direction: traffic.Up, StartTime: Noon, MTUBytes: 9000}
	return report.NewMeasure(Envelope(), "192.0.2.7:7070", []traffic.Result{ping, mtu,
		series(traffic.Up, 941, 940, 942, 941, 939, 941, 942, 940),
		series(traffic.Down, 930, 938, 941, 926, 935, 931, 940, 937)})
}

// After returns a later measurement than Before.
func After() *report.MeasureDocument {
	d := Before()
	d.Time = d.Time.Add(24 * time.Hour)
	d.Tests[1].MTUBytes = 1500
	d.Tests[2] = series(traffic.Up, 701, 695, 702, 699, 704, 698, 700, 701)
	d.Tests[3] = series(traffic.Down, 935, 931, 940, 929, 938, 936, 933, 939)
	d.Tests = append(d.Tests, traffic.Result{Test: traffic.CRR, Direction: traffic.Up, Streams: 1,
		TransactionsPerSec: 4200})
	report.FillSlices(d)
	return d
}

// measurements are the documents about stored measurements, and lines of one that runs.
func measurements(t testing.TB) []Document {
	t.Helper()
	both := []*report.MeasureDocument{Before(), After()}
	gate := After()
	gate.Gate, gate.Warnings = report.Judge(gate, 900e6, "monday.json", Before(), 0.05)
	one, other := Before(), After()
	one.Tests, other.Tests = one.Tests[:1], other.Tests[2:]
	passes := Before()
	passes.Gate, _ = report.Judge(passes, 900e6, "", nil, 0)
	began := Noon
	list := []report.MeasurementEntry{
		{Name: "20261122-130505-7f3a", Time: &began, Target: "192.0.2.7", Figures: report.Figures(Before().Tests)},
		{Name: "20261121-130505-0001", Problem: errors.New("not the document of a measurement").Error()}}
	interval := report.NewLine(report.LineInterval)
	interval.Time, interval.Test, interval.Direction = Noon, traffic.Stream, traffic.Up
	interval.Interval = &Before().Tests[2].Intervals[0]
	event := report.NewLine(report.LineEvent)
	event.Time, event.Message = Noon, "stream up"
	result, err := report.DocumentLine(report.LineResult, Before())
	if err != nil {
		t.Fatal(err)
	}
	result.Time = Noon
	failed, err := report.DocumentLine(report.LineError,
		report.NewError("interrupted; trial changes were undone", "", 130))
	if err != nil {
		t.Fatal(err)
	}
	failed.Time = Noon
	return []Document{
		{"measure-gate", gate}, {"measure-passes", passes},
		{"measure-compare", report.NewMeasureCompare(Envelope(), []string{"monday.json", "tuesday.json"}, both)},
		{"measure-compare-same", report.NewMeasureCompare(Envelope(),
			[]string{"20261122-130505-7f3a", "20261122-130505-7f3b", "20261122-130505-7f3c"},
			[]*report.MeasureDocument{both[0], both[0], both[0]})},
		{"measure-compare-nothing", report.NewMeasureCompare(Envelope(), []string{"monday.json", "tuesday.json"},
			[]*report.MeasureDocument{one, other})},
		{"measurements", report.NewMeasurements(Envelope(), "/var/lib/linerate/measurements", list)},
		{"measurements-empty", report.NewMeasurements(Envelope(), "/var/lib/linerate/measurements", nil)},
		{"line-interval", interval}, {"line-event", event}, {"line-result", result},
		{"line-error", failed},
	}
}

// Hostile returns a text with everything that a format for other programs has to escape.
func Hostile() string { return fmt.Sprintf("a\"b\\c,d=e f\ng%s", `\`) }
