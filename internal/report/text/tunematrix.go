package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// TuneMatrix writes a row for each case, then why some are not tuned, and one line for scripts at
// the end.
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
			share = words.Percent(*c.Share)
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
		p.line("%s", s.dim(fmt.Sprintf("knobs without an effect: %d tried, %d kept", trials, kept)))
	}
	if len(free) > 0 {
		p.notes("COSTS NOTHING HERE", []string{strings.Join(slices.Compact(free), ", ") +
			": the fault costs less than a tenth of the healthy rate in this world, so tuning had nothing to repair; " +
			"these cases do not count"})
	}
	p.notes("NOT PLAYED", notPlayed(skipped))
	share := 0.0
	if d.Share != nil {
		share = 100 * *d.Share
	}
	// Scripts read this line.
	p.line("tuned-percent=%.1f cases=%d", share, d.Judged)
	return p.err
}
