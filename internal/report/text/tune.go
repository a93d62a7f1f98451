package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// Tune writes a tune document: the outcome in one line, before and after, the ladder of trials, and
// the changes that stay on the hosts.
func Tune(w io.Writer, d *report.TuneDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.headline(d)
	if d.BudgetNeeded > 0 {
		p.line("            nothing was changed; try: %s", s.bold("--budget "+words.Budget(d.BudgetNeeded)))
	}
	if len(d.Findings) > 0 {
		p.line("")
		p.head("LIMIT BEFORE")
		p.line("  %s", p.severity(d.Findings[0].Severity, string(d.Findings[0].Code)))
		p.wrapped("  ", d.Findings[0].Title)
	}
	p.beforeAfter(d)
	if len(d.Trials) > 0 {
		p.line("")
		p.head("TRIALS")
		p.ladder(d.Trials)
	}
	if len(d.Ablation) > 0 {
		p.line("")
		p.head("STILL NEEDED BESIDE THE OTHER CHANGES")
		t := newTable(">effect", "interval", "", "change")
		t.wrap = true
		for _, a := range d.Ablation {
			needed := cell{words.Needed(a), s.green}
			if !a.Needed {
				needed.paint = s.yellow
			}
			t.row(words.Times(a.Ratio), words.Interval(a.Effect), needed, fmt.Sprintf("%s %s", a.Side, a.Knob))
		}
		t.print(p, "  ")
	}
	if d.Interaction != nil {
		p.notes("TOGETHER", []string{words.Together(d.Interaction)})
	}
	if d.Soak != nil {
		p.notes("SOAK", []string{words.Soaked(d.Soak)})
	}
	if len(d.Changes) > 0 {
		p.line("")
		p.head("CHANGES")
		p.left(d.Changes)
		p.line("  %s", s.dim("linerate undo --run "+cmp.Or(d.Run, "RUN")+" undoes them at both ends"))
	}
	if len(d.PossiblyCommitted) > 0 && d.FarUndone == nil {
		p.line("")
		p.head("PERHAPS IN FORCE")
		t := newTable()
		t.wrap = true
		for _, c := range d.PossiblyCommitted {
			t.row(c.ID, fmt.Sprintf("%s %s %s → %s", c.Side, c.Knob, words.Value(c.From), words.Value(c.To)))
		}
		t.print(p, "  ")
		p.wrapped("  ", "The host was asked to commit, and the run ended before the answer came.")
		p.line("  %s", s.dim("linerate undo --run "+cmp.Or(d.Run, "RUN")+" takes back what is in force at either end"))
	}
	p.notes("WARNINGS", d.Warnings)
	if d.Run != "" {
		p.line("")
		p.line("%s", s.dim("linerate report "+clean(d.Run)+" shows this run again, and draws its page"))
	}
	return p.err
}

// headline prints the verdict in colour and its sentence.
func (p *printer) headline(d *report.TuneDocument) {
	verdict, text := words.Headline(d)
	paint := p.s.bold
	switch verdict {
	case "Proved":
		paint = func(t string) string { return p.s.bold(p.s.green(t)) }
	case "Not proved", "Not finished":
		paint = func(t string) string { return p.s.bold(p.s.yellow(t)) }
	}
	p.hanging(paint(verdict)+"  ", utf8.RuneCountInString(verdict)+2, text)
}

// beforeAfter prints the figures side by side, and the smallest gain that could have been proven:
// without that number a missing gain means nothing.
func (p *printer) beforeAfter(d *report.TuneDocument) {
	rows := words.Rows(d)
	if len(rows) == 0 {
		return
	}
	p.line("")
	p.head("BEFORE AND AFTER")
	t := newTable("", ">before", ">after", "change")
	for i, r := range rows {
		after := cell{text: r.After}
		if i == 0 {
			after.paint = p.s.bold
		}
		t.row(r.Name, r.Before, after, r.Change)
	}
	t.print(p, "  ")
	if d.Pilot != nil {
		p.line("  %s", p.s.dim(fmt.Sprintf("noise of a pair without a change: %s; smallest provable gain: %s",
			unit.FormatPercent(d.Pilot.PairNoise), unit.FormatPercent(d.Pilot.ResolvableEffect))))
	}
}

// ladder prints the trials in their order: effect, verdict, change. The change comes last, so that
// a long one wraps instead of pushing the figures over the edge.
func (p *printer) ladder(trials []tune.Trial) {
	t := newTable(">effect", "interval", ">pairs", "verdict", "change")
	t.wrap = true
	for _, x := range trials {
		t.row(words.Times(x.Ratio), words.Interval(x.Effect), words.Count(x.Pairs), p.verdict(x),
			fmt.Sprintf("%s %s %s → %s", x.Side, x.Knob, words.Value(x.From), words.Value(x.To)))
	}
	t.print(p, "  ")
	for _, x := range trials {
		if x.Verdict == tune.Refused {
			p.wrapped("  ", fmt.Sprintf("%s refused: %s", x.Knob, x.Reason))
		}
		if x.Verdict == tune.Kept || x.Verdict == tune.RevertedWorse {
			p.where(x)
		}
	}
}

// trialStages is how many stages and functions of a trial's profile the text names.
const trialStages = 3

// where says where a trial moved the processor time, one sentence for each sampled host.
func (p *printer) where(t tune.Trial) {
	for _, a := range t.Profiles {
		var moved []string
		for _, rows := range [][]profile.Change{a.Stages, a.Functions} {
			named := 0
			for _, r := range rows {
				if r.Differs && named < trialStages {
					named++
					moved = append(moved, fmt.Sprintf("%s %s → %s", r.Name, compared(a.Unit, r.Before), compared(a.Unit, r.After)))
				}
			}
		}
		if len(moved) == 0 {
			moved = []string{"no stage and no function differs beyond chance"}
		}
		total := ""
		if a.Total != nil {
			total = fmt.Sprintf("all %s → %s; ", compared(a.Unit, a.Total.Before), compared(a.Unit, a.Total.After))
		}
		p.wrapped("  ", fmt.Sprintf("%s, processors of the %s host, %s: %s%s", t.Knob, a.Side, a.Unit, total,
			strings.Join(moved, ", ")))
	}
}

// left prints the changes that a run left in force. `linerate history` has their times and notes.
func (p *printer) left(changes []journal.Change) {
	t := newTable("id", "state", "change")
	t.wrap = true
	for _, c := range changes {
		t.row(c.ID, p.state(c), fmt.Sprintf("%s %s %s → %s", c.Side, c.Knob, words.Value(c.From),
			words.Value(c.To)))
	}
	t.print(p, "  ")
}

// verdict colours the verdict of a trial.
func (p *printer) verdict(t tune.Trial) cell {
	return cell{words.Trial(t), map[tune.Verdict]func(string) string{tune.Kept: p.s.green, tune.RevertedWorse: p.s.red,
		tune.Refused: p.s.yellow}[t.Verdict]}
}
