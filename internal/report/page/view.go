package page

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// view is what the page shows: plain strings and positions, with every decision taken.
type view struct {
	Verdict, Sentence   string
	Tone                string // good, weak, quiet: the colour of the verdict
	Host, Target, Goal  string
	Made, Version, Took string
	Run                 string // its name in the store

	Effect, Interval, Pairs string
	Confidence              string
	Bars                    []bar
	Rows                    []row
	Findings                []findingView
	Series                  *series
	Ladder                  *ladder
	Ablation                []ablationView
	Together, Soaked        string // a sentence each; empty: not tested
	Changes                 []changeView
	Uncertain               bool // Changes are those that may be in force
	State                   string
	Method                  []string
	Warnings                []string
	Again                   *againView
}

// bar is one of the two bars at the top; the longer one fills the width.
//
// Width is a share of the longer bar, both from zero: bars that begin elsewhere make small gains
// look large.
type bar struct{ Label, Value, Class, Width string }

// row is one line of before and after. Allowed and Held are of guard-rails: what they may cost, and
// whether they stayed within that.
type row struct{ Name, Before, After, Change, Allowed, Held string }

// findingView is one finding of the diagnosis before; Class is its severity and chooses the colour.
type findingView struct {
	Code, Title, Where, Sure, Class string
	Evidence                        []evidenceView
	Rejected                        []string
	Remedy                          string
}

// evidenceView is one row of a finding's evidence, with the value in words.
type evidenceView struct{ Name, Value, Source string }

// ablationView is one kept change that was measured against the kept set without it.
type ablationView struct{ Side, Knob, Effect, Interval, Result string }

// changeView is one change that is still in force.
type changeView struct{ ID, Side, Knob, From, To, State string }

// againView is the result of judging the segments again.
type againView struct {
	Sentence string
	Rows     []againRow
}

// againRow is one comparison judged again.
type againRow struct {
	What, Pairs, Effect, Interval, Was, Now, Why string
	Differs                                      bool
}

// newView turns a document into what the page shows. It decides about words, order and places, so
// that the layouts stay free of logic.
func newView(d *report.TuneDocument, again *tune.Reanalysis) view {
	verdict, sentence := words.Headline(d)
	v := view{
		Verdict: verdict, Sentence: sentence, Tone: "quiet", Run: d.Run,
		Host: cmp.Or(d.Host.Name, "near"), Target: d.Target, Goal: d.Goal,
		Made: d.Time.Format("2 January 2006, 15:04 MST"), Version: d.Linerate, State: string(d.State),
		Bars: bars(d), Rows: rows(d), Series: newSeries(d), Ladder: newLadder(d), Method: method(d),
		Warnings: d.Warnings,
	}
	if d.Seconds > 0 {
		v.Took = unit.FormatSeconds(d.Seconds)
	}
	switch verdict {
	case "Proved":
		v.Tone = "good"
		v.Effect, v.Interval, v.Pairs = words.Times(d.Final.Ratio), words.Interval(*d.Final), fmt.Sprint(d.Final.Pairs)
		if d.Final.Confidence > 0 {
			v.Confidence = words.Percent(d.Final.Confidence)
		}
	case "Not proved", "Not finished":
		v.Tone = "weak"
	}
	for _, f := range d.Findings {
		v.Findings = append(v.Findings, viewFinding(f))
	}
	for _, a := range d.Ablation {
		v.Ablation = append(v.Ablation, ablationView{string(a.Side), string(a.Knob), words.Times(a.Ratio),
			words.Interval(a.Effect), words.Needed(a)})
	}
	if d.Interaction != nil {
		v.Together = words.Together(d.Interaction)
	}
	if d.Soak != nil {
		v.Soaked = words.Soaked(d.Soak)
	}
	for _, c := range d.Changes {
		v.Changes = append(v.Changes, changeView{c.ID, c.Side, string(c.Knob), words.Value(c.From), words.Value(c.To),
			string(c.State)})
	}
	if len(d.Changes) == 0 && d.FarUndone == nil {
		for _, c := range d.PossiblyCommitted {
			v.Uncertain = true
			v.Changes = append(v.Changes, changeView{c.ID, string(c.Side), string(c.Knob), words.Value(c.From),
				words.Value(c.To), "perhaps committed"})
		}
	}
	if again != nil {
		v.Again = viewAgain(again)
	}
	return v
}

// bars returns the bar before, and the bar after when something was kept; none when both rates are
// zero.
func bars(d *report.TuneDocument) []bar {
	if d.Baseline == nil {
		return nil
	}
	all := []bar{{Label: "measured", Value: words.Quantity(d, d.Baseline.Objective), Class: "a"}}
	top := d.Baseline.Objective
	if d.After != nil {
		all[0].Label = "before"
		all = append(all, bar{Label: "after", Value: words.Quantity(d, d.After.Objective), Class: "b"})
		top = max(top, d.After.Objective)
	}
	if top <= 0 {
		return nil
	}
	all[0].Width = percentOf(d.Baseline.Objective / top)
	if d.After != nil {
		all[1].Width = percentOf(d.After.Objective / top)
	}
	return all
}

// rows returns the table of before and after, with what each guard-rail may cost.
func rows(d *report.TuneDocument) []row {
	var all []row
	for _, r := range words.Rows(d) {
		out := row{Name: r.Name, Before: r.Before, After: r.After, Change: r.Change}
		if g := r.Guard; g != nil {
			out.Change = words.Times(g.Ratio)
			if span := words.Interval(tune.Effect{Low: g.Low, High: g.High}); span != "" {
				out.Change += "  " + span
			}
			var allowed []string
			if g.Bound > 0 {
				allowed = append(allowed, "up to "+words.Times(g.Bound))
			}
			if g.Limit > 0 {
				allowed = append(allowed, "limit "+words.Guard(g.Name, g.Limit))
			}
			out.Allowed = strings.Join(allowed, ", ")
			out.Held = "✓ held"
			if g.Worse || g.PastLimit {
				out.Held = "✗ broken"
			}
		}
		all = append(all, out)
	}
	return all
}

// viewFinding puts a finding into words.
func viewFinding(f evidence.Finding) findingView {
	v := findingView{
		Code: string(f.Code), Title: f.Title, Where: f.Where, Sure: words.Percent(f.Confidence) + " sure",
		Class: string(f.Severity), Rejected: f.Rejected, Remedy: f.Remedy.Text,
	}
	for _, e := range f.Evidence {
		v.Evidence = append(v.Evidence, evidenceView{e.Name, words.Evidence(e), e.Source})
	}
	return v
}

// viewAgain puts a second judgement into words. It has rows only when the judgement differs from
// the first, or was made by other rules.
func viewAgain(r *tune.Reanalysis) *againView {
	v := &againView{Sentence: words.Again(r)}
	if r.OwnRules && r.Disagreements == 0 && r.Changed == 0 {
		return v
	}
	for _, c := range r.Comparisons {
		row := againRow{What: words.Comparison(c), Pairs: words.Count(c.Again.Pairs),
			Effect: words.Times(c.Again.Ratio), Interval: words.Interval(c.Again),
			Now: words.Verdict(c.Judged), Differs: c.Differs}
		if c.Decided != "" {
			row.Was = words.Verdict(c.Decided)
		}
		if c.Differs {
			row.Why = c.Reason
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

// method explains how the verdicts were reached, with the numbers of this run. The page is read by
// people without the program, who need to know what "proved" means.
func method(d *report.TuneDocument) []string {
	var all []string
	if p := d.Pilot; p != nil {
		all = append(all, fmt.Sprintf(
			"First, %d pairs were measured without a change. Such a pair scatters by %s here, so the "+
				"smallest provable gain is %s.",
			p.Pairs, unit.FormatPercent(p.PairNoise), unit.FormatPercent(p.ResolvableEffect)))
	}
	if len(d.Segments) > 0 {
		text := fmt.Sprintf(
			"%d segments were measured, each with new connections, in pairs in random order.",
			len(d.Segments))
		switch {
		case d.Discarded == 1:
			text += " One was disturbed by other activity and does not count."
		case d.Discarded > 1:
			text += fmt.Sprintf(" %d were disturbed by other activity and do not count.", d.Discarded)
		}
		all = append(all, text,
			"A change is kept only when the lower end of its interval exceeds the minimum useful effect and no guard-rail "+
				"is proven worse than its bound. All other changes are undone.")
	}
	if d.Final != nil && d.Final.Pairs > 0 && len(d.Kept) > 0 {
		all = append(all, fmt.Sprintf(
			"The kept set was then measured again, in %d pairs against the original settings; "+
				"that is the number at the top.", d.Final.Pairs))
	}
	if d.Partial {
		all = append(all, "The time ran out before every candidate was tried.")
	}
	if r := d.Design; r != nil {
		all = append(all, fmt.Sprintf(
			"Decisions were taken only after %s pairs. The chance of a false decision is spread over these looks: "+
				"%s confidence in all. The seed of the random order was %s.",
			strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Looks), " ", ", "), "[]"),
			unit.FormatPercent(r.Confidence), r.Seed))
	}
	return all
}
