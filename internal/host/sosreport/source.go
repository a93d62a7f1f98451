package sosreport

import (
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/host/sosreport/printed"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// source is the files of one report, and what is derived from them.
type source struct {
	tree  *hostfs.Memory
	made  []hostfs.Entry
	has   map[string]bool   // names of made
	paths map[string]string // of PCI devices through the tree of buses, by address
	dev   *procfs.Counts    // /proc/net/dev
	// process is the directory in which sos copied its own /proc/self/net, if the links to it are
	// lost; empty: the links exist, or there is no copy.
	process  string
	nameless []string // cards whose driver is not known
	said     sentences
}

func newSource(entries []hostfs.Entry) *source {
	s := &source{tree: hostfs.NewMemory(entries), has: make(map[string]bool), dev: procfs.NewCounts(64)}
	s.findTables()
	// A partial result is used; package host reports errors.
	_ = procfs.ParseDev([]byte(s.netText("dev")), s.dev)
	return s
}

// any reports whether an entry has that name.
func (s *source) any(name string) bool {
	_, err := fs.Stat(s.tree, name)
	return err == nil
}

// text returns a file, empty if it does not exist. Links are followed as long as they stay in the
// report.
func (s *source) text(name string) string {
	b, err := fs.ReadFile(s.tree, name)
	if err != nil {
		return ""
	}
	return string(b)
}

// kernel reports whether the report has a file of the running kernel, copied or derived.
func (s *source) kernel(name string) bool { return s.has[name] || s.any(name) }

// findTables finds the copy of /proc/net where sos put it: in the directory of its own process,
// where the link leads. Packing or unpacking the report may have lost the links.
func (s *source) findTables() {
	if s.net("dev") || s.net("snmp") {
		return
	}
	entries, _ := s.tree.ReadDir("proc") // A report without it has no tables.
	for _, e := range entries {
		if dir := "proc/" + e.Name(); number(e.Name()) && s.any(dir+"/net/dev") {
			s.process = dir
			return
		}
	}
}

// netText returns a table of /proc/net from the first of the directories in which package hostfs
// looks; empty if the report has none.
func (s *source) netText(table string) string {
	for _, dir := range []string{"proc/thread-self/net/", "proc/self/net/", "proc/net/", s.process + "/net/"} {
		if text := s.text(dir + table); text != "" {
			return text
		}
	}
	return ""
}

// net reports whether the report has a table of /proc/net.
func (s *source) net(table string) bool { return s.netText(table) != "" }

// output returns the output of the first of the commands that printed anything. It looks in the
// directories of all versions of sos.
func (s *source) output(commands ...string) string {
	for _, command := range commands {
		name := mangle(command)
		// A command that failed left an empty file, or none; then an older form may exist.
		for _, plugin := range plugins {
			if text := s.text("sos_commands/" + plugin + "/" + name); strings.TrimSpace(text) != "" {
				return text
			}
		}
		// The links at the top have the name of the first word.
		if text := s.text(name); topLevel(name) && strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// mangle converts a command to a file name as sos does: any character that is no letter, digit,
// underscore, hyphen, dot or slash becomes an underscore, several in a row one, and a slash a dot;
// blanks and signs at both ends are cut (_mangle_command in its plugins).
func mangle(command string) string {
	var b strings.Builder
	gap := false
	for _, c := range []byte(command) {
		switch {
		case c == '/':
			b.WriteByte('.')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.', c > 0x7f:
			b.WriteByte(c)
		case !gap:
			b.WriteByte('_')
			gap = true
			continue
		default:
			continue
		}
		gap = false
	}
	return strings.Trim(b.String(), " ._-")
}

// put adds a file that the report does not have; an existing one stays.
func (s *source) put(name, content string) {
	if !s.kernel(name) && fs.ValidPath(name) {
		s.has[name] = true
		s.made = append(s.made, hostfs.Entry{Name: name, Content: []byte(content)})
	}
}

// value writes a file of one line; an empty value is not written.
func (s *source) value(name, value string) {
	if value != "" {
		s.put(name, value+"\n")
	}
}

// putLink adds a symbolic link and replaces any entry of that name. Both paths are below the root
// of the report.
func (s *source) putLink(name, to string) {
	if !fs.ValidPath(name) || !fs.ValidPath(to) {
		return
	}
	s.has[name] = true
	s.made = append(s.made, hostfs.Entry{Name: name, Target: strings.Repeat("../", strings.Count(name, "/")) + to})
}

// say records what the report lacks.
func (s *source) say(sentence string) { s.said.add(sentence) }

// moments returns when the report was made and when the host started. Zero: not known.
func (s *source) moments() (now, boot time.Time) {
	up, upKnown := printed.ParseSeconds(s.text("proc/uptime"))
	if !upKnown {
		up, upKnown = printed.ParseUptime(s.output("uptime"))
	}
	boot, bootKnown := procfs.ParseBootTime([]byte(s.text("proc/stat")))
	now, nowKnown := printed.ParseDate(s.output("date --utc", "date -u"), nil)
	if !nowKnown {
		zone, err := time.LoadLocationFromTZData("host", []byte(s.text("etc/localtime")))
		if err != nil {
			zone = nil
		}
		now, nowKnown = printed.ParseDate(s.output("date"), zone)
	}
	// Any two of the three give the third. uptime is exact only to the minute, so it is used last.
	switch {
	case nowKnown && !bootKnown && upKnown:
		boot = now.Add(-up)
	case !nowKnown && bootKnown && upKnown:
		now = boot.Add(up)
	}
	return now, boot
}

// resolve follows the links of a name by their text, even if the end does not exist: a report has
// the link of an interface without the files behind it. ok is false if they lead out of the report
// or form a cycle.
func (s *source) resolve(name string) (string, bool) {
	for range 40 {
		target, at := "", ""
		// The first element that is a link.
		for i := range len(name) + 1 {
			if i < len(name) && name[i] != '/' {
				continue
			}
			if t, err := s.tree.ReadLink(name[:i]); err == nil {
				target, at = t, name[:i]
				break
			}
		}
		if at == "" {
			return name, fs.ValidPath(name)
		}
		if strings.HasPrefix(target, "/") {
			return "", false
		}
		name = path.Join(path.Dir(at), target) + name[len(at):]
		if name == ".." || strings.HasPrefix(name, "../") {
			return "", false
		}
	}
	return "", false
}
