package text

import (
	"io"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// TunePlan writes what a tune would do: what limits the path, each candidate with its levels, its
// disturbance and its risk, what is left alone and why, and the time.
func TunePlan(w io.Writer, d *report.TuneDocument, plan *report.TunePlan, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s  %s", s.bold("Dry run"), "Nothing was written on either host.")
	if len(d.Findings) > 0 {
		p.line("")
		p.head("LIMIT")
		p.line("  %s", p.severity(d.Findings[0].Severity, string(d.Findings[0].Code)))
		p.wrapped("  ", d.Findings[0].Title)
	}
	if plan == nil {
		p.line("")
		p.wrapped("", words.Sentence(strings.TrimPrefix(d.Reason, "nothing to tune: "), "No change is worth trying."))
		return p.err
	}
	p.line("")
	p.head("PLAN")
	p.line("  %s, in segments of %s after a warm-up of %s; %s or more in all", clean(plan.Objective),
		unit.FormatSeconds(plan.SegmentSeconds),
		unit.FormatSeconds(plan.WarmUpSeconds), unit.FormatSeconds(plan.EstimateSeconds))
	t := newTable("side", "knob", "from", "levels", "class", ">at least")
	for _, c := range plan.Candidates {
		if c.Refused == "" {
			t.row(c.Side, c.Knob, words.Value(c.From), levelsText(c.Levels), "d"+string('0'+rune(c.Disturbance)),
				unit.FormatSeconds(c.EstimateSeconds))
		}
	}
	t.print(p, "  ")
	said := map[knob.ID]bool{} // a knob may be a candidate at both ends
	for _, c := range plan.Candidates {
		if c.Refused == "" && c.Risk != "" && !said[c.Knob] {
			said[c.Knob] = true
			p.wrapped("  ", string(c.Knob)+" risks: "+c.Risk)
		}
	}
	for _, c := range plan.Candidates {
		if c.Refused != "" {
			p.wrapped("  ", string(c.Side)+" "+string(c.Knob)+" is left alone: "+c.Refused)
		}
	}
	p.notes("NOTES", plan.Notes)
	return p.err
}

// levelsText lists levels. Where levels of several numbers differ only in the last, it shows the
// others once.
func levelsText(levels []knob.Value) string {
	texts := make([]string, len(levels))
	for i, v := range levels {
		texts[i] = string(v)
		if i == 0 {
			continue
		}
		first, own := strings.Fields(string(levels[0])), strings.Fields(string(v))
		if n := len(own) - 1; n > 0 && len(first) == len(own) &&
			strings.Join(first[:n], " ") == strings.Join(own[:n], " ") {
			texts[i] = "… " + own[n]
		}
	}
	return clean(strings.Join(texts, ", "))
}
