package report

import (
	"fmt"
	"io"

	"github.com/linerate/linerate/internal/tune"
	"github.com/linerate/linerate/internal/unit"
)

// TuneText writes a tune document: the outcome in one line, before and after, the ladder of trials, and what was left on the hosts.
func TuneText(w io.Writer, d *TuneDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s", s.bold(Headline(d)))
	p.line("")
	if len(d.Findings) > 0 {
		p.head("LIMIT BEFORE")
		p.wrapped("  ", string(d.Findings[0].Code)+": "+d.Findings[0].Title)
		p.line("")
	}
	p.head("BEFORE AND AFTER")
	t := newTable("", ">"+d.Goal, ">segments")
	t.row("before", d.Baseline.text(), count(d.Baseline.Segments))
	if f := d.Final.Figure; f != nil {
		t.row("after", cell{f.text(), s.bold}, count(f.Segments))
	}
	t.print(p, "  ")
	if len(d.Trials) > 0 {
		p.line("")
		p.head("TRIALS")
		p.ladder(d.Trials)
	}
	if len(d.Changes) > 0 {
		p.line("")
		p.head("CHANGES")
		p.changes(d.Changes)
	}
	p.notes("WARNINGS", d.Warnings)
	return p.err
}

// Headline says in one sentence what a tune came to.
func Headline(d *TuneDocument) string {
	var kept int
	for _, t := range d.Trials {
		if t.Verdict == tune.Kept {
			kept++
		}
	}
	switch {
	case len(d.Trials) == 0:
		return "Nothing to tune: no change was worth trying."
	case kept == 0:
		return fmt.Sprintf("Nothing kept: none of %d trials was proven to help.", len(d.Trials))
	case d.Final.Proven && d.Final.Effect != nil:
		return fmt.Sprintf("Proved: %s, %s with %s.", times(d.Final.Effect), interval(d.Final.EffectLow, d.Final.EffectHigh), changesWord(kept))
	default:
		return fmt.Sprintf("Not proved: %s, %s with %s.", times(d.Final.Effect), interval(d.Final.EffectLow, d.Final.EffectHigh), changesWord(kept))
	}
}

func changesWord(n int) string {
	if n == 1 {
		return "one change"
	}
	return fmt.Sprintf("%d changes", n)
}

func (p *printer) ladder(trials []Trial) {
	t := newTable("side", "knob", "from", "to", ">pairs", ">effect", "interval", "verdict", "")
	for _, x := range trials {
		t.row(x.Side, x.Knob, value(x.From), value(x.To), count(x.Pairs), times(x.Effect), interval(x.EffectLow, x.EffectHigh), p.verdict(x.Verdict), x.Why)
	}
	t.print(p, "  ")
}

func (p *printer) verdict(v tune.Verdict) cell {
	switch v {
	case tune.Kept:
		return cell{"kept, proved", p.s.green}
	case tune.RevertedWorse:
		return cell{"reverted, worse", p.s.red}
	case tune.RevertedUnproven:
		return cell{"reverted, not proved", nil}
	case tune.Refused:
		return cell{"refused", p.s.yellow}
	}
	return cell{string(v), nil}
}

// text is the figure with its unit.
func (f Figure) text() string {
	switch {
	case f.ThroughputBitsPerSec != nil:
		return unit.BitRate(*f.ThroughputBitsPerSec).String()
	case f.TransactionsPerSec != nil:
		return unit.FormatCount(*f.TransactionsPerSec) + " trans/s"
	}
	return "not measured"
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// times prints an effect as a factor: ×3.91. Near one it takes another digit, where the second decides.
func times(x *float64) string {
	switch {
	case x == nil:
		return ""
	case *x < 2:
		return fmt.Sprintf("×%.3f", *x)
	}
	return fmt.Sprintf("×%.2f", *x)
}

// interval prints the ends of an effect; an open end is an ellipsis.
func interval(low, high *float64) string {
	if low == nil && high == nil {
		return ""
	}
	side := func(x *float64) string {
		if x == nil {
			return "…"
		}
		return times(x)
	}
	return side(low) + " to " + side(high)
}
