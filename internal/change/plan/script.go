package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob"
)

// script is a text for one shell.
type script struct {
	b       strings.Builder
	comment string // "# ", or "rem " for the shell of Windows before PowerShell
	dir     string // the one that was made last
}

const (
	commentWidth = 78 // of comments, in characters
	blockBegin   = "# linerate plan: begin"
	blockEnd     = "# linerate plan: end"
)

// shellOf starts a script for the shell of a system.
func shellOf(s System) *script {
	x := &script{comment: "# "}
	switch {
	case s.OS != advice.Windows:
		x.run("#!/bin/sh")
	case s.major() < 6:
		x.comment = "rem "
		x.run("@echo off")
	}
	return x
}

// say writes a comment, wrapped; further lines are indented by some blanks more.
func (x *script) say(indent, format string, args ...any) {
	text := indent + fmt.Sprintf(format, args...)
	hang := strings.Repeat(" ", len(indent))
	if strings.HasPrefix(strings.TrimLeft(text, " "), "- ") {
		hang += "  "
	}
	line := ""
	flush := func() { x.run(strings.TrimRight(x.comment+line, " ")) }
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line = indent + word
		case len([]rune(x.comment+line+" "+word)) > commentWidth:
			flush()
			line = hang + word
		default:
			line += " " + word
		}
	}
	flush()
}

// blank writes an empty line.
func (x *script) blank() { x.run("") }

// run writes a line for the shell. It is called in many places, and inlined it would be large.
//
//go:noinline
func (x *script) run(command string) { x.b.WriteString(command + "\n") }

// stop makes the shell stop at the first command that fails.
func (x *script) stop(s System) {
	switch {
	case s.OS != advice.Windows:
		x.run("set -eu")
	case s.major() >= 6:
		x.run("$ErrorActionPreference = 'Stop'")
	}
}

// words are the verdicts in a sentence.
var words = map[advice.Verdict]string{
	advice.StillRight: "right", advice.NowDefault: "default now", advice.Ignored: "ignored", advice.Removed: "removed",
	advice.Harmful: "harmful", advice.Unknown: "not judged",
}

// label is a setting with its value for readers. The usual key of the registry is left out, because
// the command has it.
func (l *Line) label() string {
	name := strings.TrimPrefix(l.Knob, "sysctl:")
	if rest, ok := strings.CutPrefix(name, "registry:"+tcpip); ok {
		name = `Tcpip\Parameters` + rest
	}
	return name + " = " + l.Value
}

// undoing sums up what undo needs, before anything is touched.
func (p *Plan) undoing() string {
	var parts []string
	for _, k := range []struct {
		kind knob.Undo
		text string
	}{{knob.UndoNow, "at once"},
		{knob.UndoReboot, "after a reboot"}, {knob.UndoDowntime, "with the link down meanwhile"}} {
		var of []string
		for _, l := range p.set() {
			if l.Undoing == k.kind {
				_, _, attribute := subject(l.Knob)
				of = append(of, attribute)
			}
		}
		if len(of) > 0 {
			parts = append(parts, k.text+" for "+strings.Join(of, ", "))
		}
	}
	if len(parts) == 0 {
		return "nothing to do, because nothing is set"
	}
	return strings.Join(parts, "; ")
}

// head writes what the plan is for.
func (x *script) head(p *Plan, what string) {
	s := &p.Situation
	x.say("", "%s: %s, role %s", what, s.System, s.Role)
	facts := []string{"link " + s.Link.String()}
	if s.RoundTrip > 0 {
		facts = append(facts, "round trip "+unit.FormatSeconds(s.RoundTrip.Seconds()))
	}
	if s.Memory > 0 {
		facts = append(facts, "memory "+s.Memory.String())
	}
	if s.Interface != "" {
		facts = append(facts, "interface "+s.Interface)
	}
	x.say("", "%s", strings.Join(facts, ", "))
}

// Script returns the commands and files of the plan for the shell of its system, with the reasons
// as comments. The text also lists what is not set.
func (p *Plan) Script() string {
	s := p.Situation.System
	x := shellOf(s)
	x.head(p, "linerate plan")
	x.say("", "Made from numbers, on paper: measure before and after, and undo what does not help. "+
		"--undo prints the way back.")
	x.say("", "Undo: %s.", p.undoing())
	if p.Memory != nil {
		x.say("", "Memory: %s.", p.Memory.Formula)
	}
	for _, n := range p.Notes {
		x.say("", "Note: %s", n)
	}
	if reads := p.reads(); len(reads) > 0 {
		x.say("", "Before: keep what these print. Undo needs it for a value that is not the default.")
		for _, r := range reads {
			x.run(x.comment + "  " + r)
		}
	}
	set := p.set()
	files := merged(set)
	if len(set) > 0 {
		x.blank()
		x.stop(s)
		for _, f := range files {
			if !f.Own {
				x.run("if grep -q '^" + blockBegin + "' " + f.Path + " 2>/dev/null; then echo '" + f.Path +
					" has a plan already: undo that first' >&2; exit 1; fi")
			}
		}
	}
	for i, l := range set {
		x.blank()
		x.say("", "%d. %s%s", i+1, l.label(), l.was())
		x.say("   ", "Why: %s", ended(l.Reason))
		x.say("   ", "Status: %s. %s (%s)", words[l.Verdict], l.What, l.Source)
		x.say("   ", "Takes effect %s; undo works %s.", effectText(l.Effect), undoText(l.Undoing))
		if l.ByHand != "" {
			x.say("   ", "By hand: %s.", l.ByHand)
		}
		for _, c := range l.Commands {
			x.run(c)
		}
	}
	if len(files) > 0 {
		x.blank()
		x.say("", "The same after a restart:")
		for _, f := range files {
			x.write(f)
		}
	}
	x.notSet(p)
	return x.b.String()
}

// notSet lists what the plan leaves alone.
func (x *script) notSet(p *Plan) {
	some := false
	for i := range p.Lines {
		l := &p.Lines[i]
		if l.Set {
			continue
		}
		if !some {
			x.blank()
			x.say("", "Not set:")
			some = true
		}
		of := ""
		if l.WriteUp {
			of = " (a write-up's value)"
		}
		text := fmt.Sprintf("- %s%s: %s.", l.label(), of, words[l.Verdict])
		if l.Since != "" {
			text = strings.TrimSuffix(text, ".") + " since " + l.Since + "."
		}
		text += " " + l.What
		if l.Reason != "" {
			text += " " + ended(l.Reason)
		}
		if l.Today != "" && l.Today != "leave it out" && l.Verdict != advice.StillRight {
			text += " Instead: " + ended(l.Today)
		}
		x.say("", "%s", text)
	}
}

// UndoScript returns the way back: the lines in reverse, and then the files.
func (p *Plan) UndoScript() string {
	s := p.Situation.System
	x := shellOf(s)
	x.head(p, "linerate plan, undone")
	set := p.set()
	if len(set) == 0 {
		x.say("", "%s.", capital(p.undoing()))
		return x.b.String()
	}
	x.say("", "It works %s.", p.undoing())
	x.say("", "Values are those that the host showed, or else the defaults of the release.")
	x.blank()
	x.stop(s)
	slices.Reverse(set)
	for _, l := range set {
		x.blank()
		x.say("", "%s%s", l.label(), l.was())
		if l.UndoNote != "" {
			x.say("   ", "%s", l.UndoNote)
		}
		for _, c := range l.Undo {
			x.run(c)
		}
	}
	files := merged(p.set())
	if len(files) > 0 {
		x.blank()
	}
	var made []string // directories of ours
	for _, f := range files {
		x.remove(f)
		if dir := path.Dir(f.Path); strings.Contains(dir, "linerate") && !contains(made, dir) {
			made = append(made, dir)
		}
	}
	for _, dir := range made {
		x.run("rmdir " + quoted(dir))
	}
	return x.b.String()
}

// set returns the lines that are set.
func (p *Plan) set() []*Line {
	var all []*Line
	for i := range p.Lines {
		if p.Lines[i].Set {
			all = append(all, &p.Lines[i])
		}
	}
	return all
}

// reads are the commands that show the present values, each once.
func (p *Plan) reads() []string {
	var all []string
	for _, l := range p.set() {
		if l.Read != "" && !contains(all, l.Read) {
			all = append(all, l.Read)
		}
	}
	return all
}

// was names the value before.
func (l *Line) was() string {
	switch {
	case l.Present != "":
		return " (now " + l.Present + ")"
	case l.about:
		return " (default about " + l.Default + ", by memory)"
	case l.Default != "":
		return " (default " + l.Default + ")"
	}
	return ""
}

// merged joins the lines that go into one file. A text that several lines bring counts once.
func merged(lines []*Line) []File {
	var all []File
	for _, l := range lines {
		for _, f := range l.Files {
			i := slices.IndexFunc(all, func(x File) bool { return x.Path == f.Path })
			switch {
			case i < 0:
				all = append(all, f)
			case !strings.Contains(all[i].Text, f.Text):
				all[i].Text += f.Text
			}
		}
	}
	for i, f := range all {
		if f.Mode != "" && !strings.HasPrefix(f.Text, "#!") {
			all[i].Text = "#!/bin/sh\n" + f.Text
		}
	}
	return all
}

// write puts a file of the plan into the script.
func (x *script) write(f File) {
	if !f.Own {
		x.run("cat >> " + quoted(f.Path) + " <<'END'\n" + blockBegin + "\n" + f.Text + blockEnd + "\nEND")
		return
	}
	if dir := quoted(path.Dir(f.Path)); dir != x.dir {
		x.run("mkdir -p " + dir)
		x.dir = dir
	}
	x.run("cat > " + quoted(f.Path) + " <<'END'\n" + f.Text + "END")
	if f.Mode != "" {
		x.run("chmod " + f.Mode + " " + quoted(f.Path))
	}
}

// remove takes a file, or the lines of the plan in it, out again.
func (x *script) remove(f File) {
	name := quoted(f.Path)
	if !f.Own {
		x.run("sed '/^" + blockBegin + "/,/^" + blockEnd + "/d' " + name + " > " + name + ".linerate")
		x.run("cat " + name + ".linerate > " + name)
		x.run("rm " + name + ".linerate")
		return
	}
	x.run("rm -f " + name)
}

func ended(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

func effectText(e Effect) string {
	if e == NewConnections {
		return "for new connections"
	}
	return string(e)
}

func undoText(u knob.Undo) string {
	switch u {
	case knob.UndoReboot:
		return "after a reboot"
	case knob.UndoDowntime:
		return "with the link down meanwhile"
	}
	return "at once"
}
