package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/advice"
)

// reach fills in how a line is set, made persistent and undone on the system of the plan.
func (m *maker) reach(l *Line) {
	switch o, major := m.System.OS, m.System.major(); {
	case o == advice.Linux:
		m.reachLinux(l)
	case o == advice.FreeBSD && major < 7:
		m.reachBy(l, oldFreeBSDWays)
	case o == advice.FreeBSD:
		m.reachBy(l, freebsdWays)
	case o == advice.Windows:
		m.reachBy(l, windowsWays)
	default:
		m.reachBy(l, solarisWays)
	}
}

// way is how the settings of one kind are reached. Texts have these places:
//
//	%o  what the setting is of: an interface, a protocol, a key of the registry
//	%a  its own name
//	%v  the new value
//	%w  the value of the host, or the default of the release, or a variable for it
//	%s  the name as a switch: lro, or -lro for off; %u is the opposite
//	%i  the value in the place of the instance, in a list of 16
//
// Several commands are separated by line ends.
type way struct {
	kind, prefix string // of the knob, and of its own name
	read         string
	set, undo    string
	reset        string // instead of undo, where the host is not known to have another value than the default
	files        [2]File
	byHand, note string
	effect       Effect
}

// reachBy fills in a line by the first way that fits.
func (m *maker) reachBy(l *Line, ways []way) {
	kind, of, attribute := subject(l.Knob)
	if strings.Contains(attribute, ".iflib.override_") {
		kind = "tunable" // of FreeBSD: only the loader sets it
	}
	for i := range ways {
		w := &ways[i]
		if w.kind != kind || !strings.HasPrefix(attribute, w.prefix) {
			continue
		}
		was := cmp.Or(l.Present, l.Default)
		note := w.note
		if was == "" && strings.Contains(w.undo, "%w") && w.reset == "" {
			was, note = before(attribute), noteBefore
		}
		word, opposite := attribute, "-"+attribute
		if l.Value == "off" {
			word, opposite = opposite, word
		}
		fill := strings.NewReplacer("%o", of, "%a", attribute, "%v", l.Value, "%w", was, "%s", word, "%u", opposite,
			"%i", instances(m.nic(), l.Value)).Replace
		undo := w.undo
		if w.reset != "" && (l.Present == "" || l.Present == l.Default) {
			undo = w.reset
		}
		l.Read, l.ByHand, l.UndoNote, l.Effect = fill(w.read), fill(w.byHand), fill(note), w.effect
		l.Undoing = w.effect.undo(l.Knob)
		l.Commands, l.Undo = commands(fill(w.set)), commands(fill(undo))
		for _, f := range w.files {
			if f.Path != "" {
				f.Text = fill(f.Text)
				l.Files = append(l.Files, f)
			}
		}
		return
	}
}

// commands splits a text into its lines; an empty one has none.
func commands(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// quoted returns a text as one word of a POSIX shell.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-+:/,=@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// noteBefore is for values whose default differs from host to host.
const noteBefore = "The default depends on the host: give the value that was kept, in this variable."

// before returns a variable for the value that the host had. The shell stops where it is missing.
func before(attribute string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(attribute[strings.LastIndex(attribute, ".")+1:]))
	return `"${BEFORE_` + strings.ToUpper(name) + `:?the value before the plan}"`
}

// mode writes permissions; the usual ones are empty.
func mode(m uint32) string {
	if m == 0o644 {
		return ""
	}
	return fmt.Sprintf("%04o", m)
}

func contains(all []string, s string) bool { return slices.Contains(all, s) }

// capital makes a sentence of a clause.
func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// subject returns the parts of a knob's name: KIND:SUBJECT/ATTRIBUTE.
func subject(knob string) (kind, of, attribute string) {
	kind, rest, _ := strings.Cut(knob, ":")
	at := strings.LastIndexAny(rest, `/\`)
	if at < 0 {
		return kind, "", rest
	}
	return kind, rest[:at], rest[at+1:]
}

// instances writes the value of one instance of a driver into a list for 16.
func instances(nic, value string) string {
	n := 0
	_, _ = fmt.Sscanf(trailing(nic), "%d", &n) // a name without a number is the first
	text := ""
	for i := range 16 {
		v := "0"
		if i == n {
			v = value
		}
		if i > 0 {
			text += ","
		}
		text += v
	}
	return text
}

// trailing is the number that a name ends with.
func trailing(s string) string {
	i := len(s)
	for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	return s[i:]
}
