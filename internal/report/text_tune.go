package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/journal"
	"github.com/linerate/linerate/internal/tune"
	"github.com/linerate/linerate/internal/unit"
)

// TuneText writes a tune document: the outcome in one line, before and after, the ladder of trials, and what was left on the hosts.
func TuneText(w io.Writer, d *TuneDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.headline(d)
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
		p.head("STILL NEEDED BESIDE THE OTHERS")
		t := newTable(">effect", "interval", "", "change")
		t.wrap = true
		for _, a := range d.Ablation {
			needed := cell{"needed", s.green}
			if !a.Needed {
				needed = cell{"dropped", s.yellow}
			}
			t.row(Times(a.Ratio), Interval(a.Effect), needed, fmt.Sprintf("%s %s", a.Side, a.Knob))
		}
		t.print(p, "  ")
	}
	if len(d.Changes) > 0 {
		p.line("")
		p.head("CHANGES")
		p.left(d.Changes)
		p.line("  %s", s.dim("linerate undo --all takes them back, on each host"))
	}
	p.notes("WARNINGS", d.Warnings)
	if d.Run != "" {
		p.line("")
		p.line("%s", s.dim("linerate report "+clean(d.Run)+" shows this again, and draws its page"))
	}
	return p.err
}

// headline prints the verdict in colour and its sentence.
func (p *printer) headline(d *TuneDocument) {
	verdict, text := Headline(d)
	paint := p.s.bold
	switch verdict {
	case "Proved":
		paint = func(t string) string { return p.s.bold(p.s.green(t)) }
	case "Not proved", "Not finished":
		paint = func(t string) string { return p.s.bold(p.s.yellow(t)) }
	}
	p.line("%s  %s", paint(verdict), clean(text))
}

// Headline says what a tune came to: a verdict of one or two words (Proved, Not proved, Nothing to tune), and a sentence.
//
// Proved needs a confirmed set and figures for both sides; everything else that tried or wanted to try is "not
// proved", also when the time ran out before the first trial. "Nothing to tune" is kept for a path on which no
// finding has a remedy, because it tells the reader to look elsewhere.
func Headline(d *TuneDocument) (verdict, sentence string) {
	kept := len(d.Kept)
	switch {
	case d.Unfinished != "":
		return "Not finished", sentenceOf(d.Unfinished, "")
	case kept > 0 && d.Final != nil && d.Baseline != nil && d.After != nil:
		return "Proved", fmt.Sprintf("%s → %s, %s (%s) with %s.", d.Quantity(d.Baseline.Objective), d.Quantity(d.After.Objective),
			Times(d.Final.Ratio), Interval(*d.Final), changesWord(kept))
	case len(d.Trials) == 0 && !d.Unreliable && !d.Partial:
		return "Nothing to tune", sentenceOf(strings.TrimPrefix(d.Reason, "nothing to tune: "), "No change was worth trying.")
	case d.Unreliable:
		return "Not proved", sentenceOf(d.Reason, "The bench is too noisy to prove anything.")
	}
	return "Not proved", sentenceOf(d.Reason, fmt.Sprintf("None of %d trials was proven to help.", len(d.Trials)))
}

// sentenceOf makes a clause begin with a capital and end with a full stop.
func sentenceOf(clause, otherwise string) string {
	if clause == "" {
		return otherwise
	}
	first, size := utf8.DecodeRuneInString(clause)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(clause[size:], ".") + "."
}

// changesWord counts changes in words.
func changesWord(n int) string {
	if n == 1 {
		return "one change"
	}
	return fmt.Sprintf("%d changes", n)
}

// Quantity prints a number in the unit of the goal.
func (d *TuneDocument) Quantity(x float64) string {
	if math.Abs(x) >= beyond {
		return fmt.Sprintf("%.3g %s", x, strings.ReplaceAll(d.Unit, "_", " "))
	}
	switch d.Unit {
	case "bits_per_second":
		return unit.BitRate(x).String()
	case "packets_per_second":
		return unit.FormatCount(x) + " packets/s"
	}
	return unit.FormatCount(x) + " trans/s"
}

// beyond is where numbers are no longer quantities that anybody has seen: they are printed with an exponent, and not with the three hundred
// digits that a forged or broken document can ask for.
const beyond = 1e18

// guardRows are the guard-rails that the table of before and after shows, when both sides were measured.
//
// Guards without a row here are in the document and not on the screen.
var guardRows = []struct{ key, name string }{
	{"rtt_loaded_seconds", "round trip under load"},
	{"rtt_p99_seconds", "round trip p99"},
	{"retransmit_ratio", "segments sent again"},
	{"cpu_seconds_per_gigabyte", "CPU time per gigabyte"},
	{"drops_per_gigabyte", "drops per gigabyte"},
}

// GuardValue prints a guard-rail in the unit that its key names.
func GuardValue(key string, v float64) string {
	switch {
	case math.Abs(v) >= beyond:
		return fmt.Sprintf("%.3g", v)
	case strings.HasSuffix(key, "_seconds"):
		return unit.FormatSeconds(v)
	case strings.HasSuffix(key, "_ratio"):
		return unit.FormatPercent(v)
	case strings.HasPrefix(key, "cpu_seconds"):
		return unit.FormatSeconds(v)
	}
	return unit.FormatCount(v)
}

// Row is one line of the table of before and after, in words. After and what follows it are empty where nothing was kept.
type Row struct {
	Name, Before, After, Change string
	Guard                       *tune.GuardRun // the guard-rail in the confirmation; nil for the objective, and where it was not judged
}

// Rows pairs the figures of before and after: the objective first, then the guard-rails.
func (d *TuneDocument) Rows() []Row {
	if d.Baseline == nil {
		return nil
	}
	rows := []Row{{Name: d.Goal, Before: d.Quantity(d.Baseline.Objective)}}
	if d.After != nil {
		rows[0].After = d.Quantity(d.After.Objective)
		if d.Final != nil {
			rows[0].Change = strings.TrimSpace(Times(d.Final.Ratio) + "  " + Interval(*d.Final))
		}
	}
	for _, g := range guardRows {
		before, ok := d.Baseline.Guards[g.key]
		if !ok {
			continue
		}
		row := Row{Name: g.name, Before: GuardValue(g.key, before)}
		if d.After != nil {
			if after, ok := d.After.Guards[g.key]; ok {
				row.After = GuardValue(g.key, after)
			}
			if i := slices.IndexFunc(d.Guards, func(r tune.GuardRun) bool { return r.Name == g.key }); i >= 0 {
				row.Guard = &d.Guards[i]
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// beforeAfter prints the figures side by side, and what the bench could have told apart: without that a missing gain says nothing.
func (p *printer) beforeAfter(d *TuneDocument) {
	rows := d.Rows()
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
		p.line("  %s", p.s.dim(fmt.Sprintf("noise of a pair without any change: %s; gains from %s on could be proven",
			unit.FormatPercent(d.Pilot.PairNoise), unit.FormatPercent(d.Pilot.ResolvableEffect))))
	}
}

// ladder prints the trials in their order: what it did, what became of it, what was tried. The knob stands last, where a long one breaks
// into lines of its own instead of pushing the figures over the edge.
func (p *printer) ladder(trials []tune.Trial) {
	t := newTable(">effect", "interval", ">pairs", "verdict", "change")
	t.wrap = true
	for _, x := range trials {
		t.row(Times(x.Ratio), Interval(x.Effect), count(x.Pairs), p.verdict(x), fmt.Sprintf("%s %s %s → %s", x.Side, x.Knob, value(x.From), value(x.To)))
	}
	t.print(p, "  ")
	for _, x := range trials {
		if x.Verdict == tune.Refused {
			p.wrapped("  ", fmt.Sprintf("%s refused: %s", x.Knob, x.Reason))
		}
	}
}

// left prints what a run left in force. The journal's own list has their times and notes.
func (p *printer) left(changes []journal.Change) {
	t := newTable("id", "state", "change")
	t.wrap = true
	for _, c := range changes {
		t.row(c.ID, p.state(c.State), fmt.Sprintf("%s %s %s → %s", c.Side, c.Knob, value(c.From), value(c.To)))
	}
	t.print(p, "  ")
}

// verdict colours what became of a trial, and says when several were tried as one.
func (p *printer) verdict(t tune.Trial) cell {
	text := VerdictWords(t.Verdict)
	if t.Joint {
		text += ", together"
	}
	return cell{text, map[tune.Verdict]func(string) string{tune.Kept: p.s.green, tune.RevertedWorse: p.s.red, tune.Refused: p.s.yellow}[t.Verdict]}
}

// VerdictWords says a verdict in words; proved and not proved are the words that matter.
func VerdictWords(v tune.Verdict) string {
	switch v {
	case tune.Kept:
		return "kept: proved"
	case tune.RevertedWorse:
		return "reverted: worse"
	case tune.RevertedUnproven:
		return "reverted: not proved"
	}
	return string(v)
}

// count prints a number of things, empty for none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// Times prints an effect as a factor: ×3.91. Below two a third decimal is shown, because there it decides. Zero is not known.
//
// The third decimal is a tenth of a per cent, well below the one per cent that a change must prove to be kept.
func Times(x float64) string {
	switch {
	case x == 0:
		return ""
	case x < 2:
		return fmt.Sprintf("×%.3f", x)
	case x < 100:
		return fmt.Sprintf("×%.2f", x)
	case x >= beyond:
		return fmt.Sprintf("×%.3g", x)
	}
	return "×" + unit.FormatCount(x)
}

// Interval prints the ends of an effect; an end that is not known yet is an ellipsis, no ends are nothing.
func Interval(e tune.Effect) string {
	if e.Low == 0 && e.High == 0 {
		return ""
	}
	side := func(x float64) string {
		if x == 0 {
			return "…"
		}
		return Times(x)
	}
	return side(e.Low) + " to " + side(e.High)
}
