package export

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/shell"
)

//go:embed engine.sh
var engine string

// section returns one part of engine.sh: the text between its mark and the next.
func section(name string) string {
	_, rest, _ := strings.Cut(engine, "#: "+name+"\n")
	part, _, _ := strings.Cut(rest, "\n#: ")
	return strings.TrimRight(part, "\n") + "\n"
}

// script returns a file with the program for some settings.
func (d *draft) script(settings []setting) string {
	return "#!/bin/sh\n" + d.header("Settings for other hosts, a shell script") + "#\n" +
		strings.TrimPrefix(d.program(settings), "#!/bin/sh\n")
}

// program returns the engine with a list of settings. The interface comes from LINERATE_IF1 in the
// environment, TuneD's variable, or the origin.
func (d *draft) program(settings []setting) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# linerate-export apply | check | undo; see --help.\nset -eu\n\n")
	for _, i := range d.interfaces {
		if !slices.ContainsFunc(settings, func(s setting) bool { return s.uses(i.Variable) }) {
			continue
		}
		upper := strings.ToUpper(i.Variable)
		fmt.Fprintf(&b, "%s=${LINERATE_%s:-${TUNED_%s:-}}\n", i.Variable, upper, i.Variable)
		fmt.Fprintf(&b, "[ -n \"$%s\" ] || %s=%s\n\n", i.Variable, i.Variable, shell.Quote(i.Name))
	}
	b.WriteString(section("core"))
	var ways []string
	for _, s := range settings {
		if !slices.Contains(ways, s.way.kind) {
			ways = append(ways, s.way.kind)
			b.WriteString("\n" + section(s.way.kind))
		}
	}
	list := func(name string, in []setting) {
		fmt.Fprintf(&b, "\n%s() {\n", name)
		for _, s := range in {
			fmt.Fprintf(&b, "\tone \"$1\" %s %s %s", s.name(), shell.Quote(string(s.To)), s.way.kind)
			for _, a := range s.way.args {
				b.WriteString(" " + a.sh())
			}
			b.WriteString("\n")
		}
		b.WriteString("}\n")
	}
	list("changes", settings)
	back := slices.Clone(settings)
	slices.Reverse(back)
	list("changes_backwards", back)
	b.WriteString("\n" + section("main"))
	return b.String()
}

// name returns the knob as a word of the shell, with the target's interface instead of the
// origin's.
func (s setting) name() string {
	for _, a := range s.way.args {
		kind := s.Knob.Kind() + ":"
		switch rest, found := strings.CutPrefix(string(s.Knob), kind+a.link+"/"); {
		case a.link == "":
		case s.way.kind == waySysctl:
			return arg{before: kind + dotted(a.before), link: a.link, after: dotted(a.after), variable: a.variable}.sh()
		case found:
			return arg{before: kind, link: a.link, after: "/" + rest, variable: a.variable}.sh()
		}
	}
	return shell.Quote(string(s.Knob))
}

// uses reports whether a setting uses the interface of a variable.
func (s setting) uses(variable string) bool {
	return slices.ContainsFunc(s.way.args, func(a arg) bool { return a.variable == variable })
}

// sh returns an argument as a word of the shell.
func (a arg) sh() string {
	if a.link == "" {
		return shell.Quote(a.before)
	}
	quoted := func(s string) string {
		if s == "" {
			return ""
		}
		return shell.Quote(s)
	}
	return quoted(a.before) + `"$` + a.variable + `"` + quoted(a.after)
}

// live returns the settings that the engine can apply, without those that take effect only when a
// module is loaded or the kernel starts.
func (d *draft) live() []setting {
	var out []setting
	for _, s := range d.settings {
		switch {
		case s.way.ofEngine():
			out = append(out, s)
		case s.way.kind == wayModule:
			d.leave(s.Change, "it holds when the module is loaded",
				s.way.modprobe(s.To)+" in a file of /etc/modprobe.d")
		default:
			d.leave(s.Change, "it holds when the kernel starts",
				s.way.bootParameter(s.To)+" on the kernel's command line")
		}
	}
	d.settings = out
	return out
}

// modprobe returns a line of modprobe.d(5).
func (w way) modprobe(to any) string {
	return fmt.Sprintf("options %s %s=%s", w.args[0].before, w.args[1].before, to)
}

// bootParameter returns a word of the kernel's command line.
func (w way) bootParameter(to any) string {
	return fmt.Sprintf("%s.%s=%s", w.args[0].before, w.args[1].before, to)
}

// shell writes one script with everything.
func (d *draft) shell() []File {
	return []File{{Name: "linerate-export.sh", Mode: "0755", Content: d.script(d.live())}}
}
