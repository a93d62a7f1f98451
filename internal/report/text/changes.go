package text

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/unit"
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

// FoldedHistory is History with one row for the trials of a tune that are over. A tune writes some
// ten of them, between which the few changes that matter would be hard to find: those in force, and
// those that ended in another way than planned, which have a note.
func FoldedHistory(w io.Writer, d *report.HistoryDocument, s Style) error {
	over := make(map[string][]journal.Change)
	for _, c := range d.Changes {
		if folds(c) {
			over[c.Run] = append(over[c.Run], c)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(over)), func(of []journal.Change) bool { return len(of) > 1 }) {
		return History(w, d, s)
	}
	p := &printer{w: w, s: s}
	t := changesTable()
	for _, c := range d.Changes {
		of := over[c.Run]
		switch {
		case !folds(c) || len(of) < 2:
			p.change(t, c)
		case c.ID == of[0].ID:
			t.row(c.ID+" …", c.Time.Local().Format("2006-01-02 15:04:05"), c.Side, "tune "+c.Run, "", "", "undone",
				fmt.Sprintf("%d changes, all undone", len(of)))
		}
	}
	t.print(p, "  ")
	p.line("%s", s.dim("linerate history --run RUN shows the trials of a tune, --all those of every one"))
	return p.err
}

// folds reports whether a change is one of those that a tune makes and takes back. Undo by the tune
// itself notes only that.
func folds(c journal.Change) bool {
	return c.Run != "" && c.State == journal.Undone && (c.Note == "" || c.Note == string(journal.Undone))
}

// Set writes what set has changed, what it found already so, when that ends, and what to type.
func Set(w io.Writer, d *report.HistoryDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Changes) > 0 {
		p.changes(d.Changes)
	}
	for _, u := range d.Unchanged {
		p.line("%s already holds %s: nothing to change%s", u.Knob, words.Value(u.Value), untilWhen(u))
	}
	p.stay(d.Changes)
	return p.err
}

// set writes changes that were made just now.
func (p *printer) set(changes []journal.Change) {
	p.changes(changes)
	p.stay(changes)
}

// stay says how long changes stay that were made just now.
func (p *printer) stay(changes []journal.Change) {
	if len(changes) == 0 {
		return
	}
	for _, c := range changes {
		p.sideEffects(c)
	}
	first := changes[0]
	switch {
	case first.State == journal.Trial && first.Deadline != nil:
		p.line("goes back at %s unless confirmed", deadline(*first.Deadline, first.Time))
		p.line("  linerate confirm  lets it stay")
		p.line("  linerate undo     takes it back now")
	case first.State == journal.Committed:
		p.line("stays until undo or a restart")
		p.line("  linerate undo     takes it back")
		p.line("  linerate persist  keeps it over a restart")
	}
}

// sideEffectsShown is how many knobs of one change are worth a line each; a NIC with many queues
// loses some hundred with its channels.
const sideEffectsShown = 5

// sideEffects lists the other knobs that a change has set, but for those that follow it, such as
// the MTU of IPv6 that of the link.
func (p *printer) sideEffects(c journal.Change) {
	effects := slices.DeleteFunc(slices.Clone(c.SideEffects), func(e journal.SideEffect) bool {
		return e.From == c.From && e.To == c.To
	})
	if len(effects) == 0 {
		return
	}
	p.line("%s also set, and undo brings back:", c.Knob)
	t := newTable("knob", "from", "to")
	shown := min(len(effects), sideEffectsShown)
	for _, e := range effects[:shown] {
		t.row(e.Knob, words.Value(e.From), words.Value(e.To))
	}
	t.print(p, "  ")
	if more := len(effects) - shown; more > 0 {
		p.line("  and %d more, which --json lists", more)
	}
}

// untilWhen says that a value which the host holds already is on trial.
func untilWhen(u report.Unchanged) string {
	switch {
	case u.Trial == "":
		return ""
	case u.Deadline == nil:
		return fmt.Sprintf("; it is on trial, and linerate confirm %s lets it stay", u.Trial)
	}
	return fmt.Sprintf("; it goes back at %s unless linerate confirm %s lets it stay",
		deadline(*u.Deadline, time.Now()), u.Trial)
}

// deadline formats a moment after now, with its date where the time of day would be ambiguous.
func deadline(at, now time.Time) string {
	if at.Sub(now) < 12*time.Hour {
		return at.Local().Format("15:04:05")
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

// changes prints changes as a table. Times are local, because the reader compares them with what he
// did; documents have UTC.
func (p *printer) changes(changes []journal.Change) {
	t := changesTable()
	for _, c := range changes {
		p.change(t, c)
	}
	t.print(p, "  ")
}

func changesTable() *table {
	return newTable("id", "time", "side", "knob", "from", "to", "state", "note")
}

// change adds the row of a change.
func (p *printer) change(t *table, c journal.Change) {
	t.row(c.ID, c.Time.Local().Format("2006-01-02 15:04:05"), c.Side, c.Knob, words.Value(c.From),
		words.Value(c.To), p.state(c), c.Note)
}

// state colours a state: a yellow one ends without a command, a green one stays.
func (p *printer) state(c journal.Change) cell {
	switch {
	case c.Unguarded:
		return cell{"trial, unguarded: linerate recover ends it", p.s.red}
	case c.State == journal.Trial:
		return cell{string(c.State), p.s.yellow}
	case c.State == journal.Committed, c.State == journal.Persisted:
		return cell{string(c.State), p.s.green}
	}
	return cell{string(c.State), nil}
}

// Undo writes the result of each undone change.
func Undo(w io.Writer, d *report.UndoDocument, s Style) error {
	p := &printer{w: w, s: s}
	t := newTable("id", "side", "knob", "result")
	for _, o := range d.Outcomes {
		result := cell{"back at " + words.Value(o.Change.From), s.green}
		switch {
		case o.Error != "" && o.Restored:
			result = cell{result.text + ", but " + o.Error, s.yellow}
		case o.Error != "":
			result = cell{o.Error, s.red}
		case o.Stays:
			result = cell{"half-written files removed; the value stays until reboot", s.green}
		case o.Foreign != "":
			result = cell{"another program set it to " + words.Value(o.Foreign) + "; left alone", s.yellow}
		case !o.Restored && o.Change.Note == "undone": // by an earlier command, or it would be restored
			result = cell{"undone already", s.yellow}
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
	switch {
	case len(d.Outcomes) > 0:
		t.print(p, "  ")
	case len(d.Left) > 0:
		p.line("nothing to undo on this host")
	default:
		p.line("nothing to undo")
	}
	for _, l := range d.Left {
		p.undoLeft(l)
	}
	return p.err
}

// undoLeft names the host where changes may still be in force, why, and what to type.
func (p *printer) undoLeft(l report.UndoLeft) {
	p.line("")
	p.line("%s", p.s.yellow(fmt.Sprintf("not undone on %s: %s", l.Target, l.Reason)))
	p.line("run %s left these changes there:", l.Run)
	t := newTable()
	var ids []string
	for _, c := range l.Changes {
		ids = append(ids, c.ID)
		t.row(c.ID, c.Knob, words.Value(c.From)+" → "+words.Value(c.To))
	}
	t.print(p, "  ")
	if strings.HasPrefix(l.Target, "ssh://") {
		p.exact("from here: linerate undo --run %s", l.Run)
	} else {
		p.exact("from here: linerate undo --run %s --key-file FILE", l.Run)
		p.line("           while `linerate serve --allow-tuning` runs there with that key")
	}
	p.exact("there:     linerate undo %s", strings.Join(ids, " "))
}

// Knobs writes a part of the catalogue: everything about one knob, or a list of several. The values
// of the host follow, in lines that `linerate set` takes.
func Knobs(w io.Writer, d *report.KnobsDocument, s Style) error {
	p := &printer{w: w, s: s}
	if len(d.Knobs) == 1 {
		p.knob(d.Knobs[0].Definition)
		if len(d.Knobs[0].Current) > 0 {
			p.line("")
			p.settings(d.Knobs, true)
		}
		return p.err
	}
	if slices.ContainsFunc(d.Knobs, func(k report.KnobEntry) bool { return len(k.Current) > 0 }) {
		p.settings(d.Knobs, false)
		return p.err
	}
	t := newTable("knob", "default", "what")
	for _, k := range d.Knobs {
		t.row(k.Pattern, k.Default, k.Title)
	}
	t.print(p, "")
	p.line("")
	p.line("%s", s.dim("linerate knobs NAME shows everything about one knob"))
	return p.err
}

// settings prints the values of a host, one KNOB=VALUE a line, quoted for a shell. What set does
// not take stands behind the mark of a shell's comment: titles, the lines of files that set a
// value at the start, values outside of the range or read-only here, and values that could not be
// read. Of several knobs it only counts the last kind, because most hosts lack most knobs. A
// comment that does not fit the terminal has a line of its own above: a broken setting could not
// be copied.
func (p *printer) settings(knobs []report.KnobEntry, one bool) {
	type line struct{ setting, note string }
	var lines []line
	unread, widest := 0, 0
	for _, k := range knobs {
		title := k.Title
		if k.Default != "" {
			title += "; default " + k.Default
		}
		if one {
			title = "" // it stands above
		}
		for _, c := range k.Current {
			switch {
			case c.Value == nil && one:
				p.line("%s", p.s.yellow(fmt.Sprintf("# %s: %s", c.Knob, c.Unread)))
				continue
			case c.Value == nil:
				unread++
				continue
			}
			l := line{setting: shellWord(fmt.Sprintf("%s=%s", c.Knob, *c.Value))}
			notes := []string{title, setBy(c)}
			title = "" // once for all interfaces, queues and interrupts
			if _, err := k.Normalize(*c.Value); err != nil {
				l.setting, notes = "# "+l.setting, append(notes, "set does not take this value")
			} else if c.ReadOnly != "" {
				l.setting, notes = "# "+l.setting, append(notes, c.ReadOnly)
			}
			notes = slices.DeleteFunc(notes, func(s string) bool { return s == "" })
			if len(notes) > 0 {
				l.note = "# " + strings.Join(notes, "; ")
			}
			widest = max(widest, columns(l.setting))
			lines = append(lines, l)
		}
	}
	for _, l := range lines {
		switch {
		case l.note == "":
			p.exact("%s", l.setting)
		case widest+2+columns(l.note) <= p.s.lineWidth():
			p.exact("%-*s  %s", widest, l.setting, p.s.dim(l.note))
		default:
			for _, part := range broken(strings.TrimPrefix(l.note, "# "), p.s.textWidth()-2) {
				p.exact("%s", p.s.dim("# "+part))
			}
			rest, comment := strings.CutPrefix(l.setting, "# ")
			if !comment {
				p.exact("%s", l.setting)
				continue
			}
			for _, part := range broken(rest, p.s.lineWidth()-2) {
				p.exact("# %s", part)
			}
		}
	}
	if unread > 0 {
		for _, part := range broken(unit.Counted(unread, "knob")+" without a value here; linerate knobs --current NAME "+
			"says why", p.s.textWidth()-2) {
			p.exact("%s", p.s.dim("# "+part))
		}
	}
}

// setBy names the line of a file that sets a value at the start, and reports whether it has changed
// since.
func setBy(k report.KnobNow) string {
	switch {
	case k.SetBy == nil:
		return ""
	case k.Changed:
		return fmt.Sprintf("%s:%d sets %s: changed since", k.SetBy.File, k.SetBy.Number, k.SetBy.Value)
	}
	return fmt.Sprintf("set by %s:%d", k.SetBy.File, k.SetBy.Number)
}

// shellWord returns text as one word of a POSIX shell.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("_@%+=:,./-", r)
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
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
	put("undo", k.Undo.Says())
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
