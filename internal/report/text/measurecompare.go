package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
	"github.com/linerate/linerate/internal/traffic"
)

// MeasureCompare writes measurements beside an earlier one.
func MeasureCompare(w io.Writer, d *report.MeasureCompareDocument, s Style) error {
	p := &printer{w: w, s: s}
	t := newTable("", "measured", "path", "from")
	t.wrap = true
	one := func(name string, m report.Measured) {
		t.row(cell{name, s.bold}, m.Time.UTC().Format(time.DateTime),
			fmt.Sprintf("%s → %s", nameOr(m.Host, "near"), m.Target), m.Source)
	}
	one("before", d.Before)
	for _, a := range d.After {
		one("after", a.Measured)
	}
	t.print(p, "")
	for _, a := range d.After {
		p.line("")
		if len(d.After) > 1 {
			p.head(clean(a.Source))
		}
		p.comparisons(a.Comparisons)
		p.notes("NOT COMPARED", a.Warnings)
	}
	p.line("")
	within := false
	for _, a := range d.After {
		for _, c := range a.Comparisons {
			within = within || c.Spread == "intervals"
		}
	}
	switch {
	case !d.Common():
		p.line("%s", s.bold("nothing could be compared: these measurements have no test in common"))
	case !d.Differs:
		p.line("%s", s.bold("nothing differs beyond the noise of these measurements"))
	}
	if within {
		p.wrapped("", "An interval shows the noise within the two tests. Two tests of one path may differ by more; "+
			"measure --confidence repeats them and shows that too.")
	}
	return p.err
}

// comparisons prints a table of comparisons.
func (p *printer) comparisons(all []traffic.Comparison) {
	t := newTable("test", "direction", ">before", ">after", ">effect", "interval", "verdict")
	for _, c := range all {
		verdict := cell{strings.ReplaceAll(string(c.Verdict), "-", " "), map[traffic.Comparative]func(string) string{
			traffic.Better: p.s.green, traffic.Worse: p.s.red}[c.Verdict]}
		effect, interval := "", ""
		if c.Ratio > 0 {
			effect = words.Times(c.Ratio)
		}
		if c.Low > 0 && c.Spread != "exact" {
			interval = words.Interval(tune.Effect{Ratio: c.Ratio, Low: c.Low, High: c.High})
		}
		t.row(c.Test, report.Direction(traffic.Result{Test: c.Test, Direction: c.Direction}), figureText(c, c.Before),
			figureText(c, c.After), effect, interval, verdict)
	}
	t.print(p, "  ")
}

// figureText returns one figure of a comparison with its unit.
func figureText(c traffic.Comparison, value float64) string {
	switch {
	case strings.HasSuffix(c.Figure, "_bits_per_second"):
		return unit.BitRate(value).String()
	case strings.HasSuffix(c.Figure, "_seconds"):
		return unit.FormatSeconds(value)
	case strings.HasSuffix(c.Figure, "_bytes"):
		return fmt.Sprintf("%.0f B", value)
	case c.Test == traffic.CRR:
		return unit.FormatCount(value) + " conn/s"
	}
	return unit.FormatCount(value) + " trans/s"
}

// gate prints what a measurement was asked to reach.
func (p *printer) gate(g *report.MeasureGate) {
	if g == nil {
		return
	}
	p.line("")
	p.head("ASKED FOR")
	if g.FailBelow > 0 {
		p.wrapped("  ", fmt.Sprintf("at least %s", unit.BitRate(g.FailBelow)))
	}
	if b := g.Baseline; b != nil {
		tolerance := 0.0
		if g.Tolerance != nil {
			tolerance = *g.Tolerance
		}
		p.wrapped("  ", fmt.Sprintf("not proven more than %s worse than %s of %s", unit.FormatPercent(tolerance), b.Source,
			b.Time.UTC().Format(time.DateTime)))
		p.comparisons(g.Comparisons)
	}
	for _, f := range g.Failures {
		p.wrapped("  ", "fails: "+f)
	}
	if len(g.Failures) == 0 {
		p.line("  %s", p.s.green("passes"))
	}
}

// Measurements writes the list of stored measurements, newest first.
func Measurements(w io.Writer, d *report.MeasurementsDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Measurements) == 0 {
		p.line("no measurements are stored yet: linerate measure TARGET stores each one")
		return p.err
	}
	t := newTable("measurement", "target", "figures")
	t.wrap = true
	for _, m := range d.Measurements {
		figures := cmp.Or(m.Figures, "no test has a figure")
		if m.Problem != "" {
			figures = "cannot be read: " + m.Problem
		}
		t.row(m.Name, shortened(m.Target, 30), figures)
	}
	t.print(p, "")
	p.line("%s", s.dim("linerate measure compare BEFORE AFTER compares two; `last` is the newest, "+
		"`previous` the one before"))
	return p.err
}
