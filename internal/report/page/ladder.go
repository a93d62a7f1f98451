package page

import (
	"math"
	"slices"
	"strconv"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// ladder is the plot of the effect of every trial with its interval, on an axis on which twice and
// half are equally far from one.
type ladder struct {
	Rows  []rung
	Ticks []tick
	One   string // where an effect of one is
	Need  string // where the gain is that a lower end must exceed; empty: not known
	Needs string // that gain in words
}

// rung is one row of the ladder: a change, its effect as a number and as a bar, and its verdict.
type rung struct {
	Number, Side, Knob, From, To string
	Why, Reason                  string
	Effect, Interval, Pairs      string
	Verdict, Class, Shape        string
	Bar                          bool
	Low, High, Point             string
	OpenLow, OpenHigh            bool
}

// newLadder lays out the trials in their order; below them come the confirmation of the kept set
// and the test after the wait.
//
// The order is that of the experiment and not of the effects, because each trial was made with the
// earlier kept changes in force.
func newLadder(d *report.TuneDocument) *ladder {
	if len(d.Trials) == 0 {
		return nil
	}
	scale := ladderScale(d)
	l := &ladder{One: percentOf(scale.at(1))}
	if d.Pilot != nil && d.Pilot.MinUsefulEffect > 0 {
		l.Need, l.Needs = percentOf(scale.at(1+d.Pilot.MinUsefulEffect)), words.Times(1+d.Pilot.MinUsefulEffect)
	}
	for i, t := range d.Trials {
		r := rung{
			Number: strconv.Itoa(i + 1), Side: string(t.Side), Knob: string(t.Knob), From: words.Value(t.From),
			To: words.Value(t.To), Why: t.Why, Reason: t.Reason,
			Effect: words.Times(t.Ratio), Interval: words.Interval(t.Effect), Pairs: words.Count(t.Pairs),
			Verdict: words.Trial(t),
			Class:   string(t.Verdict), Shape: shape(t.Verdict),
		}
		r.place(t.Effect, scale)
		l.Rows = append(l.Rows, r)
	}
	if len(d.Kept) > 0 && d.Final != nil && d.Final.Ratio > 0 {
		r := rung{
			Number: "Σ", Knob: "all kept changes together", Reason: "measured again, against the original settings",
			Effect:   words.Times(d.Final.Ratio),
			Interval: words.Interval(*d.Final), Pairs: words.Count(d.Final.Pairs), Verdict: "proved",
			Class: "kept total", Shape: shape(tune.Kept),
		}
		r.place(*d.Final, scale)
		l.Rows = append(l.Rows, r)
	}
	if k := d.Soak; k != nil {
		r := rung{
			Number: "⧗", Knob: "the same after " + unit.FormatSeconds(k.Waited) + " in force", Reason: k.Reason,
			Effect:   words.Times(k.Ratio),
			Interval: words.Interval(k.Effect), Pairs: words.Count(k.Pairs), Verdict: "undone",
			Class: string(tune.RevertedUnproven), Shape: shape(tune.RevertedUnproven),
		}
		switch {
		case k.Untested:
			r.Verdict = "could not be tested"
		case k.Held:
			r.Verdict, r.Class, r.Shape = "lasts", "kept total", shape(tune.Kept)
		}
		r.place(k.Effect, scale)
		l.Rows = append(l.Rows, r)
	}
	l.Ticks = scale.ticks()
	return l
}

// shape returns the mark of a verdict as an SVG path around 0,0, for readers who cannot distinguish
// the colours or print in black.
func shape(v tune.Verdict) string {
	switch v {
	case tune.Kept:
		return "M0-7 7 0 0 7-7 0Z" // ◆
	case tune.RevertedWorse:
		return "M-6-5H6L0 6Z" // ▼
	}
	return "M-5 0A5 5 0 1 0 5 0 5 5 0 1 0-5 0Z" // ○, hollow by its style
}

// place puts the bar of an effect on the scale. An unknown end runs to the edge and gets an arrow,
// because open is not the same as wide.
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
	r.Low, r.High, r.Point = percentOf(low), percentOf(high), percentOf(s.at(e.Ratio))
}

// nearOne is the logarithm of the effect up to which the axis is even: 5 %. Beyond it the axis is
// logarithmic in the logarithm (the inverse hyperbolic sine joins the two smoothly), so that beside
// a gain of ×25 the interval of a change without an effect is still a bar and not a dot.
const nearOne = 0.05

// logScale maps effects to 0…1.
type logScale struct{ low, high float64 }

// stretched returns the place of a factor on an axis without ends.
func stretched(x float64) float64 { return math.Asinh(math.Log(x) / nearOne) }

// at returns the place of a factor as a share of the width, from 0 to 1. The scale is never empty:
// it spans at least ×0.9 to ×1.1.
func (s logScale) at(x float64) float64 {
	return min(max((stretched(x)-s.low)/(s.high-s.low), 0), 1)
}

// ladderScale covers every known end, at least ×0.9 to ×1.1, and a margin. Without that minimum, a
// run in which nothing helped would fill the width with noise of a tenth of a per cent.
func ladderScale(d *report.TuneDocument) logScale {
	low, high := stretched(0.9), stretched(1.1)
	cover := func(e tune.Effect) {
		for _, x := range []float64{e.Ratio, e.Low, e.High} {
			if x > 0 {
				low, high = min(low, stretched(x)), max(high, stretched(x))
			}
		}
	}
	for _, t := range d.Trials {
		cover(t.Effect)
	}
	if d.Final != nil {
		cover(*d.Final)
	}
	if d.Soak != nil {
		cover(d.Soak.Effect)
	}
	margin := 0.04 * (high - low)
	return logScale{low - margin, high + margin}
}

// ticks returns round factors at least an eighth of the width apart, always with ×1. Candidates are
// in order of importance, so that important ones take their places first.
func (s logScale) ticks() []tick {
	candidates := []float64{1, 2, 0.5, 4, 10, 0.1, 0.25, 1.1, 0.9, 1.5, 3, 0.8, 1.25, 1.05, 0.95, 5, 8, 20, 50,
		100, 1000, 0.01}
	var chosen []float64
	for _, c := range candidates {
		if at := stretched(c); at < s.low || at > s.high {
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
