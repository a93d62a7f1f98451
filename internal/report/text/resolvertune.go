package text

import (
	"fmt"
	"io"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// ResolverTune writes an experiment with the options of a name server.
func ResolverTune(w io.Writer, d *report.ResolverTuneDocument, s Style) error {
	p := &printer{w: w, s: s}
	capacity := "capacity not known"
	if d.Baseline != nil {
		capacity = perSecond(d.Baseline.Objective)
	}
	switch {
	case d.Final != nil && len(d.Kept) > 0 && d.State == tune.StateCommitted:
		p.line("%s      %s before, %s with %s", s.bold(s.green("Proved")), capacity,
			s.bold(words.Times(d.Final.Ratio)+" ("+words.Interval(*d.Final)+")"), unit.Counted(len(d.Kept), "option"))
	case len(d.Trials) > 0:
		p.line("%s  %s; %s", s.bold(s.yellow("Not proved")), capacity,
			fmt.Sprintf("none of %s helps", unit.Counted(len(d.Trials), "option")))
	default:
		p.line("%s  %s", s.bold("Not finished"), capacity)
	}
	if d.Reason != "" {
		p.wrapped("  ", words.Sentence(d.Reason, ""))
	}
	p.wrapped("  ", fmt.Sprintf("%s at %s, configured by %s. Capacity is the answers per second that its CPU time "+
		"permits.", d.Program, d.Server, d.Config))
	if len(d.Trials) > 0 {
		p.line("")
		p.head("TRIALS")
		t := newTable("", ">effect", "interval", "option", "from", "to")
		for _, x := range d.Trials {
			t.row(p.verdict(x), words.Times(x.Ratio), words.Interval(x.Effect), x.Knob.Attribute(), string(x.From),
				string(x.To))
		}
		t.print(p, "  ")
	}
	if len(d.Fresh) > 0 {
		p.line("")
		p.head("SPEED AND FRESHNESS")
		t := newTable("options", ">capacity", ">a change is seen after")
		for _, r := range d.Fresh {
			fresh, rate := "", ""
			if r.FreshSeconds != nil {
				fresh = unit.FormatSeconds(*r.FreshSeconds)
			}
			if r.AnswersPerSecond > 0 {
				rate = perSecond(r.AnswersPerSecond)
			}
			t.row(r.Name, rate, fresh)
		}
		t.print(p, "  ")
	}
	if len(d.Changes) > 0 {
		p.line("")
		p.head("CHANGES")
		p.left(d.Changes)
	}
	p.notes("WARNINGS", d.Warnings)
	return p.err
}
