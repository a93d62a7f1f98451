package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// Apply writes what a profile would have tried: the candidates, and what is left out, with the
// reason. Settings that are left out for the same reason share it.
func Apply(w io.Writer, d *report.ApplyDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s  %s", s.bold("Dry run"), "Nothing was written.")
	p.wrapped("", fmt.Sprintf("%s: %s, of which %d can be tried for %s", d.Profile,
		unit.Counted(len(d.Settings), "setting"), d.Candidates, d.Goal))
	if d.Candidates > 0 {
		p.line("")
		p.head("CANDIDATES")
		t := newTable("knob", "now", "value", "class", "advice", "from")
		for _, x := range d.Settings {
			if x.LeftOut == "" {
				t.row(strings.TrimPrefix(string(x.Knob), "sysctl:"), words.Value(x.From), words.Value(x.Value),
					"d"+string('0'+rune(x.Disturbance)), cell{adviceWords[x.Verdict], adviceColour(s, x.Verdict)}, x.Where)
			}
		}
		t.print(p, "  ")
	}
	if d.Candidates < len(d.Settings) {
		p.line("")
		p.head("LEFT OUT")
		said := map[string]bool{}
		for i, x := range d.Settings {
			if x.LeftOut == "" || said[x.LeftOut] {
				continue
			}
			said[x.LeftOut] = true
			var names []string
			worst := advice.Unknown
			for _, y := range d.Settings[i:] {
				if y.LeftOut != x.LeftOut {
					continue
				}
				names = append(names, strings.TrimPrefix(string(y.Knob), "sysctl:")+" = "+string(y.Value))
				if y.Verdict.Rank() > worst.Rank() {
					worst = y.Verdict
				}
			}
			for _, line := range broken(strings.Join(names, ", "), s.textWidth()-2) {
				p.line("  %s", s.bold(line))
			}
			for _, line := range broken(x.LeftOut, s.textWidth()-6) {
				p.line("      %s", adviceColour(s, worst)(line))
			}
		}
	}
	if d.NotUnderstood > 0 {
		p.line("")
		p.wrapped("", unit.Counted(d.NotUnderstood, "line")+" not understood; linerate check-advice lists them")
	}
	for _, name := range d.Missing {
		p.wrapped("", "includes "+name+", which this host does not have: its settings are missing here")
	}
	if d.Candidates > 0 {
		p.line("")
		p.wrapped("", "linerate apply "+d.Profile+" TARGET tries them on the path to TARGET, and keeps what is proven "+
			"to help.")
	}
	return p.err
}
