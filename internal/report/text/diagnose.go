package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/traffic"
)

// How much of a verdict goes onto one screen. The rest is counted; --verbose prints it.
const (
	shownEvidence = 8 // lines of the first finding
	shownRejected = 4 // sentences of it
	shownBlind    = 3 // the largest gaps
)

// Diagnose writes a diagnose document: the first finding with its evidence, the other findings in
// short, and what could not be seen. Verbose writes all findings in full.
//
// The first finding names the limit, and needs its evidence; the other ones matter once it is
// repaired.
func Diagnose(w io.Writer, d *report.DiagnoseDocument, s Style, verbose bool) error {
	p := &printer{w: w, s: s}
	if d.Target != "" {
		p.line("%s", s.dim(clean(fmt.Sprintf("%s → %s", nameOr(d.Host.Name, "near"), d.Target)+measured(d.Tests))))
	} else {
		p.line("%s", s.dim(clean(nameOr(d.Host.Name, "this host")+watchedFor(d.Watched))))
	}
	if c := d.Copy; c != nil {
		p.line("")
		p.line("%s", s.bold(holder(c)))
		p.wrapped("  ", c.Because)
	}
	for i, f := range d.Findings {
		p.line("")
		if i == 0 || verbose {
			p.finding(f, verbose)
		} else {
			p.brief(f)
		}
	}
	p.blind(d.Blind, verbose)
	p.notes("WARNINGS", d.Warnings)
	return p.err
}

// measured returns what the loaded runs carried, to follow the names of the hosts: a limit without
// a rate would leave open what it costs.
func measured(tests []report.DiagnoseTest) string {
	var all []string
	for _, t := range tests {
		if t.Test == traffic.Stream && t.Probe == "" {
			all = append(all, report.Direction(t.Result)+" "+resultText(t.Result))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

// watchedFor returns how a host was watched, to follow its name.
func watchedFor(watched []report.Watched) string {
	if len(watched) == 0 {
		return ""
	}
	w := watched[0]
	switch {
	case w.SinceBoot && w.Seconds > 0:
		return ", by its counters since the start " + unit.FormatSeconds(w.Seconds) + " ago"
	case w.SinceBoot:
		return ", by its counters since the start"
	}
	return ", watched for " + unit.FormatSeconds(w.Seconds)
}

// finding prints one finding: verdict, evidence, what was ruled out, what to do and how to prove
// it. It leaves out empty parts, and unless verbose the end of long ones.
func (p *printer) finding(f evidence.Finding, verbose bool) {
	p.title(f)
	evidence, rejected := f.Evidence, f.Rejected
	if !verbose {
		evidence, rejected = evidence[:min(len(evidence), shownEvidence)], rejected[:min(len(rejected), shownRejected)]
	}
	if len(evidence) > 0 {
		p.line("  %s", p.s.dim("evidence"))
		t := newTable()
		t.right[1] = true
		for _, e := range evidence {
			t.row(e.Name, words.Evidence(e), cell{e.Source, p.s.dim})
		}
		t.print(p, "    ")
	}
	p.list("ruled out", rejected)
	p.more(len(f.Evidence) - len(evidence) + len(f.Rejected) - len(rejected))
	if len(f.Causes) > 0 {
		var codes []string
		for _, c := range f.Causes {
			codes = append(codes, string(c))
		}
		p.list("explains", []string{strings.Join(codes, ", ")})
	}
	if f.Remedy.Text != "" {
		p.list("what to do", []string{f.Remedy.Text})
	}
	if len(f.Remedy.Settings) > 0 {
		p.line("  %s", p.s.dim("worth trying"))
		t := newTable()
		for _, c := range f.Remedy.Settings {
			t.row(c.Side, c.Knob, levels(c.Levels))
		}
		t.print(p, "    ")
	}
	if f.Remedy.Proof != "" {
		p.list("how to prove it", []string{f.Remedy.Proof})
	}
}

// title prints the head of a finding. Confidence is a whole percentage: a judgement has no tenths.
func (p *printer) title(f evidence.Finding) {
	p.line("%s  %s", p.severity(f.Severity, string(f.Code)),
		p.s.dim(fmt.Sprintf("%s · %s · %s sure", f.Severity, f.Where, words.Percent(f.Confidence))))
	p.wrapped("  ", f.Title)
}

// brief prints a finding that is not the first: its title, and what to do unless it is only
// information.
func (p *printer) brief(f evidence.Finding) {
	p.title(f)
	if f.Severity != evidence.Info && f.Remedy.Text != "" {
		p.list("what to do", []string{f.Remedy.Text})
	}
}

// blind prints what could not be seen, one gap per line with its cost in confidence.
func (p *printer) blind(all []diagnose.Blind, verbose bool) {
	if len(all) == 0 {
		return
	}
	p.line("")
	p.head("COULD NOT SEE")
	shown := all
	if !verbose {
		shown = all[:min(len(all), shownBlind)]
	}
	t := newTable()
	t.wrap = true
	for _, b := range shown {
		costs := ""
		if len(b.Of) > 0 {
			costs = words.Percent(b.Lowers) + " less sure"
		}
		t.row(b.What, cell{costs, p.s.dim}, cell{b.Why, p.s.dim})
	}
	t.print(p, "  ")
	p.more(len(all) - len(shown))
}

// more prints how many items were left out.
func (p *printer) more(n int) {
	if n > 0 {
		p.line("    %s", p.s.dim(fmt.Sprintf("and %d more with --verbose", n)))
	}
}

// list prints sentences under a title; without sentences it prints nothing.
func (p *printer) list(title string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	p.line("  %s", p.s.dim(title))
	for _, text := range sentences {
		p.wrapped("    ", text)
	}
}

// severity colours a code by its severity.
func (p *printer) severity(s evidence.Severity, text string) string {
	switch s {
	case evidence.Critical, evidence.Warning:
		return p.s.bold(p.s.red(text))
	case evidence.Notice:
		return p.s.bold(p.s.yellow(text))
	}
	return p.s.bold(p.s.green(text))
}

// levels prints the values worth trying, smallest first.
func levels(values []knob.Value) string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return strings.Join(all, " | ")
}

// Explain writes one entry of the registry of findings.
func Explain(w io.Writer, d *report.ExplainDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s  %s", s.bold(string(d.Code)), d.Title)
	p.line("")
	p.wrapped("  ", d.Meaning)
	for _, part := range []struct{ title, text string }{
		{"how it shows", d.Shows}, {"easily confused with", d.ConfusedWith}, {"what to do", d.Remedy},
		{"how to prove it", d.Proof},
	} {
		if part.text != "" {
			p.line("")
			p.line("  %s", s.dim(part.title))
			p.wrapped("    ", part.text)
		}
	}
	if !d.Rule {
		p.line("")
		p.wrapped("  ", "This version has no rule for this code yet; the name is reserved.")
	}
	return p.err
}

// holder says what limits a copy. Only a disk's figure is called the disk.
func holder(c *storage.Copy) string {
	subject := "Storage"
	if c.OfDisk() {
		subject = "Disk"
	}
	switch c.Holds {
	case storage.HeldByDisk:
		return "The " + strings.ToLower(subject) + " holds a copy."
	case storage.HeldByNetwork:
		return "The network holds a copy."
	}
	return subject + " and network hold a copy alike."
}
