package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/processors"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// How much of a triage fits one screen: hosts have hundreds of processors, and idle ones look the
// same.
const (
	cpuLines       = 8
	interruptLines = 5
)

// CPU writes the triage of the processors of a host: whether they matter, the questions with their
// answers, the tables behind these, and what would help.
func CPU(w io.Writer, d *report.DiagnoseDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s", s.dim(clean(nameOr(d.Host.Name, "this host")+watchedFor(d.Watched))))
	t := d.CPU
	if t == nil {
		return p.err
	}
	p.line("")
	verdict := s.green
	if t.Matters {
		verdict = s.red
	}
	for _, line := range broken(t.Verdict, p.s.textWidth()) {
		p.line("%s", s.bold(verdict(line)))
	}
	p.line("")
	for i, step := range t.Steps {
		p.hanging(fmt.Sprintf("%d  ", i+1), 3, step)
	}
	p.cpuTable(t)
	p.interruptTable(t)
	p.waysOut(t)
	if len(d.Findings) > 0 {
		f := d.Findings[0]
		p.line("")
		p.wrapped("", fmt.Sprintf("The whole verdict: %s. %s (linerate diagnose shows all of it)", f.Code, f.Title))
	}
	p.notes("WARNINGS", d.Warnings)
	return p.err
}

// cpuTable prints the table of mpstat(1), busiest CPU first.
func (p *printer) cpuTable(t *processors.Triage) {
	if len(t.CPUs) == 0 {
		return
	}
	p.line("")
	table := newTable(">CPU", "mostly", ">user", ">system", ">softirq", ">irq", ">steal", ">idle", ">interrupts/s",
		">packets/s", ">dropped")
	share := func(r float64) string { return strings.Replace(words.Percent(r), " ", "", 1) }
	for _, c := range t.CPUs[:min(len(t.CPUs), cpuLines)] {
		table.row(strconv.Itoa(c.CPU), c.Class, share(c.User), share(c.System), share(c.SoftIRQ), share(c.IRQ),
			share(c.Steal), share(c.Idle),
			unit.FormatCount(c.Interrupts), unit.FormatCount(c.Packets), unit.FormatCount(float64(c.DroppedTotal)))
	}
	table.print(p, "")
	if more := len(t.CPUs) - cpuLines; more > 0 {
		p.line("%s", p.s.dim(fmt.Sprintf("and %d less busy ones", more)))
	}
}

// interruptTable prints /proc/interrupts of the NICs, as rates.
func (p *printer) interruptTable(t *processors.Triage) {
	if len(t.Interrupts) == 0 {
		return
	}
	p.line("")
	table := newTable(">IRQ", "name", "interface", "driver", ">CPU", ">per second", ">frames each")
	for _, i := range t.Interrupts[:min(len(t.Interrupts), interruptLines)] {
		table.row(strconv.Itoa(i.IRQ), i.Name, i.Interface, i.Driver, strconv.Itoa(i.CPU), unit.FormatCount(i.PerSec),
			unit.FormatCount(i.Frames))
	}
	table.print(p, "")
	if more := len(t.Interrupts) - interruptLines; more > 0 {
		p.line("%s", p.s.dim(fmt.Sprintf("and %d less frequent ones", more)))
	}
}

// waysOut prints whether each remedy helps, with the command that tries it.
func (p *printer) waysOut(t *processors.Triage) {
	if len(t.WaysOut) == 0 {
		return
	}
	p.line("")
	for _, w := range t.WaysOut {
		mark := p.s.dim("no ")
		if w.Helps {
			mark = p.s.bold("yes")
		}
		p.hanging(fmt.Sprintf("%s  %-10s  ", mark, w.Way), 17, w.Why)
		if w.Helps && w.Knob != "" && w.Try != "" {
			now := ""
			if w.Present != "" {
				now = "   (now " + w.Present + ")"
			}
			p.line("     %s", fmt.Sprintf("linerate set%s %s=%s%s", knob.AllowFlag(knob.ID(w.Knob)), w.Knob, w.Try, now))
		}
	}
}

// hanging prints text behind a mark of that many columns, with a hanging indent.
func (p *printer) hanging(mark string, columns int, text string) {
	for _, line := range broken(text, p.s.textWidth()-columns) {
		p.line("%s%s", mark, line)
		mark = strings.Repeat(" ", columns)
	}
}
