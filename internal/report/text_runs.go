package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/linerate/linerate/internal/tune"
	"github.com/linerate/linerate/internal/unit"
)

// RunsText writes the list of stored runs, newest first.
func RunsText(w io.Writer, d *RunsDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Runs) == 0 {
		p.line("no runs are stored yet: linerate tune TARGET stores each one")
		return p.err
	}
	t := newTable("run", "result", ">gain", "interval", "goal", "target", "kept")
	t.wrap = true
	for _, r := range d.Runs {
		kept := ""
		if n := len(r.Kept); n == 1 {
			kept = r.Kept[0]
		} else if n > 1 {
			kept = fmt.Sprintf("%s and %d more", r.Kept[0], n-1)
		}
		e := tune.Effect{Ratio: r.Ratio, Low: r.Low, High: r.High}
		t.row(r.Run, p.result(r.Result), Times(r.Ratio), Interval(e), shortened(r.Goal, 12), shortened(r.Target, 30), kept)
	}
	t.print(p, "")
	for _, r := range d.Runs {
		if r.Problem != "" {
			p.wrapped("", fmt.Sprintf("%s cannot be read: %s", r.Run, r.Problem))
		}
	}
	p.line("%s", s.dim("linerate report RUN shows one; `last` is the newest, and the beginning of a name is enough"))
	return p.err
}

func (p *printer) result(result string) cell {
	return cell{result, map[string]func(string) string{"proved": p.s.green, "not finished": p.s.yellow, "unreadable": p.s.red}[result]}
}

// ReportText writes a run as its tune did, and what its segments say when they are judged again.
func ReportText(w io.Writer, d *ReportDocument, s Style) error {
	shown := *d.Run
	shown.Run = "" // who reads this has typed its name
	if err := TuneText(w, &shown, s); err != nil {
		return err
	}
	p := &printer{w: w, s: s}
	p.line("")
	p.head("JUDGED AGAIN")
	p.wrapped("  ", AgainSentence(d.Again))
	if len(d.Again.Comparisons) == 0 || (d.Again.Disagreements == 0 && d.Again.OwnRules && d.Again.Changed == 0) {
		return p.err
	}
	p.line("")
	t := newTable(">effect", "interval", ">pairs", "was", "is now", "what")
	t.wrap = true
	for _, c := range d.Again.Comparisons {
		now := cell{VerdictWords(c.Judged), nil}
		if c.Differs {
			now.paint = p.s.yellow
		}
		was := ""
		if c.Decided != "" {
			was = VerdictWords(c.Decided)
		}
		t.row(Times(c.Again.Ratio), Interval(c.Again), count(c.Again.Pairs), was, now, ComparisonName(c))
	}
	t.print(p, "  ")
	for _, c := range d.Again.Comparisons {
		if c.Differs {
			p.wrapped("  ", fmt.Sprintf("%s differs: %s", ComparisonName(c), c.Reason))
		}
		if c.Level != "" {
			p.wrapped("  ", fmt.Sprintf("%s: the search would now choose the level %s", ComparisonName(c), c.Level))
		}
	}
	return p.err
}

// ComparisonName says which comparison it is, as the ladder numbers them.
func ComparisonName(c tune.Comparison) string {
	switch c.Phase {
	case tune.PhaseTrial:
		if c.Joint {
			return fmt.Sprintf("trial %d and others together", c.Trial+1)
		}
		return fmt.Sprintf("trial %d: %s %s", c.Trial+1, c.Side, c.Knob)
	case tune.PhaseAblation:
		return fmt.Sprintf("still needed: %s %s", c.Side, c.Knob)
	case tune.PhaseConfirmation:
		return "all kept against the original"
	}
	return string(c.Phase)
}

// AgainSentence says in plain words by what a run was judged again and what came of it.
func AgainSentence(r *tune.Reanalysis) string {
	rules := "the run's own rules"
	if !r.OwnRules {
		rules = "other rules"
	}
	text := fmt.Sprintf("From %s, by %s (%s confidence, gains from %s on): ", countWord(r.Segments, "segment"), rules,
		unit.FormatPercent(r.Confidence), unit.FormatPercent(r.MinUsefulEffect))
	if r.RulesUnknown {
		text = "The run does not say its rules; those of this version are taken. " + text
	}
	switch {
	case r.Pilot == nil:
		return text + "nothing to judge, because the noise was not measured to the end."
	case len(r.Comparisons) == 0:
		return text + "nothing was compared."
	case r.OwnRules && r.Changed > 0:
		text += fmt.Sprintf("%s of the file %s not what its segments give.", countWord(r.Changed, "effect"), areIs(r.Changed))
	case r.OwnRules:
		text += "every effect comes out again as it was stored."
	default:
		text += fmt.Sprintf("%s judged again.", countWord(len(r.Comparisons), "comparison"))
	}
	if r.Disagreements == 0 {
		return text + " No decision differs."
	}
	return text + fmt.Sprintf(" %s would be taken otherwise.", countWord(r.Disagreements, "decision"))
}

func countWord(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func areIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// SegmentsCSV writes every raw segment as one row of comma-separated values (RFC 4180), in the order of measuring, discarded ones too. The
// objective is in the unit that its heading names; guard-rails have a column each, empty where a segment did not tell one.
func SegmentsCSV(w io.Writer, d *TuneDocument) error {
	guards := map[string]bool{}
	for _, s := range d.Segments {
		for name := range s.Guards {
			guards[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(guards))
	out := csv.NewWriter(w)
	head := []string{"phase", "trial", "pair", "arm", "side", "knob", "start_seconds", "duration_seconds", d.Unit, "discard", "label"}
	if err := out.Write(append(head, names...)); err != nil {
		return err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, s := range d.Segments {
		side, name := d.about(s)
		row := []string{string(s.Phase), strconv.Itoa(s.Trial), strconv.Itoa(s.Pair), s.Arm, side, name,
			number(s.StartSeconds), number(s.DurationSeconds), number(s.Objective), s.Discard, s.Label}
		for _, guard := range names {
			if v, ok := s.Guards[guard]; ok {
				row = append(row, number(v))
			} else {
				row = append(row, "")
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// about tells what a segment's comparison is about; empty for the pilot and the confirmation.
func (d *TuneDocument) about(s tune.Segment) (side, name string) {
	switch {
	case (s.Phase == tune.PhaseTrial || s.Phase == tune.PhaseLevels) && s.Trial >= 0 && s.Trial < len(d.Trials):
		return string(d.Trials[s.Trial].Side), string(d.Trials[s.Trial].Knob)
	case s.Phase == tune.PhaseAblation && s.Trial >= 0 && s.Trial < len(d.Ablation):
		return string(d.Ablation[s.Trial].Side), string(d.Ablation[s.Trial].Knob)
	}
	return "", ""
}
