package text

import (
	"io"
	"math"
	"strconv"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/calc"
	"github.com/linerate/linerate/internal/report"
)

// Calc writes a calculation: the formula, what was given, and each value with its own formula.
func Calc(w io.Writer, d *report.CalcDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.head(d.What + ": " + d.Formula)
	given := newTable()
	for _, q := range d.Given {
		given.row(q.Name, quantity(q))
	}
	given.print(p, "  ")
	p.line("")
	values := newTable()
	values.wrap = true
	for _, q := range d.Values {
		values.row(q.Name, quantity(q), cell{q.Formula, s.dim})
	}
	values.print(p, "  ")
	for _, n := range d.Notes {
		p.line("")
		p.wrapped("  ", n)
	}
	return p.err
}

// quantity writes a value with its unit, in the prefixes that its unit is usual with.
func quantity(q report.CalcQuantity) string {
	switch calc.Unit(q.Unit) {
	case calc.Seconds:
		return unit.FormatSeconds(q.Value)
	case calc.BitsPerSecond:
		return unit.BitRate(q.Value).String()
	case calc.Bytes:
		if q.Value < math.MaxInt64 {
			return unit.Bytes(math.Round(q.Value)).String()
		}
	}
	// Counts keep all digits: 81274 frames are compared with a counter.
	digits := 4
	if q.Value >= 100 {
		digits = max(digits, len(strconv.FormatFloat(q.Value, 'f', 0, 64)))
	}
	text := strconv.FormatFloat(q.Value, 'g', digits, 64)
	if q.Unit == string(calc.PerSecond) {
		return text + "/s"
	}
	if q.Unit != "" {
		text += " " + q.Unit
	}
	return text
}
