package text

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/report"
)

// Matrix writes a confusion table for each level, then each wrong case, and one line for scripts at
// the end.
//
// The table lists what was found instead: forty codes across would not fit a screen, and all cells
// off the diagonal should be empty.
func Matrix(w io.Writer, d *report.MatrixDocument, s Style) error {
	p := &printer{w: w, s: s}
	for _, level := range []string{"gross", "plain", "mild", ""} {
		p.confusion(d, level)
	}
	p.wrongCases(d)
	p.matrixCost(d)
	skipped := map[string][]string{}
	for _, c := range d.Cases {
		if c.Skipped {
			skipped[c.Reason] = append(skipped[c.Reason], caseName(c.Scenario, c.Level))
		}
	}
	p.notes("NOT PLAYED", notPlayed(skipped))
	share := 0.0
	if d.FirstRight != nil {
		share = 100 * *d.FirstRight
	}
	// Scripts read this line.
	p.line("first-right-percent=%.1f cases=%d", share, d.Judged)
	return p.err
}

// confusion prints the table of one level: a row for each expected code.
func (p *printer) confusion(d *report.MatrixDocument, level string) {
	type row struct {
		cases, first, three int
		instead             map[string]int
	}
	rows := map[string]*row{}
	for i := range d.Cases {
		c := &d.Cases[i]
		if c.Skipped || c.Level != level {
			continue
		}
		name := strings.Join(c.Expected[:min(1, len(c.Expected))], "")
		if c.Pair {
			name = strings.Join(c.Expected, " + ")
		}
		r := rows[name]
		if r == nil {
			r = &row{instead: map[string]int{}}
			rows[name] = r
		}
		r.cases++
		if c.Right {
			r.first++
		} else {
			r.instead[found(c)]++
		}
		if c.Rank >= 1 && c.Rank <= report.FirstThree {
			r.three++
		}
	}
	if len(rows) == 0 {
		return
	}
	t := newTable("expected", ">cases", ">right", ">in three", "found instead")
	t.wrap = true
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		var instead []string
		for _, code := range slices.Sorted(maps.Keys(r.instead)) {
			instead = append(instead, fmt.Sprintf("%s ×%d", code, r.instead[code]))
		}
		t.row(name, r.cases, r.first, r.three, cell{strings.Join(instead, ", "), p.s.red})
	}
	title := strings.ToUpper(level)
	if level == "" {
		title = "HEALTHY WORLDS"
	}
	p.line("%s", p.s.dim(title))
	t.print(p, "  ")
	p.line("")
}

// found returns the code of the first finding.
func found(c *report.MatrixCase) string {
	if len(c.Found) == 0 {
		return "(no verdict)"
	}
	return c.Found[0].Code
}

// wrongCases prints each wrong case with its findings, except mild ones, which may stay undetected.
func (p *printer) wrongCases(d *report.MatrixDocument) {
	headed := false
	for i := range d.Cases {
		c := &d.Cases[i]
		if c.Right || !c.Faulty() && !c.Sound() {
			continue
		}
		if !headed {
			p.line("%s", p.s.dim("WRONG"))
			headed = true
		}
		p.line("  %s  %s", caseName(c.Scenario, c.Level),
			p.s.dim(fmt.Sprintf("run %d, expected %s", c.Run, strings.Join(c.Expected, " or "))))
		if c.Reason != "" {
			p.wrapped("    ", c.Reason)
		}
		for n, f := range c.Found {
			p.line("    %d. %s  %s", n+1, p.s.dim(f.Severity), clean(f.Code+": "+f.Title))
		}
		for _, w := range c.Warnings {
			p.wrapped("    ", w)
		}
	}
	if headed {
		p.line("")
	}
}

// matrixCost prints the slowest verdict of each mode, and the highest CPU use.
func (p *printer) matrixCost(d *report.MatrixDocument) {
	type cost struct{ seconds, share float64 }
	modes := map[string]cost{}
	for _, c := range d.Cases {
		if c.Skipped || c.Seconds == 0 {
			continue
		}
		m := modes[c.Mode]
		modes[c.Mode] = cost{max(m.seconds, c.Seconds), max(m.share, c.CPU/c.Seconds)}
	}
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		p.line("%s", p.s.dim(fmt.Sprintf("slowest verdict, %s: %.1f s; most CPU time of a verdict: %.1f %%", mode,
			modes[mode].seconds, 100*modes[mode].share)))
	}
	if d.Sounds > 0 {
		p.line("%s", p.s.dim(fmt.Sprintf("healthy worlds with a warning: %d of %d", d.FalseAlarm, d.Sounds)))
	}
}

// caseName returns SCENARIO/LEVEL, or SCENARIO for a healthy world.
func caseName(scenario, level string) string { return strings.TrimSuffix(scenario+"/"+level, "/") }

// notPlayed lists the cases that were not played, each reason once. By maps reasons to cases.
func notPlayed(by map[string][]string) []string {
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("%s: %s", strings.Join(slices.Compact(by[reason]), ", "), reason))
	}
	return all
}
