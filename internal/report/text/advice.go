package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// adviceWords are the verdicts as people read them.
var adviceWords = map[advice.Verdict]string{
	advice.Harmful: "harmful", advice.Removed: "removed", advice.Ignored: "ignored",
	advice.NowDefault: "now the default", advice.StillRight: "still right", advice.Unknown: "not judged",
}

// Advice writes judged advice: the counts, and then each setting, worst first.
//
// A reader acts on the worst and may stop at the first that is right; the numbers of the lines lead
// back to the text. Settings of one verdict stay in its order.
func Advice(w io.Writer, d *report.AdviceDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Settings) == 0 {
		p.line("%s: no setting found in %s", clean(d.File), words.Counted(d.Lines, "line"))
		return p.err
	}
	p.head(fmt.Sprintf("%s: %s, %s", clean(d.File), words.Counted(len(d.Settings), "setting"), judgedFor(d)))
	p.line("%s", adviceCounts(d.Verdicts, s))
	settings := slices.Clone(d.Settings)
	slices.SortStableFunc(settings, func(a, b report.AdviceSetting) int { return b.Verdict.Rank() - a.Verdict.Rank() })
	last := advice.Verdict("")
	for i, x := range settings {
		if x.Verdict != last {
			p.line("")
			p.line("%s", s.bold(adviceColour(s, x.Verdict)(adviceWords[x.Verdict])))
			last = x.Verdict
		}
		if x.Verdict != advice.Unknown {
			p.adviceHead(x)
			p.adviceReason(x)
			continue
		}
		p.unjudged(settings[i:])
		break
	}
	return p.err
}

// unjudged prints the settings that nobody judges, which come last: those with the same reason
// together, since a page for servers has dozens that are none of the network's.
func (p *printer) unjudged(settings []report.AdviceSetting) {
	for i, x := range settings {
		same := func(y report.AdviceSetting) bool {
			return y.Why == x.Why && y.Today == x.Today && y.Source == x.Source && y.Current == x.Current
		}
		if slices.ContainsFunc(settings[:i], same) {
			continue
		}
		for _, y := range settings[i:] {
			if same(y) {
				p.adviceHead(y)
			}
		}
		p.adviceReason(x)
	}
}

// judgedFor names the systems, with their releases where they are known.
func judgedFor(d *report.AdviceDocument) string {
	var names []string
	for _, x := range d.Settings {
		name := x.OS
		if r := d.Releases[x.OS]; r != "" {
			name += " " + clean(r)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "judged for " + strings.Join(names, ", ")
}

// adviceCounts lists the counts that are not zero, worst first.
func adviceCounts(c report.AdviceCounts, s Style) string {
	var parts []string
	for _, x := range []struct {
		n       int
		verdict advice.Verdict
	}{{c.Harmful, advice.Harmful}, {c.Removed, advice.Removed}, {c.Ignored, advice.Ignored},
		{c.NowDefault, advice.NowDefault},
		{c.StillRight, advice.StillRight}, {c.Unknown, advice.Unknown}} {
		if x.n > 0 {
			parts = append(parts, adviceColour(s, x.verdict)(fmt.Sprintf("%d %s", x.n, adviceWords[x.verdict])))
		}
	}
	return strings.Join(parts, " · ")
}

// adviceColour chooses the paint of a verdict.
func adviceColour(s Style, v advice.Verdict) func(string) string {
	switch v {
	case advice.Harmful:
		return s.red
	case advice.Removed, advice.Ignored:
		return s.yellow
	case advice.StillRight:
		return s.green
	}
	return s.dim
}

// adviceHead prints what one setting is and on which line.
func (p *printer) adviceHead(x report.AdviceSetting) {
	what := x.Text
	if x.Knob != "" {
		what = strings.TrimPrefix(x.Knob, "sysctl:")
		if x.Value != "" {
			what += " = " + x.Value
		}
	}
	p.line("  line %d  %s", x.Line, p.s.bold(oneLine(what)))
}

// adviceReason prints why it is judged so, today's form, and where that is known from.
func (p *printer) adviceReason(x report.AdviceSetting) {
	why := x.Why
	if x.Current != "" {
		why += " On this host it is " + x.Current + " now."
	}
	p.wrapped("      ", why)
	if x.Today != "" {
		p.wrapped("      ", "today: "+x.Today)
	}
	if x.Source != "" {
		for _, line := range broken("source: "+x.Source, textWidth-6) {
			p.line("      %s", p.s.dim(line))
		}
	}
}

// oneLine makes a text safe and short enough to stand on a line with others.
func oneLine(text string) string {
	runes := []rune(strings.Join(strings.Fields(clean(text)), " "))
	const longest = 120
	if len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return string(runes)
}
