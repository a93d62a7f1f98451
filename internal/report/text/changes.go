package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/words"
)

// History writes changes as a table, oldest first.
func History(w io.Writer, d *report.HistoryDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Changes) == 0 {
		p.line("no changes")
		return p.err
	}
	p.changes(d.Changes)
	return p.err
}

// changes prints changes as a table. Times are local, because the reader compares them with what he
// did; documents have UTC.
func (p *printer) changes(changes []journal.Change) {
	t := newTable("id", "time", "side", "knob", "from", "to", "state", "note")
	for _, c := range changes {
		t.row(c.ID, c.Time.Local().Format("2006-01-02 15:04:05"), c.Side, c.Knob, words.Value(c.From),
			words.Value(c.To), p.state(c.State), c.Note)
	}
	t.print(p, "  ")
}

// state colours a state: a yellow one ends without a command, a green one stays.
func (p *printer) state(s journal.State) cell {
	switch s {
	case journal.Trial:
		return cell{string(s), p.s.yellow}
	case journal.Committed, journal.Persisted:
		return cell{string(s), p.s.green}
	}
	return cell{string(s), nil}
}

// Undo writes the result of each undone change.
func Undo(w io.Writer, d *report.UndoDocument, s Style) error {
	p := &printer{w: w, s: s}
	t := newTable("id", "side", "knob", "result")
	for _, o := range d.Outcomes {
		result := cell{"back at " + words.Value(o.Change.From), s.green}
		switch {
		case o.Error != "":
			result = cell{o.Error, s.red}
		case o.Stays:
			result = cell{"half-written files removed; the value stays until reboot", s.green}
		case o.Foreign != "":
			result = cell{"another program set it to " + words.Value(o.Foreign) + "; left alone", s.yellow}
		case !o.Restored && o.Change.Note != "":
			result = cell{o.Change.Note, s.yellow}
		case !o.Restored:
			result = cell{"not restored", s.red}
		}
		if len(o.FilesLeft) > 0 {
			result = cell{result.text + "; edited since, left alone: " + strings.Join(o.FilesLeft, ", "), s.yellow}
		}
		t.row(o.Change.ID, o.Change.Side, o.Change.Knob, result)
	}
	if len(d.Outcomes) == 0 {
		p.line("nothing to undo")
	} else {
		t.print(p, "  ")
	}
	return p.err
}

// Knobs writes a part of the catalogue: everything about one knob, or a list of several.
func Knobs(w io.Writer, d *report.KnobsDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Knobs) == 1 {
		p.knob(d.Knobs[0].Definition)
		p.current(d.Knobs[0].Current)
		return p.err
	}
	t := newTable("knob", "here", "default", "what")
	for _, k := range d.Knobs {
		t.row(k.Pattern, here(k), k.Default, k.Title)
	}
	t.print(p, "")
	p.line("")
	p.line("%s", s.dim("linerate knobs NAME shows everything about one knob"))
	return p.err
}

// here returns the values of a host in one cell: many interfaces and queues mostly have the same.
func here(k report.KnobEntry) string {
	var values []string
	times := make(map[string]int)
	for _, c := range k.Current {
		if c.Value == nil {
			continue
		}
		v := cmp.Or(string(*c.Value), "empty")
		if times[v]++; times[v] == 1 {
			values = append(values, v)
		}
	}
	const shown = 2
	for i, v := range values[:min(shown, len(values))] {
		if times[v] > 1 {
			values[i] = fmt.Sprintf("%s ×%d", v, times[v])
		}
	}
	if len(values) == shown+1 {
		return strings.Join(values[:shown], ", ") + ", 1 other"
	}
	if len(values) > shown {
		return fmt.Sprintf("%s, %d others", strings.Join(values[:shown], ", "), len(values)-shown)
	}
	return strings.Join(values, ", ")
}

// current lists the values of a host, each with the line that sets it at the start.
func (p *printer) current(now []report.KnobNow) {
	if len(now) == 0 {
		return
	}
	p.line("")
	t := newTable("here", "value", "set by")
	for _, k := range now {
		v := any(cell{k.Unread, p.s.yellow})
		if k.Value != nil {
			v = cmp.Or(string(*k.Value), "empty")
		}
		by := ""
		if k.SetBy != nil {
			by = fmt.Sprintf("%s:%d", k.SetBy.File, k.SetBy.Number)
			if k.Changed {
				by += fmt.Sprintf(" sets %s: changed since", k.SetBy.Value)
			}
		}
		t.row(k.Knob, v, by)
	}
	t.print(p, "  ")
}

// disturbances is indexed by knob.Disturbance, d0 to d4.
var disturbances = []string{"nothing", "new sockets only", "short loss", "link down", "reload or reboot"}

// knob prints everything that the catalogue knows about one knob.
func (p *printer) knob(k knob.Definition) {
	p.line("%s  %s", p.s.bold(string(k.Pattern)), k.Title)
	p.line("")
	p.wrapped("  ", k.What)
	p.line("")
	t := newTable()
	put := func(name, text string) {
		if text = strings.TrimSpace(text); text != "" {
			t.row(cell{name, p.s.dim}, text)
		}
	}
	put("values", k.Allowed())
	put("default", k.Default+" "+parens(k.DefaultOn))
	scope := string(k.Scope)
	if k.ScopeSince != "" {
		scope += " (since Linux " + k.ScopeSince + "; before it " + string(knob.ScopeGlobal) + ")"
	}
	put("scope", scope)
	if d := int(k.Disturbance); d >= 0 && d < len(disturbances) {
		put("disturbs", disturbances[d])
	}
	put("takes effect", string(k.Effect))
	put("change it when", k.Symptom)
	put("gain", k.Expect)
	put("risk", k.Risk)
	put("persists in", k.Persist)
	put("since", k.Since)
	put("source", k.Source)
	t.wrap = true
	t.print(p, "  ")
}

// parens returns a text in parentheses; empty for an empty text.
func parens(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}
