package text

import (
	"fmt"
	"io"

	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// Runs writes the list of stored runs, newest first.
func Runs(w io.Writer, d *report.RunsDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Runs) == 0 {
		p.line("no runs of tune are stored yet; linerate report --measurements lists what measure stored")
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
		t.row(r.Run, p.result(r.Result), words.Times(r.Ratio), words.Interval(e), shortened(r.Goal, 12),
			shortened(r.Target, 30), kept)
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
	return cell{result, map[string]func(string) string{"proved": p.s.green, "not finished": p.s.yellow,
		"unreadable": p.s.red}[result]}
}

// Report writes a run as its tune did, and the result of judging its segments again.
func Report(w io.Writer, d *report.ReportDocument, s Style) error {
	shown := *d.Run
	shown.Run = "" // the reader has typed its name
	if err := Tune(w, &shown, s); err != nil {
		return err
	}
	p := &printer{w: w, s: s}
	p.line("")
	p.head("JUDGED AGAIN")
	p.wrapped("  ", words.Again(d.Again))
	if len(d.Again.Comparisons) == 0 || (d.Again.Disagreements == 0 && d.Again.OwnRules && d.Again.Changed == 0) {
		return p.err
	}
	p.line("")
	t := newTable(">effect", "interval", ">pairs", "was", "is now", "what")
	t.wrap = true
	for _, c := range d.Again.Comparisons {
		now := cell{words.Verdict(c.Judged), nil}
		if c.Differs {
			now.paint = p.s.yellow
		}
		was := ""
		if c.Decided != "" {
			was = words.Verdict(c.Decided)
		}
		t.row(words.Times(c.Again.Ratio), words.Interval(c.Again), words.Count(c.Again.Pairs), was, now,
			words.Comparison(c))
	}
	t.print(p, "  ")
	for _, c := range d.Again.Comparisons {
		if c.Differs {
			p.wrapped("  ", fmt.Sprintf("%s differs: %s", words.Comparison(c), c.Reason))
		}
		if c.Level != "" {
			p.wrapped("  ", fmt.Sprintf("%s: the search would now choose the level %s", words.Comparison(c), c.Level))
		}
	}
	return p.err
}

// shortened cuts a text to a number of runes.
func shortened(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
