package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/unit"
)

// labColumns keeps the lines of scenarios that are printed as they finish under one another.
//
// It is not a table, because a table knows its widths only when all rows are there, and a suite takes many minutes.
const labColumns = "%-20s %-24s %-24s %11s %11s %11s %6s  %s\n"

// LabHeader writes the heading over the lines of LabText.
func LabHeader(w io.Writer, s Style) error {
	_, err := fmt.Fprint(w, s.dim(fmt.Sprintf(labColumns, "scenario", "expected", "found", "healthy", "before", "after", "", "kept")))
	return err
}

// LabText writes one played scenario as a line, and the reason below when it did not pass.
func LabText(w io.Writer, d *LabDocument, s Style) error {
	verdict, paint := "pass", s.green
	switch {
	case d.Skipped:
		verdict, paint = "skip", s.dim
	case !d.Pass:
		verdict, paint = "FAIL", s.red
	}
	line := fmt.Sprintf(labColumns, d.Scenario, d.Expected, d.Found, figureOr(d.Healthy, d.Unit), figureOr(d.Before, d.Unit), figureOr(d.After, d.Unit), verdict, strings.Join(d.Kept, " "))
	line = strings.TrimRight(line, " \n")
	// Colour comes last, since its bytes would count as columns before. The first match is the verdict: no code or
	// name of a scenario begins with one of its words.
	line = strings.Replace(line, " "+verdict, " "+paint(verdict), 1)
	if !d.Pass && d.Reason != "" {
		line += "\n    " + d.Reason
	}
	line += d.Replay.text()
	_, err := fmt.Fprintln(w, line)
	return err
}

// figureOr prints a figure in its unit, or a dash where none was measured.
func figureOr(x *float64, of string) string {
	switch {
	case x == nil:
		return "–"
	case of == "bits_per_second":
		return unit.BitRate(*x).String()
	}
	return unit.FormatCount(*x) + "/s"
}
