package report

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic"
)

// The documents about stored measurements.
const (
	SchemaMeasureCompare = "linerate.measure-compare/1"
	SchemaMeasurements   = "linerate.measurements/1"
)

// Measured names one measurement of a comparison.
type Measured struct {
	Source string    `json:"source"` // a file, or the name of a stored measurement; - is standard input
	Time   time.Time `json:"time"`
	Host   string    `json:"host,omitempty"`
	Target string    `json:"target"`
}

// NewMeasured names a measurement that was read from a source.
func NewMeasured(source string, d *MeasureDocument) Measured {
	return Measured{Source: source, Time: d.Time, Host: d.Host.Name, Target: d.Target}
}

// Compared is a later measurement beside an earlier one.
type Compared struct {
	Measured
	Comparisons []traffic.Comparison `json:"comparisons"`
	Warnings    []string             `json:"warnings,omitempty"` // what could not be compared
}

// MeasureCompareDocument is linerate.measure-compare/1: one measurement, and later ones beside it.
type MeasureCompareDocument struct {
	Envelope
	Before  Measured   `json:"before"`
	After   []Compared `json:"after"`
	Differs bool       `json:"differs"` // a figure of any is proven to be better or worse
}

// CompareMeasured compares the tests that two measurements have in common. It names those that only
// one of them has.
func CompareMeasured(before, after *MeasureDocument) (comparisons []traffic.Comparison, warnings []string) {
	taken := make([]bool, len(after.Tests))
	for _, b := range before.Tests {
		found := false
		for i, a := range after.Tests {
			if taken[i] || a.Test != b.Test || a.Direction != b.Direction {
				continue
			}
			taken[i], found = true, true
			comparisons = append(comparisons, traffic.Compare(b, a))
			if a.Streams != b.Streams {
				warnings = append(warnings, fmt.Sprintf("%s %s: %d streams before, %d after", b.Test, b.Direction, b.Streams,
					a.Streams))
			}
			break
		}
		if !found {
			warnings = append(warnings, fmt.Sprintf("%s %s: only measured before", b.Test, b.Direction))
		}
	}
	for i, a := range after.Tests {
		if !taken[i] {
			warnings = append(warnings, fmt.Sprintf("%s %s: only measured after", a.Test, a.Direction))
		}
	}
	return comparisons, warnings
}

// NewMeasureCompare compares later measurements with the first one; sources are their names.
func NewMeasureCompare(e Envelope, sources []string, docs []*MeasureDocument) *MeasureCompareDocument {
	d := &MeasureCompareDocument{Envelope: e.Of(SchemaMeasureCompare), Before: NewMeasured(sources[0], docs[0])}
	for i := 1; i < len(docs); i++ {
		c := Compared{Measured: NewMeasured(sources[i], docs[i])}
		c.Comparisons, c.Warnings = CompareMeasured(docs[0], docs[i])
		for _, one := range c.Comparisons {
			d.Differs = d.Differs || one.Verdict == traffic.Better || one.Verdict == traffic.Worse
		}
		d.After = append(d.After, c)
	}
	FillSlices(d)
	return d
}

// Common reports whether the first measurement has a test in common with any of the others. Without
// one, the document compares nothing.
func (d *MeasureCompareDocument) Common() bool {
	for _, a := range d.After {
		if len(a.Comparisons) > 0 {
			return true
		}
	}
	return false
}

// MeasureGate is what a measurement was asked to reach.
type MeasureGate struct {
	FailBelow   float64              `json:"fail_below_bits_per_second,omitempty"`
	Baseline    *Measured            `json:"baseline,omitempty"`
	Tolerance   *float64             `json:"tolerance_ratio,omitempty"` // of a loss against the baseline
	Comparisons []traffic.Comparison `json:"comparisons,omitempty"`     // with the baseline
	// what was not reached, one sentence each; empty: the measurement passes
	Failures []string `json:"failures"`
}

// Judge judges a measurement by a limit in bits per second (0: none) and by a baseline (nil: none)
// from a source. It reports a test that misses the limit, and one whose whole interval is worse
// than the baseline by more than the tolerance. Warnings name what could not be compared.
func Judge(d *MeasureDocument, failBelow float64, source string, baseline *MeasureDocument,
	tolerance float64) (g *MeasureGate, warnings []string) {
	g = &MeasureGate{FailBelow: failBelow, Failures: []string{}}
	if failBelow > 0 {
		for _, r := range d.Tests {
			bulk := r.Test == traffic.Stream || r.Test == traffic.UDP
			if rate := unit.BitRate(r.ThroughputBitsPerSec); bulk && r.ThroughputBitsPerSec < failBelow {
				g.Failures = append(g.Failures, fmt.Sprintf("%s %s: %s is below the limit of %s", r.Test, r.Direction, rate,
					unit.BitRate(failBelow)))
			}
		}
	}
	if baseline == nil {
		return g, nil
	}
	before := NewMeasured(source, baseline)
	g.Baseline, g.Tolerance = &before, &tolerance
	g.Comparisons, warnings = CompareMeasured(baseline, d)
	for _, c := range g.Comparisons {
		switch {
		case c.WorseThan(tolerance):
			g.Failures = append(g.Failures, fmt.Sprintf("%s %s: worse than the baseline, and more than the tolerated %s",
				c.Test, c.Direction, unit.FormatPercent(tolerance)))
		case c.Before > 0 && c.After == 0 && !c.LessIsBetter():
			g.Failures = append(g.Failures, fmt.Sprintf("%s %s: nothing got through", c.Test, c.Direction))
		case c.Verdict == traffic.NotJudged:
			warnings = append(warnings, fmt.Sprintf("%s %s: too few intervals to compare with the baseline: a longer "+
				"--duration, a shorter --interval, or --confidence", c.Test, c.Direction))
		}
	}
	return g, warnings
}

// MeasurementsDocument is linerate.measurements/1: the measurements that this host has stored,
// newest first.
type MeasurementsDocument struct {
	Envelope
	Directory    string             `json:"directory"`
	Measurements []MeasurementEntry `json:"measurements"`
}

// MeasurementEntry summarises one stored measurement.
type MeasurementEntry struct {
	Name    string     `json:"name"`
	Time    *time.Time `json:"time,omitempty"`
	Target  string     `json:"target,omitempty"`
	Figures string     `json:"figures,omitempty"` // of all tests, for readers
	Problem string     `json:"problem,omitempty"` // why it cannot be read
}

// NewMeasurements makes the list of stored measurements.
func NewMeasurements(e Envelope, directory string, entries []MeasurementEntry) *MeasurementsDocument {
	d := &MeasurementsDocument{Envelope: e.Of(SchemaMeasurements), Directory: directory, Measurements: entries}
	FillSlices(d)
	return d
}
