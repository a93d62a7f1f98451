package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// manual is what becomes of one program.
type manual struct {
	name, date string
	version    string
	ask        func(args ...string) (string, error) // runs the program and returns what it prints
	pages      map[string]string                    // by file name, as in linerate-measure.1
}

// purposes are the lines under NAME of the programs themselves; the help of a program lists those
// of its commands only.
var purposes = map[string]string{
	"linerate":     "find what keeps a host from its line rate, prove the remedy, undo anything",
	"linerate-hub": "keep the history of a host and show it on a page",
}

// all makes every page.
func (m *manual) all() error {
	version, err := m.ask("version")
	if err != nil {
		return err
	}
	// The revision would make two pages of one version differ.
	m.version, _, _ = strings.Cut(strings.TrimSpace(version), "+")
	if err := m.command(nil, purposes[m.name]); err != nil {
		return err
	}
	list, err := m.ask("help", "help")
	if err != nil {
		return err
	}
	for name, title := range topicsIn(list) {
		text, err := m.ask("help", name)
		if err != nil {
			return err
		}
		file := m.name + "-" + name
		var p page
		p.head(file, "7", m.date, m.version)
		p.heading("NAME")
		p.filled(file + " - " + lowerFirst(title))
		p.heading("DESCRIPTION")
		p.text(strings.TrimPrefix(text, title+"\n\n"))
		p.section("SEE ALSO", `\fB`+escape(m.name)+`\fR(1)`)
		m.pages[file+".7"] = p.String()
	}
	// The program's own page names all others.
	root := m.pages[m.name+".1"]
	var others []string
	for _, file := range slices.Sorted(maps.Keys(m.pages)) {
		name, section := file[:len(file)-2], file[len(file)-1:]
		if name != m.name {
			others = append(others, `\fB`+escape(name)+`\fR(`+section+")")
		}
	}
	m.pages[m.name+".1"] = root + ".SH SEE ALSO\n" + strings.Join(others, ",\n") + "\n"
	return nil
}

// topicsIn returns the topics that the help of help lists, with their titles.
func topicsIn(help string) map[string]string {
	found := make(map[string]string)
	_, list, ok := strings.Cut(help, "topics:\n")
	if !ok {
		return found
	}
	list, _, _ = strings.Cut(list, "\n\nEXIT STATUS")
	for line := range strings.Lines(list) {
		if name, title, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[name] = strings.TrimSpace(title)
		}
	}
	return found
}

// titles are the headings of a help text behind its description, and those of the page.
var titles = []struct{ help, page string }{
	{"Usage:", "SYNOPSIS"}, {"Aliases:", "ALIASES"}, {"Examples:", "EXAMPLES"}, {"Available Commands:", "COMMANDS"},
	{"Flags:", "OPTIONS"}, {"Global Flags:", "GLOBAL OPTIONS"},
}

// sections parts a help text by its headings; the description has the heading DESCRIPTION.
func sections(help string) map[string]string {
	parts := make(map[string]string)
	at := "DESCRIPTION"
	for line := range strings.Lines(help) {
		next := ""
		for _, t := range titles {
			if strings.TrimSpace(line) == t.help && line[0] != ' ' {
				next = t.page
			}
		}
		// A group of commands has a title of its own.
		if heading := strings.TrimSpace(line); next == "" && at != "DESCRIPTION" && line[0] != ' ' &&
			strings.HasSuffix(heading, ":") {
			next = "COMMANDS"
		}
		switch {
		case next != "":
			at = next
		case strings.TrimSpace(line) == "EXIT STATUS":
			at = "EXIT STATUS"
		case strings.HasPrefix(line, "Use \""): // cobra's last line
		default:
			parts[at] += line
		}
	}
	return parts
}

// command makes the page of one command and of those below it. Help and completion explain
// themselves.
func (m *manual) command(path []string, short string) error {
	help, err := m.ask(append(slices.Clone(path), "--help")...)
	if err != nil {
		return err
	}
	name := strings.Join(append([]string{m.name}, path...), "-")
	parts := sections(help)
	var p page
	p.head(name, "1", m.date, m.version)
	p.heading("NAME")
	p.filled(name + " - " + lowerFirst(short))
	p.heading("SYNOPSIS")
	p.text(parts["SYNOPSIS"])
	p.heading("DESCRIPTION")
	p.text(parts["DESCRIPTION"])
	below := entries(parts["COMMANDS"])
	if len(below) > 0 {
		p.heading("COMMANDS")
		for _, e := range below {
			p.item(e.name, e.text)
		}
	}
	for _, title := range []string{"OPTIONS", "GLOBAL OPTIONS"} {
		if flags := flagsIn(parts[title]); len(flags) > 0 {
			p.heading(title)
			for _, e := range flags {
				p.item(e.name, e.text)
			}
		}
	}
	for _, title := range []string{"EXIT STATUS", "EXAMPLES"} {
		if text := strings.TrimSpace(parts[title]); text != "" {
			p.heading(title)
			p.text(parts[title])
		}
	}
	if len(path) > 0 {
		up := strings.Join(append([]string{m.name}, path[:len(path)-1]...), "-")
		p.section("SEE ALSO", `\fB`+escape(up)+`\fR(1)`)
	}
	m.pages[name+".1"] = p.String()
	for _, e := range below {
		if e.name != "help" && e.name != "completion" {
			if err := m.command(append(slices.Clone(path), e.name), e.text); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry is a command or a flag with what it is for.
type entry struct{ name, text string }

// entries reads the list of commands.
func entries(list string) []entry {
	var all []entry
	for line := range strings.Lines(list) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all = append(all, entry{name, strings.TrimSpace(text)})
		}
	}
	return all
}

// flagLine is a line of the list of flags: names, the word for the value, three or more blanks, and
// the usage.
var flagLine = regexp.MustCompile(`^ +((?:-\w, )?--\S+(?: \S+)?)   +(.*)$`)

// flagsIn reads the list of flags.
func flagsIn(list string) []entry {
	var all []entry
	for line := range strings.Lines(list) {
		line = strings.TrimRight(line, "\n")
		if f := flagLine.FindStringSubmatch(line); f != nil {
			all = append(all, entry{f[1], f[2]})
		} else if n := len(all); n > 0 && strings.TrimSpace(line) != "" {
			all[n-1].text += " " + strings.TrimSpace(line)
		}
	}
	return all
}

// lowerFirst makes a title fit behind the dash of NAME, unless it begins with a name.
func lowerFirst(title string) string {
	first, _, _ := strings.Cut(title, " ")
	if first == strings.ToUpper(first) && len(first) > 1 || title == "" {
		return title
	}
	return strings.ToLower(title[:1]) + title[1:]
}
