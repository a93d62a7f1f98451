package matrix

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/report"
)

const (
	// rightShare is the share of plain and gross cases whose first finding must be right.
	rightShare = 0.95

	tunedShare = 0.9  // of the healthy figure that a tune must reach
	mostTrials = 20   // of one tune
	nullShare  = 0.05 // of the tried knobs without an effect that may be kept
)

// NewVerdicts makes the document of `lab matrix`: it counts the cases and judges whether enough of
// their verdicts are right.
func NewVerdicts(e report.Envelope, cases []report.MatrixCase) *report.MatrixDocument {
	d := &report.MatrixDocument{Envelope: e.Of(report.SchemaMatrix), Cases: slices.Clone(cases)}
	var first, three int
	mute := false // a sound world without a verdict is no alarm, and no proof either
	for i := range d.Cases {
		switch c := &d.Cases[i]; {
		case c.Skipped:
			d.Skips++
		case c.Sound():
			d.Sounds++
			if c.Warned {
				d.FalseAlarm++
			}
			mute = mute || len(c.Found) == 0
		case c.Faulty():
			d.Judged++
			if c.Right {
				first++
			}
			if c.Rank >= 1 && c.Rank <= report.FirstThree {
				three++
			}
		}
	}
	if d.Judged > 0 {
		d.FirstRight, d.FirstThree = ratio(first, d.Judged), ratio(three, d.Judged)
	}
	d.Pass = d.FalseAlarm == 0 && !mute && (d.FirstRight == nil || *d.FirstRight >= rightShare)
	report.FillSlices(d)
	return d
}

// NewTunes makes the document of `lab tune`: it counts the cases, which [Judge] has judged.
func NewTunes(e report.Envelope, cases []report.TuneMatrixCase) *report.TuneMatrixDocument {
	d := &report.TuneMatrixDocument{Envelope: e.Of(report.SchemaTuneMatrix), Cases: slices.Clone(cases)}
	for _, c := range d.Cases {
		switch {
		case c.Skipped:
			d.Skips++
			continue
		case c.Free:
			d.Free++
			continue
		case c.Tuned:
			d.Tuned++
		}
		d.Judged++
	}
	if d.Judged > 0 {
		d.Share = ratio(d.Tuned, d.Judged)
	}
	d.Pass = d.Tuned == d.Judged
	report.FillSlices(d)
	return d
}

func ratio(part, all int) *float64 {
	r := float64(part) / float64(all)
	return &r
}

// Judge decides whether a played case is tuned, and sets the reason if it is not; the first reason
// counts.
func Judge(c *report.TuneMatrixCase) {
	c.Unit = "bits_per_second"
	if c.Goal == "latency" {
		c.Unit = "transactions_per_second"
	}
	c.Share = nil
	if c.Healthy != nil && c.After != nil && *c.Healthy > 0 {
		share := *c.After / *c.Healthy
		c.Share = &share
	}
	spare := slices.IndexFunc(c.Kept, func(r report.TuneRemoval) bool { return !r.Needed })
	c.Minimal = spare < 0
	c.Free = free(c)
	switch {
	case c.Skipped || c.Reason != "":
	case c.Null && c.Trials == 0:
		c.Reason = "nothing was tried: " + c.Ended
	case c.Null && float64(len(c.Kept)) > nullShare*float64(c.Trials):
		c.Reason = "knobs without an effect were kept: " + strings.Join(c.KeptNames(), ", ")
	case c.Null && c.Undone:
	case c.Free && c.Undone:
	case c.Share == nil:
		c.Reason = "it was not measured to the end"
	case *c.Share < tunedShare:
		c.Reason = "the figure after tuning is too far below the healthy one"
		if c.Ended != "" {
			c.Reason += ": " + c.Ended
		}
	case c.Trials > mostTrials:
		c.Reason = "it took too many trials"
	case !c.Minimal:
		c.Reason = c.Kept[spare].Side + " " + c.Kept[spare].Knob + " was kept, and without it nothing is lost"
	case !c.Undone:
		c.Reason = "after undo not every setting is as before"
	}
	c.Free = c.Free && c.Reason == ""
	c.Tuned = !c.Skipped && !c.Free && c.Reason == ""
}

// free reports whether the fault costs nothing in this world and nothing was kept. Such a case is
// neither tuned, because the tune did nothing, nor failed, because it had nothing to repair.
func free(c *report.TuneMatrixCase) bool {
	return !c.Null && !c.Skipped && len(c.Kept) == 0 && c.Before != nil && c.Healthy != nil && *c.Healthy > 0 &&
		*c.Before >= tunedShare**c.Healthy
}
