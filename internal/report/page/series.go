package page

import (
	"fmt"
	"math"
	"strconv"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// series is the plot of every segment in order.
type series struct {
	Height, PlotTop, PlotBottom int
	Bands                       []band
	Ticks                       []tick // left axis
	Times                       []tick // bottom axis
	Levels                      []levelLine
	Points                      []point
	Cut                         bool   // the axis does not begin at zero
	LeftOut                     string // the wait before the soak, which the bottom axis leaves out
	Searched                    bool   // there are segments of a search for the level
	Discarded                   []discarded
}

// band is one part of the experiment behind the points: the pilot, a trial, an ablation, the
// confirmation.
type band struct {
	X, Width, Middle, Label, Title string
	Mark                           string // kept, reverted
	Odd                            bool   // every second one is shaded otherwise
}

// tick is one label on an axis. At is a share of the width or a height in pixels, after the axis.
type tick struct{ At, Label, Anchor string }

// levelLine is a dashed line across the plot at the figure of before or after, with its label a
// little above.
type levelLine struct {
	Y, LabelY   string
	Class, Text string
}

// point is one segment; Shape is a path around its place, Title the text under the pointer.
type point struct{ X, Y, Class, Shape, Title string }

// discarded is a segment that does not count, for the list below the plot.
type discarded struct{ At, Part, Value, Why string }

// The plot's heights in pixels: a strip of labels, the plot, the times.
const (
	stripHeight = 34
	plotHeight  = 260
	axisHeight  = 24
)

// The marks of segments, as SVG paths around 0,0.
const (
	circle  = "M-4 0A4 4 0 1 0 4 0 4 4 0 1 0-4 0Z"
	diamond = "M0-5.5 5.5 0 0 5.5-5.5 0Z"
	square  = "M-3.5-3.5H3.5V3.5H-3.5Z"
	cross   = "M-4-4 4 4M-4 4 4-4"
)

// newSeries lays out every segment in the order of measuring, which shows a drift that a summary
// hides. Without segments it returns nil.
//
// The axis begins at zero, so that heights can be compared, unless all segments lie in its upper
// third: there the differences would be too small to see, and the page says that the axis is cut.
// Discarded segments are drawn too, crossed out: leaving them out would be a choice of data.
func newSeries(d *report.TuneDocument) *series {
	first, end, bottom, top := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, s := range d.Segments {
		first = min(first, s.StartSeconds)
		end = max(end, s.StartSeconds+s.DurationSeconds)
		bottom, top = min(bottom, s.Objective), max(top, s.Objective)
	}
	if len(d.Segments) == 0 || first < 0 || end <= 0 || top <= 0 || math.IsInf(end, 0) || math.IsInf(top*1.08, 0) {
		return nil
	}
	t := &series{Height: stripHeight + plotHeight + axisHeight, PlotTop: stripHeight,
		PlotBottom: stripHeight + plotHeight}
	base := 0.0
	if bottom > top*2/3 {
		t.Cut = true
		base = bottom - 0.15*(top-bottom) - 0.005*top
	}
	top += 0.08 * (top - base)
	axis := newTimeAxis(d.Segments, end)
	x := axis.at
	if axis.wait > 0 {
		t.LeftOut = unit.FormatSeconds(axis.wait)
	}
	height := func(v float64) float64 { return stripHeight + plotHeight*(1-(v-base)/(top-base)) }
	t.Bands = bands(d, x)
	for _, v := range niceTicks(base, top) {
		t.Ticks = append(t.Ticks, tick{At: pixels(height(v)), Label: words.Quantity(d, v)})
	}
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} {
		share := float64(i) / 4
		t.Times = append(t.Times, tick{At: percentOf(share), Label: unit.FormatSeconds(math.Round(axis.seconds(share))),
			Anchor: anchor})
	}
	for _, s := range d.Segments {
		p := point{X: percentOf(x(s.StartSeconds + s.DurationSeconds/2)), Y: pixels(height(s.Objective)), Class: "a",
			Shape: circle,
			Title: fmt.Sprintf("%s, pair %d, %s: %s", partName(s), s.Pair+1, armName(s),
				words.Quantity(d, s.Objective))}
		switch {
		case s.Discard != "":
			p.Class, p.Shape = "discarded", cross
			p.Title += " — does not count: " + s.Discard
			t.Discarded = append(t.Discarded,
				discarded{unit.FormatSeconds(s.StartSeconds), partName(s) + ", " + armName(s),
					words.Quantity(d, s.Objective), s.Discard})
		case s.Phase == tune.PhaseLevels:
			p.Class, p.Shape, t.Searched = "level", square, true
		case s.Arm == "B":
			p.Class, p.Shape = "b", diamond
		}
		if s.LossRatio > 0 {
			p.Title += fmt.Sprintf(" — counts, although disturbances can have cost up to %s",
				unit.FormatPercent(s.LossRatio))
		}
		t.Points = append(t.Points, p)
	}
	for _, f := range []struct {
		figure *report.Figure
		class  string
		name   string
	}{{d.Baseline, "a", "before"}, {d.After, "b", "after"}} {
		if f.figure != nil && f.figure.Objective >= base && f.figure.Objective <= top {
			at := height(f.figure.Objective)
			t.Levels = append(t.Levels,
				levelLine{pixels(at), pixels(at - 9), f.class, f.name + " " + words.Quantity(d, f.figure.Objective)})
		}
	}
	return t
}

// timeAxis maps seconds since the start to shares of the width. It leaves out the wait before a
// soak: an hour without measurements would compress the minutes with them into a line.
type timeAxis struct{ end, from, wait float64 }

// newTimeAxis leaves out the time between the last segment before the soak and its first, except
// for a visible gap.
func newTimeAxis(segments []tune.Segment, end float64) timeAxis {
	a := timeAxis{end: end}
	for _, s := range segments {
		if s.Phase == tune.PhaseSoak {
			if wait := s.StartSeconds - a.from; wait > end/10 {
				a.wait = wait - (end-wait)/50
			}
			return a
		}
		a.from = max(a.from, s.StartSeconds+s.DurationSeconds)
	}
	return a
}

func (a timeAxis) at(seconds float64) float64 {
	if seconds > a.from {
		seconds = max(a.from, seconds-a.wait)
	}
	return seconds / (a.end - a.wait)
}

func (a timeAxis) seconds(share float64) float64 {
	seconds := share * (a.end - a.wait)
	if seconds > a.from {
		seconds += a.wait
	}
	return seconds
}

// partName returns the part of the experiment that a segment belongs to.
func partName(s tune.Segment) string {
	switch s.Phase {
	case tune.PhasePilot:
		return "noise"
	case tune.PhaseTrial:
		return "trial " + strconv.Itoa(s.Trial+1)
	case tune.PhaseLevels:
		return "level for trial " + strconv.Itoa(s.Trial+1)
	case tune.PhaseAblation:
		return "still needed?"
	case tune.PhaseConfirmation:
		return "proof"
	}
	return string(s.Phase)
}

// armName returns the arm of a segment. In a search for the level the arm is the level; in the
// pilot both arms are the same.
func armName(s tune.Segment) string {
	switch {
	case s.Phase == tune.PhasePilot:
		return "nothing changed"
	case s.Phase == tune.PhaseAblation && s.Arm == "A":
		return "all kept but this"
	case s.Phase == tune.PhaseAblation && s.Arm == "B":
		return "all kept"
	case s.Arm == "A":
		return "without the change"
	case s.Arm == "B":
		return "with the change"
	}
	return s.Arm
}

// bands groups the segments into the parts of the experiment, and marks the verdict of each trial.
// Segments of one part are adjacent, because the experiment does one thing at a time; a part ends
// where phase or number changes.
func bands(d *report.TuneDocument, x func(float64) float64) []band {
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
		b := band{X: percentOf(x(from)), Width: percentOf(x(max(to-from, 0))), Middle: percentOf(x((from + to) / 2)),
			Odd: len(all)%2 == 1}
		switch this.phase {
		case tune.PhasePilot:
			b.Label, b.Title = "noise", "the same settings twice, to measure the noise"
		case tune.PhaseConfirmation:
			b.Label, b.Title = "proof", "the kept set against the original settings"
		case tune.PhaseAblation:
			b.Label, b.Title = "needed?", "the kept set without one change"
		case tune.PhaseSoak:
			b.Label, b.Title = "soak", "the kept set against the original settings, after a while in force"
		case tune.PhaseTrial:
			b.Label = strconv.Itoa(this.trial + 1)
			if this.trial >= 0 && this.trial < len(d.Trials) {
				trial := d.Trials[this.trial]
				b.Title = fmt.Sprintf("%s %s = %s: %s", trial.Side, trial.Knob, trial.To, words.Verdict(trial.Verdict))
				b.Mark = "reverted"
				if trial.Verdict == tune.Kept {
					b.Mark = "kept"
				}
			}
		default:
			b.Label, b.Title = string(this.phase), string(this.phase)
		}
		// A label needs some four per cent of the width; a number fits everywhere.
		if x(to-from) < 0.06 && this.phase != tune.PhaseTrial {
			b.Label = ""
		}
		all = append(all, b)
		i = j
	}
	return all
}

// niceTicks returns about four round values from base to top. Steps are 1, 2, 2.5 or 5 times a
// power of ten. The tenth of a per mille at the end absorbs rounding when top is a multiple of the
// step.
func niceTicks(base, top float64) []float64 {
	raw := (top - base) / 4
	magnitude := math.Pow(10, math.Floor(math.Log10(raw)))
	step := magnitude
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*magnitude >= raw {
			step = m * magnitude
			break
		}
	}
	var all []float64
	for i := range 12 {
		v := step * (math.Ceil(base/step) + float64(i))
		if v > top*1.0001 || math.IsNaN(v) {
			break
		}
		all = append(all, v)
	}
	return all
}

// percentOf returns a share for an attribute of the page, with as many digits as a screen can show.
func percentOf(share float64) string {
	if math.IsNaN(share) {
		share = 0
	}
	text := strconv.FormatFloat(100*min(max(share, 0), 1), 'f', 2, 64)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text + "%"
}

// pixels returns a height for an attribute.
func pixels(y float64) string { return strconv.FormatFloat(y, 'f', 1, 64) }
