package advice

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// ownFile adds the settings that the comments of linerate's own files name: persist writes the
// change of a file into its head, and export the knobs of all its formats with their values. A
// setting that the file also has in a form of its own keeps the value from there, which a user may
// have edited. The engine of an export is a program: of it nothing else is a setting.
func (r *reader) ownFile(text string) {
	if !strings.Contains(text, "# linerate change ") && !strings.Contains(text, ", written by linerate ") {
		return
	}
	has := map[string]bool{}
	for _, s := range r.advice.Settings {
		has[s.Knob] = true
	}
	read := len(r.advice.Settings)
	named := map[string]bool{}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		id, value := namedSetting(strings.TrimSpace(l), strings.TrimSpace(next))
		if id == "" {
			continue
		}
		named[string(id)] = true
		has[string(id)] = has[string(id)] || r.rename(string(id))
		if !has[string(id)] {
			r.line.number, r.shown = i+1, shortened(strings.TrimSpace(l))
			r.add("", string(id), value)
		}
	}
	if strings.Contains(text, "linerate-export apply | check | undo") || strings.Contains(text, "linerate-export.sh") {
		ours := slices.DeleteFunc(r.advice.Settings[:read:read], func(s Setting) bool { return !named[s.Knob] })
		r.advice.Settings = append(ours, r.advice.Settings[read:]...)
		r.advice.Unread = nil
	}
}

// rename gives a setting of no named interface the one that a comment says, and reports whether
// there is such a setting: a .link file chooses its interface by the address.
func (r *reader) rename(id string) bool {
	kind, rest, _ := strings.Cut(id, ":")
	_, option, ok := strings.Cut(rest, "/")
	at := slices.IndexFunc(r.advice.Settings, func(s Setting) bool { return s.Knob == kind+":*/"+option })
	if !ok || at < 0 {
		return false
	}
	r.advice.Settings[at].Knob = id
	return true
}

// namedSetting returns the knob and the value that a comment names, with the line behind it; an
// empty knob: none.
func namedSetting(l, next string) (knob.ID, string) {
	name, value := "", ""
	if rest, ok := strings.CutPrefix(l, "# linerate change "); ok { // ID: KNOB = VALUE
		if _, rest, ok = strings.Cut(rest, ": "); ok {
			name, value, _ = strings.Cut(rest, " = ")
		}
	} else if rest, ok := strings.CutPrefix(l, "# "); ok && !strings.HasPrefix(rest, " ") { // KNOB: TITLE
		// The next line is "FROM -> TO, change ID, alone xN".
		from, to, ok := strings.Cut(next, " -> ")
		if !ok || !strings.HasPrefix(from, "#   ") {
			return "", ""
		}
		name, _, _ = strings.Cut(rest, ": ")
		value, _, _ = strings.Cut(to, ", change ")
		value, _, _ = strings.Cut(value, ", alone x")
	}
	id, err := knob.ParseID(name)
	if err != nil {
		return "", ""
	}
	return id, value
}
