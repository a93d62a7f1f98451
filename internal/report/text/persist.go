package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// Persist writes which files make changes survive a reboot. Planned files are a diff against
// /dev/null, because persist never edits an existing file.
func Persist(w io.Writer, d *report.PersistDocument, s Style) error {
	p := &printer{w: w, s: s}
	t := newTable("id", "knob", "value", "format", "state")
	for _, c := range d.Changes {
		t.row(c.ID, c.Knob, words.Value(c.Value), c.Format, p.persistState(c.State))
	}
	t.print(p, "  ")
	for _, c := range d.Changes {
		for _, f := range c.Files {
			switch {
			case f.Shared:
			case c.State == report.PersistDone:
				p.line("")
				p.line("%s  wrote %s", c.ID, f.Path)
			default:
				p.line("")
				p.newFile(f)
			}
		}
		p.persistRemarks(c)
	}
	return p.err
}

// PersistCheck writes whether persisted changes held.
func PersistCheck(w io.Writer, d *report.PersistDocument, s Style) error {
	p := &printer{w: w, s: s}
	t := newTable("id", "knob", "value", "now", "state", "set by")
	for _, c := range d.Changes {
		now, by := "", ""
		if c.Present != nil {
			now = words.Value(*c.Present)
		}
		if c.SetBy != nil {
			by = fmt.Sprintf("%s:%d", c.SetBy.File, c.SetBy.Number)
		}
		t.row(c.ID, c.Knob, words.Value(c.Value), now, p.persistState(c.State), by)
	}
	t.print(p, "  ")
	for _, c := range d.Changes {
		p.persistRemarks(c)
	}
	return p.err
}

// persistState colours a state: green is done, yellow waits for the user, red did not hold.
func (p *printer) persistState(state report.PersistState) cell {
	switch state {
	case report.PersistDone, report.PersistHeld:
		return cell{string(state), p.s.green}
	case report.PersistLost, report.PersistRefused:
		return cell{string(state), p.s.red}
	case report.PersistByHand:
		return cell{string(state), p.s.yellow}
	}
	return cell{string(state), nil}
}

// newFile prints a new file as a unified diff that patch(1) accepts.
func (p *printer) newFile(f report.PersistFile) {
	lines := strings.Split(strings.TrimSuffix(f.Content, "\n"), "\n")
	p.exact("--- /dev/null")
	p.exact("+++ %s", f.Path)
	p.exact("@@ -0,0 +1,%d @@", len(lines))
	for _, line := range lines {
		p.exact("%s", p.s.green("+"+clean(line)))
	}
}

// persistRemarks prints the conflicts, manual steps and notes of one change.
func (p *printer) persistRemarks(c report.PersistChange) {
	var remarks []string
	for _, l := range c.Conflicts {
		remarks = append(remarks,
			p.s.yellow(fmt.Sprintf("%s:%d wins at the next start: it sets %s (%s)", l.File, l.Number,
				words.Value(l.Value), l.By)))
	}
	if c.ByHand != "" {
		remarks = append(remarks, "by hand: "+clean(c.ByHand))
	}
	if c.Why != "" {
		remarks = append(remarks, clean(c.Why))
	}
	for _, note := range c.Notes {
		remarks = append(remarks, "note: "+clean(note))
	}
	for i, remark := range remarks {
		if i == 0 {
			p.line("")
		}
		p.line("%s  %s", c.ID, remark)
	}
}
