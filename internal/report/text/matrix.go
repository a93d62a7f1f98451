package text

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/report"
)

// Matrix writes what was found instead of what, level by level, then each case that is wrong, and
// at last one line for scripts.
//
// The confusion table is a sparse one: forty codes across would not fit any screen, and all but the
// diagonal is to stay empty.
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
	// The last line, exactly so.
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
		title = "SOUND WORLDS"
	}
	p.line("%s", p.s.dim(title))
	t.print(p, "  ")
	p.line("")
}

// found is the code that came first, or why there was none.
func found(c *report.MatrixCase) string {
	if len(c.Found) == 0 {
		return "(no verdict)"
	}
	return c.Found[0].Code
}

// wrongCases prints each case that is not right with what it was told instead. Mild ones are not
// among them: they may stay unseen.
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

// matrixCost prints how long verdicts took, the slowest of each mode, and what watching cost.
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
		p.line("%s", p.s.dim(fmt.Sprintf("slowest verdict, %s: %.1f s; most processor time of one: %.1f %%", mode,
			modes[mode].seconds, 100*modes[mode].share)))
	}
	if d.Sounds > 0 {
		p.line("%s", p.s.dim(fmt.Sprintf("sound worlds with a warning: %d of %d", d.FalseAlarm, d.Sounds)))
	}
}

// caseName is SCENARIO/LEVEL, or SCENARIO for a sound world.
func caseName(scenario, level string) string { return strings.TrimSuffix(scenario+"/"+level, "/") }

// notPlayed says what was not played and why, each reason once. Cases come by reason.
func notPlayed(by map[string][]string) []string {
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("%s: %s", strings.Join(slices.Compact(by[reason]), ", "), reason))
	}
	return all
}
