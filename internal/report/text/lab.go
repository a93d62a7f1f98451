package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// labColumns aligns the lines of scenarios, each of which is printed as it finishes. A table would
// need all rows for its widths, and a suite takes many minutes.
const labColumns = "%-20s %-24s %-24s %11s %11s %11s %10s  %s\n"

// labWidth is the width, in columns, that the lines of scenarios need.
const labWidth = 130

// labNarrow reports whether the columns do not fit the terminal.
func (s Style) labNarrow() bool { return s.lineWidth() < labWidth }

// LabHeader writes the heading over the lines of Lab.
func LabHeader(w io.Writer, s Style) error {
	if s.labNarrow() {
		return nil
	}
	_, err := fmt.Fprint(w,
		s.dim(fmt.Sprintf(labColumns, "scenario", "expected", "found", "healthy", "before", "after", "", "kept")))
	return err
}

// Lab writes one played scenario as a line, and the reason below when it did not pass.
func Lab(w io.Writer, d *report.LabDocument, s Style) error {
	verdict, paint := "pass", s.green
	switch {
	case d.Skipped:
		verdict, paint = "skip", s.dim
	case d.Disturbed:
		verdict, paint = "not judged", s.yellow
	case !d.Pass:
		verdict, paint = "FAIL", s.red
	}
	p := &printer{w: w, s: s}
	healthy, before, after := figureOr(d.Healthy, d.Unit), figureOr(d.Before, d.Unit), figureOr(d.After, d.Unit)
	if s.labNarrow() {
		p.line("scenario %s  %s", s.bold(d.Scenario), paint(verdict))
		p.line("    expected %s · found %s", d.Expected, d.Found)
		p.line("    healthy %s · before %s · after %s", healthy, before, after)
		p.line("    kept %s", cmp.Or(strings.Join(d.Kept, " "), "nothing"))
	} else {
		line := fmt.Sprintf(labColumns, d.Scenario, d.Expected, d.Found, healthy, before, after, verdict,
			strings.Join(d.Kept, " "))
		// Colour comes last, because its bytes would count as columns. The first match is the verdict:
		// no code or name of a scenario begins with one of its words.
		p.line("%s", strings.Replace(strings.TrimRight(line, " \n"), " "+verdict, " "+paint(verdict), 1))
	}
	if !d.Pass && d.Reason != "" {
		p.line("    %s", d.Reason)
	}
	for _, line := range replay(d.Replay) {
		p.line("    %s", line)
	}
	return p.err
}

// figureOr returns a figure in its unit, or a dash where none was measured.
func figureOr(x *float64, of string) string {
	switch {
	case x == nil:
		return "–"
	case of == "bits_per_second":
		return unit.BitRate(*x).String()
	}
	return unit.FormatCount(*x) + "/s"
}

// LabList writes one line for each scenario: its name, the expected finding, and its fault.
func LabList(w io.Writer, d *report.LabListDocument, s Style) error {
	p := &printer{w: w, s: s}
	t := newTable("scenario", "finds", "what")
	t.wrap = true
	for _, e := range d.Scenarios {
		t.row(e.Scenario, cell{e.Expected, s.dim}, e.Title)
	}
	t.print(p, "")
	return p.err
}

// replay returns the lines below that of the scenario: the figure of the write-up, the measured
// one, and the verdict of each trial.
func replay(r *report.LabReplay) []string {
	if r == nil {
		return nil
	}
	first := fmt.Sprintf("%s, %s", r.Row, r.Source)
	if r.Before > 0 && r.After > 0 {
		first += fmt.Sprintf(": ×%.3g there", r.After/r.Before)
	}
	if g := r.Confirmed; g != nil && g.Ratio > 0 {
		first += fmt.Sprintf("; ×%.3g here, ×%.3g to ×%.3g with %s confidence", g.Ratio, g.Low, g.High,
			words.Percent(g.Confidence))
	}
	lines := []string{first}
	for _, t := range r.Trials {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", t.Change, t.Verdict, t.Reason))
	}
	return lines
}
