package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/tune"
	"github.com/linerate/linerate/internal/unit"
)

// page is what the template shows: plain strings and positions, nothing to decide any more. Positions along x are per cent of the
// plot's width, so that a plot fits any screen without scaling its text; heights are pixels.
type page struct {
	Verdict, Sentence   string
	Tone                string // good, weak, quiet: the colour of the verdict
	Host, Target, Goal  string
	Made, Version, Took string

	Effect, Interval, Pairs string
	Confidence              string
	Bars                    []bar
	Compare                 []comparison
	Findings                []findingView
	Timeline                *timeline
	Ladder                  *ladder
	Ablation                []ablationView
	Changes                 []changeView
	State                   string
	Method                  []string
	Warnings                []string
}

// bar is one of the two bars at the top; the longer one fills the width.
//
// Width is a share of the longer bar, both from zero: bars that begin elsewhere make small gains look large.
type bar struct {
	Label, Value, Class string
	Width               string
}

// findingView is one finding of the diagnosis before; Class is its severity and chooses the colour.
type findingView struct {
	Code, Title, Where, Sure, Class string
	Evidence                        []evidenceView
	Rejected                        []string
	Remedy                          string
}

// evidenceView is one row of a finding's evidence, with the value in words.
type evidenceView struct{ Name, Value, Source string }

// ablationView is one kept change that was measured against the others without it.
type ablationView struct{ Side, Knob, Effect, Interval, Result string }

// changeView is one change that is still in force.
type changeView struct{ ID, Side, Knob, From, To, State string }

// newPage turns a document into what the template shows. Every decision about words, order and places is taken here, so that the
// template stays free of logic and tests of the page can read its fields in the golden file.
func newPage(d *TuneDocument, again *tune.Reanalysis) page {
	verdict, sentence := Headline(d)
	p := page{
		Verdict: verdict, Sentence: sentence, Tone: "quiet",
		Host: nameOr(d.Host.Name, "near"), Target: d.Target, Goal: d.Goal,
		Made: d.Time.Format("2 January 2006, 15:04 MST"), Version: d.Linerate, State: string(d.State),
		Compare: d.comparisons(), Warnings: d.Warnings,
		Timeline: newTimeline(d), Ladder: newLadder(d), Method: method(d),
	}
	if d.Seconds > 0 {
		p.Took = unit.FormatSeconds(d.Seconds)
	}
	switch verdict {
	case "Proved":
		p.Tone = "good"
		p.Effect, p.Interval, p.Pairs = times(d.Final.Ratio), interval(*d.Final), fmt.Sprint(d.Final.Pairs)
		if d.Final.Confidence > 0 {
			p.Confidence = fmt.Sprintf("%.0f %%", 100*d.Final.Confidence)
		}
	case "Not proved":
		p.Tone = "weak"
	}
	p.Bars = bars(d)
	for _, f := range d.Findings {
		p.Findings = append(p.Findings, viewFinding(f))
	}
	for _, a := range d.Ablation {
		result := "needed"
		if !a.Needed {
			result = "dropped"
		}
		p.Ablation = append(p.Ablation, ablationView{string(a.Side), string(a.Knob), times(a.Ratio), interval(a.Effect), result})
	}
	for _, c := range d.Changes {
		p.Changes = append(p.Changes, changeView{c.ID, c.Side, string(c.Knob), value(c.From), value(c.To), string(c.State)})
	}
	return p
}

// bars gives the figure before, and the one after when something was kept. A rate of zero has nothing to draw.
//
// Percentages need a positive longest bar to divide by.
func bars(d *TuneDocument) []bar {
	if d.Baseline == nil {
		return nil
	}
	all := []bar{{Label: "measured", Value: d.quantity(d.Baseline.Objective), Class: "a"}}
	top := d.Baseline.Objective
	if d.After != nil {
		all[0].Label = "before"
		all = append(all, bar{Label: "after", Value: d.quantity(d.After.Objective), Class: "b"})
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

// viewFinding puts a finding into words.
func viewFinding(f diagnose.Finding) findingView {
	v := findingView{
		Code: string(f.Code), Title: f.Title, Where: f.Where, Sure: fmt.Sprintf("%.0f %% sure", 100*f.Confidence),
		Class: string(f.Severity), Rejected: f.Rejected, Remedy: f.Remedy.Text,
	}
	for _, e := range f.Evidence {
		v.Evidence = append(v.Evidence, evidenceView{e.Name, EvidenceValue(e), e.Source})
	}
	return v
}

// method says in plain sentences how the verdicts came about, with the numbers of this run.
//
// It is on the page because the page is sent around without the program: who reads it must be able to tell what
// "proved" means there.
func method(d *TuneDocument) []string {
	var all []string
	if p := d.Pilot; p != nil {
		all = append(all, fmt.Sprintf("First %d pairs were measured without any change. Such a pair scatters by %s here, so gains from %s on can be proven.",
			p.Pairs, unit.FormatPercent(p.PairNoise), unit.FormatPercent(p.ResolvableEffect)))
	}
	if len(d.Segments) > 0 {
		text := fmt.Sprintf("%d segments were measured, each with new connections, in pairs whose order a coin decided.", len(d.Segments))
		if d.Discarded > 0 {
			text += fmt.Sprintf(" %d were disturbed from outside and do not count.", d.Discarded)
		}
		all = append(all, text,
			"A change is kept only when the lower end of its interval beats the smallest useful effect and no side effect is proven worse than its bound. Everything else is taken back.")
	}
	if d.Final != nil && d.Final.Pairs > 0 && len(d.Kept) > 0 {
		all = append(all, fmt.Sprintf("The kept set was then measured anew against the original settings, %d pairs; that is the number at the top.", d.Final.Pairs))
	}
	if d.Partial {
		all = append(all, "The time ran out before every candidate was tried.")
	}
	return all
}

// timeline is the plot of every segment in order.
type timeline struct {
	Height, PlotTop, PlotBottom int
	Bands                       []band
	Ticks                       []tick // left axis
	Times                       []tick // bottom axis
	Levels                      []levelLine
	Points                      []point
	Unit                        string
}

// band is one part of the experiment behind the points: the pilot, a trial, an ablation, the confirmation.
type band struct {
	X, Width, Middle, Class, Label, Title string
	Mark                                  string // kept, reverted
}

// tick is one label on an axis. At is a share of the width or a height in pixels, after the axis.
type tick struct{ At, Label, Anchor string }

// levelLine is a dashed line across the plot at the figure of before or after, with its label a little above.
type levelLine struct {
	Y, LabelY   string
	Class, Text string
}

// point is one segment; Title is what a pointer resting on it shows.
type point struct{ X, Y, Class, Title string }

// The plot's heights in pixels: a strip of labels, the plot, the times.
const (
	stripHeight = 34
	plotHeight  = 240
	axisHeight  = 24
)

// newTimeline lays out every segment in the order of measuring, which is what shows a drift of the bench that a summary hides.
// Nothing measured gives no plot.
//
// The axis begins at zero and ends 8 % above the highest segment, which keeps its point clear of the labels.
// Discarded segments are drawn too, in a class of their own, as leaving them out would be choosing data.
func newTimeline(d *TuneDocument) *timeline {
	if len(d.Segments) == 0 {
		return nil
	}
	end, top := 0.0, 0.0
	for _, s := range d.Segments {
		end = max(end, s.StartSeconds+s.DurationSeconds)
		top = max(top, s.Objective)
	}
	if end <= 0 || top <= 0 {
		return nil
	}
	top *= 1.08
	x := func(seconds float64) float64 { return seconds / end }
	y := func(v float64) string { return pixels(stripHeight + plotHeight*(1-v/top)) }
	t := &timeline{Height: stripHeight + plotHeight + axisHeight, PlotTop: stripHeight, PlotBottom: stripHeight + plotHeight}
	t.Bands = bands(d, x)
	for _, v := range niceTicks(top) {
		t.Ticks = append(t.Ticks, tick{At: y(v), Label: d.quantity(v)})
	}
	for i := range 5 {
		anchor := []string{"start", "middle", "middle", "middle", "end"}[i]
		share := float64(i) / 4
		t.Times = append(t.Times, tick{At: percentOf(share), Label: unit.FormatSeconds(math.Round(share * end)), Anchor: anchor})
	}
	for _, s := range d.Segments {
		class := "a"
		switch {
		case s.Discard != "":
			class = "discarded"
		case s.Arm == "B":
			class = "b"
		case s.Phase == tune.PhaseLevels:
			class = "level"
		}
		title := fmt.Sprintf("%s, %s: %s", s.Phase, armText(s), d.quantity(s.Objective))
		if s.Discard != "" {
			title += " — does not count: " + s.Discard
		}
		t.Points = append(t.Points, point{percentOf(x(s.StartSeconds + s.DurationSeconds/2)), y(s.Objective), class, title})
	}
	for _, f := range []struct {
		figure *Figure
		class  string
		name   string
	}{{d.Baseline, "a", "before"}, {d.After, "b", "after"}} {
		if f.figure != nil {
			at := stripHeight + plotHeight*(1-f.figure.Objective/top)
			t.Levels = append(t.Levels, levelLine{pixels(at), pixels(at - 9), f.class, f.name + " " + d.quantity(f.figure.Objective)})
		}
	}
	return t
}

// armText says which arm a segment belongs to; in a search for the level the arm is the level.
func armText(s tune.Segment) string {
	switch s.Arm {
	case "A":
		return "without the change"
	case "B":
		return "with the change"
	}
	return s.Arm
}

// bands groups the segments into the parts of the experiment, and marks what became of each trial.
//
// Segments of one part stand together because the experiment does one thing at a time; a part ends where phase or
// number changes.
func bands(d *TuneDocument, x func(float64) float64) []band {
	type part struct {
		phase tune.Phase
		trial int
	}
	partOf := func(s tune.Segment) part {
		if s.Phase == tune.PhaseLevels { // the search for the level belongs to its trial
			return part{tune.PhaseTrial, s.Trial}
		}
		return part{s.Phase, s.Trial}
	}
	var all []band
	for i := 0; i < len(d.Segments); {
		this := partOf(d.Segments[i])
		j := i
		for j < len(d.Segments) && partOf(d.Segments[j]) == this {
			j++
		}
		from, to := d.Segments[i].StartSeconds, d.Segments[j-1].StartSeconds+d.Segments[j-1].DurationSeconds
		b := band{X: percentOf(x(from)), Width: percentOf(x(to - from)), Middle: percentOf(x((from + to) / 2)), Class: string(this.phase)}
		switch this.phase {
		case tune.PhasePilot:
			b.Label, b.Title = "noise", "the same settings twice, to see the noise"
		case tune.PhaseConfirmation:
			b.Label, b.Title = "proof", "everything kept against the original"
		case tune.PhaseAblation:
			b.Label, b.Title = "needed?", "the kept set without one change"
		case tune.PhaseTrial:
			b.Label = strconv.Itoa(this.trial + 1)
			if this.trial >= 0 && this.trial < len(d.Trials) {
				trial := d.Trials[this.trial]
				b.Title = fmt.Sprintf("%s %s = %s: %s", trial.Side, trial.Knob, trial.To, verdictText(trial.Verdict))
				b.Mark = "reverted"
				if trial.Verdict == tune.Kept {
					b.Mark = "kept"
				}
			}
		}
		// A label needs some four per cent of the width; a number fits everywhere.
		if x(to-from) < 0.04 && this.phase != tune.PhaseTrial {
			b.Label = ""
		}
		all = append(all, b)
		i = j
	}
	return all
}

// niceTicks gives about four round values from zero up to top.
//
// Steps are 1, 2, 2.5 or 5 times a power of ten. The tenth of a per mille at the end forgives rounding when top
// itself is a multiple of the step.
func niceTicks(top float64) []float64 {
	raw := top / 4
	magnitude := math.Pow(10, math.Floor(math.Log10(raw)))
	step := magnitude
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*magnitude >= raw {
			step = m * magnitude
			break
		}
	}
	var all []float64
	for v := 0.0; v <= top*1.0001; v += step {
		all = append(all, v)
	}
	return all
}

// ladder is the plot of every trial's effect with its interval, on a logarithmic axis, so that twice and half are equally far.
type ladder struct {
	Rows  []rung
	Ticks []tick
	One   string // where an effect of one is
}

// rung is one row of the ladder: what was tried, its effect as a number and as a bar, and what became of it.
type rung struct {
	Number, Side, Knob, From, To string
	Why, Reason                  string
	Effect, Interval, Pairs      string
	Verdict, Class               string
	Bar                          bool
	Low, High, Width, Point      string
	OpenLow, OpenHigh            bool
}

// newLadder lays out the trials in their order, and the confirmation of everything kept as the last row.
//
// The order is that of the experiment and not of the effects, because each trial was made on top of those kept before
// it.
func newLadder(d *TuneDocument) *ladder {
	if len(d.Trials) == 0 {
		return nil
	}
	scale := ladderScale(d)
	l := &ladder{One: percentOf(scale.at(1))}
	for i, t := range d.Trials {
		r := rung{
			Number: strconv.Itoa(i + 1), Side: string(t.Side), Knob: string(t.Knob), From: value(t.From), To: value(t.To), Why: t.Why, Reason: t.Reason,
			Effect: times(t.Ratio), Interval: interval(t.Effect), Pairs: count(t.Pairs), Verdict: verdictText(t.Verdict), Class: string(t.Verdict),
		}
		if t.Joint {
			r.Verdict += ", together"
		}
		r.place(t.Effect, scale)
		l.Rows = append(l.Rows, r)
	}
	if len(d.Kept) > 0 && d.Final != nil && d.Final.Ratio > 0 {
		r := rung{
			Number: "Σ", Knob: "all kept changes together", Reason: "measured anew against the original settings",
			Effect: times(d.Final.Ratio), Interval: interval(*d.Final), Pairs: count(d.Final.Pairs), Verdict: "proved", Class: "kept total",
		}
		r.place(*d.Final, scale)
		l.Rows = append(l.Rows, r)
	}
	l.Ticks = scale.ticks()
	return l
}

// place puts the bar of an effect on the scale. An end that is not known runs to the edge and gets an arrow: open is not the same as
// wide, and a reader must see that.
func (r *rung) place(e tune.Effect, s logScale) {
	if e.Ratio <= 0 {
		return
	}
	r.Bar = true
	low, high := 0.0, 1.0
	if e.Low > 0 {
		low = s.at(e.Low)
	} else {
		r.OpenLow = true
	}
	if e.High > 0 {
		high = s.at(e.High)
	} else {
		r.OpenHigh = true
	}
	r.Low, r.High, r.Width, r.Point = percentOf(low), percentOf(high), percentOf(high-low), percentOf(s.at(e.Ratio))
}

// logScale maps effects to 0…1.
type logScale struct{ low, high float64 }

// at is the place of a factor as a share of the width, kept inside.
//
// The scale is never empty: it spans ×0.9 to ×1.1 at least.
func (s logScale) at(x float64) float64 {
	return min(max((math.Log(x)-s.low)/(s.high-s.low), 0), 1)
}

// ladderScale covers every known end, ×0.9 to ×1.1 at least, and a margin.
//
// Without the least span a run in which nothing helped would fill the width with noise of a tenth of a per cent.
func ladderScale(d *TuneDocument) logScale {
	low, high := math.Log(0.9), math.Log(1.1)
	cover := func(e tune.Effect) {
		for _, x := range []float64{e.Ratio, e.Low, e.High} {
			if x > 0 {
				low, high = min(low, math.Log(x)), max(high, math.Log(x))
			}
		}
	}
	for _, t := range d.Trials {
		cover(t.Effect)
	}
	if d.Final != nil {
		cover(*d.Final)
	}
	margin := 0.04 * (high - low)
	return logScale{low - margin, high + margin}
}

// ticks chooses round factors at least an eighth of the width apart; ×1 is always there.
//
// Candidates are in order of importance, so that the ones that matter take their places before others come too close.
func (s logScale) ticks() []tick {
	candidates := []float64{1, 2, 0.5, 4, 10, 0.1, 0.25, 1.1, 0.9, 1.5, 3, 0.8, 1.25, 1.05, 0.95, 5, 8, 20, 50, 100}
	var chosen []float64
	for _, c := range candidates {
		if math.Log(c) < s.low || math.Log(c) > s.high {
			continue
		}
		if !slices.ContainsFunc(chosen, func(x float64) bool { return math.Abs(s.at(x)-s.at(c)) < 0.125 }) {
			chosen = append(chosen, c)
		}
	}
	slices.Sort(chosen)
	var all []tick
	for _, c := range chosen {
		all = append(all, tick{At: percentOf(s.at(c)), Label: "×" + strconv.FormatFloat(c, 'g', -1, 64)})
	}
	return all
}

// percentOf prints a share for an attribute of the page, with no more digits than a screen can show.
func percentOf(share float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(100*share, 'f', 2, 64), ".00") + "%"
}

// pixels prints a height for an attribute.
func pixels(y float64) string { return strconv.FormatFloat(y, 'f', 1, 64) }
