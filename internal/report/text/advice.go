package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/report"
)

// adviceWords are the verdicts in words.
var adviceWords = map[advice.Verdict]string{
	advice.Harmful: "harmful", advice.Removed: "removed", advice.Ignored: "ignored",
	advice.NowDefault: "now the default", advice.StillRight: "still right", advice.Unknown: "not judged",
}

// Advice writes judged advice: the counts, then each setting, worst first. Settings with one
// verdict stay in the order of the text.
func Advice(w io.Writer, d *report.AdviceDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Settings) == 0 {
		p.line("%s: no setting found in %s", clean(d.File), unit.Counted(d.Lines, "line"))
		return p.err
	}
	p.head(fmt.Sprintf("%s: %s, %s", clean(d.File), unit.Counted(len(d.Settings), "setting"), judgedFor(d)))
	p.line("%s", adviceCounts(d.Verdicts, s))
	p.notUnderstood(d)
	settings := slices.Clone(d.Settings)
	sorting.StableFunc(settings, func(a, b report.AdviceSetting) int { return b.Verdict.Rank() - a.Verdict.Rank() })
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

// notUnderstood lists the lines that were not read, because a file that is only half read has only
// half been checked.
func (p *printer) notUnderstood(d *report.AdviceDocument) {
	if d.NotUnderstood == 0 {
		return
	}
	const most = 12 // line numbers that are shown; the document has all
	var numbers []string
	for i, n := range d.NotUnderstoodLines {
		if i == most {
			numbers = append(numbers, fmt.Sprintf("and %d more", d.NotUnderstood-most))
			break
		}
		numbers = append(numbers, strconv.Itoa(n))
	}
	p.line("%s: %s", p.s.yellow(unit.Counted(d.NotUnderstood, "line")+" not understood"), strings.Join(numbers, ", "))
}

// unjudged prints the settings without a verdict, which come last. Settings with the same reason
// share it, because a page for servers has dozens that do not concern the network.
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

// adviceHead prints one setting and its line.
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

// adviceReason prints the reason of a verdict, today's form of the setting, and the source.
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
		for _, line := range broken("source: "+x.Source, p.s.textWidth()-6) {
			p.line("      %s", p.s.dim(line))
		}
	}
}

// oneLine returns a text without control characters, on one line and at most 120 runes long.
func oneLine(text string) string {
	runes := []rune(strings.Join(strings.Fields(clean(text)), " "))
	const longest = 120
	if len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return string(runes)
}
