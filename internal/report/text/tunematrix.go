package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/report"
)

// TuneMatrix writes a row for each case, then why some are not tuned, and at last one line for
// scripts.
func TuneMatrix(w io.Writer, d *report.TuneMatrixDocument, s Style) error {
	p := &printer{w: w, s: s}
	t := newTable("scenario", ">healthy", ">before", ">after", ">share", ">trials", ">seconds", "minimal", "kept")
	t.wrap = true
	skipped := map[string][]string{}
	var free []string
	for i := range d.Cases {
		c := &d.Cases[i]
		if c.Skipped {
			skipped[c.Reason] = append(skipped[c.Reason], caseName(c.Scenario, c.Level))
			continue
		}
		paint := s.red
		switch {
		case c.Tuned:
			paint = s.green
		case c.Free:
			paint = s.dim
			free = append(free, caseName(c.Scenario, c.Level))
		}
		minimal := "yes"
		switch {
		case len(c.Kept) == 0:
			minimal = "–"
		case !c.Minimal:
			minimal = "NO"
		}
		share := "–"
		if c.Share != nil {
			share = fmt.Sprintf("%.0f %%", 100**c.Share)
		}
		t.row(caseName(c.Scenario, c.Level), figureOr(c.Healthy, c.Unit), figureOr(c.Before, c.Unit),
			figureOr(c.After, c.Unit), cell{share, paint},
			c.Trials, fmt.Sprintf("%.0f", c.Seconds), minimal, strings.Join(c.KeptNames(), ", "))
	}
	t.print(p, "")
	p.line("")
	headed := false
	for i := range d.Cases {
		c := &d.Cases[i]
		if c.Tuned || c.Free || c.Skipped {
			continue
		}
		if !headed {
			p.line("%s", s.dim("NOT TUNED"))
			headed = true
		}
		p.line("  %s  %s", caseName(c.Scenario, c.Level), s.dim(fmt.Sprintf("run %d, found %s", c.Run, c.Found)))
		for _, text := range append([]string{c.Reason}, c.Warnings...) {
			p.wrapped("    ", text)
		}
	}
	trials, kept := 0, 0
	for _, c := range d.Cases {
		if c.Null {
			trials, kept = trials+c.Trials, kept+len(c.Kept)
		}
	}
	if trials > 0 {
		p.line("%s", s.dim(fmt.Sprintf("knobs without an effect that were tried: %d, kept: %d", trials, kept)))
	}
	if len(free) > 0 {
		p.notes("COSTS NOTHING HERE", []string{strings.Join(slices.Compact(free), ", ") +
			": the fault takes less than a tenth of the healthy figure in this world, so that there was nothing to repair; counted neither as tuned nor as not"})
	}
	p.notes("NOT PLAYED", notPlayed(skipped))
	share := 0.0
	if d.Share != nil {
		share = 100 * *d.Share
	}
	// The last line, exactly so.
	p.line("tuned-percent=%.1f cases=%d", share, d.Judged)
	return p.err
}
