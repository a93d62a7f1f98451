package knob

import (
	"bufio"
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Origin is a line of a configuration file that gives a knob its value when the host starts.
type Origin struct {
	File  string `json:"file"` // absolute path on its host
	Line  int    `json:"line"` // counted from 1
	Value Value  `json:"value"`
	By    string `json:"by"` // who reads the file: sysctl, tuned, modprobe
}

// Boot is what the configuration of a host sets when it starts: sysctls of sysctl.conf(5) and of the active profile of TuneD, and options of
// modprobe.d(5). That a knob has the value of the line is no proof that the line has set it, and a knob that has another one was changed since.
type Boot struct {
	exact map[ID]Origin
	globs []bootGlob // in the order in which they are applied
}

// bootGlob is a line for several knobs: net.ipv4.conf.*.rp_filter = 1.
type bootGlob struct {
	pattern ID
	origin  Origin
}

// sysctlDirs are searched in this order: a file hides those of the same name in directories behind it (sysctl.d(5)).
var sysctlDirs = []string{"etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"}

// modprobeDirs likewise (modprobe.d(5)).
var modprobeDirs = []string{"etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d"}

// ReadBoot reads the configuration below the root directory of a host. Files that are not there or may not be read are left out.
//
// What comes later wins. The vendor's settings come first, then TuneD, then those of the administrator: TuneD by default applies the files
// of /etc and /run anew after its own profile (reapply_sysctl of tuned-main.conf(5)). /etc/sysctl.conf is the last of all, as in
// sysctl --system; systemd-sysctl reads it only where a link in /etc/sysctl.d leads to it, which Debian and Red Hat have.
func ReadBoot(root fs.FS) *Boot {
	b := &Boot{exact: make(map[ID]Origin)}
	files := dropIns(root, sysctlDirs)
	local := func(file string) bool { return strings.HasPrefix(file, "etc/") || strings.HasPrefix(file, "run/") }
	for _, file := range files {
		if !local(file) {
			b.sysctls(root, file)
		}
	}
	b.tuned(root)
	for _, file := range files {
		if local(file) {
			b.sysctls(root, file)
		}
	}
	b.sysctls(root, "etc/sysctl.conf")
	for _, file := range dropIns(root, modprobeDirs) {
		b.options(root, file)
	}
	return b
}

// Origin gives the line that has the last word about a knob. A line with its full name beats one with a star, wherever they stand
// (sysctl.d(5)).
func (b *Boot) Origin(id ID) (Origin, bool) {
	if o, ok := b.exact[id]; ok {
		return o, true
	}
	for _, g := range slices.Backward(b.globs) {
		if matches(g.pattern, id) {
			return g.origin, true
		}
	}
	return Origin{}, false
}

// dropIns lists NAME.conf of several directories, sorted by name and not by directory.
func dropIns(root fs.FS, dirs []string) []string {
	byName := make(map[string]string)
	for _, dir := range dirs {
		entries, err := fs.ReadDir(root, dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if _, hidden := byName[e.Name()]; !hidden && strings.HasSuffix(e.Name(), ".conf") && !e.IsDir() {
				byName[e.Name()] = path.Join(dir, e.Name())
			}
		}
	}
	out := slices.Collect(maps.Values(byName))
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(path.Base(a), path.Base(b)) })
	return out
}

// lines calls f for each line of a file that is neither empty nor a comment, without the blanks around it.
//
// A line of more than 64 KiB ends the file: nothing that a person has written is that long.
func lines(root fs.FS, file string, f func(number int, text string)) {
	r, err := root.Open(file)
	if err != nil {
		return
	}
	defer func() { _ = r.Close() }() // opened for reading: nothing to lose
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		if text := strings.TrimSpace(s.Text()); text != "" && text[0] != '#' && text[0] != ';' {
			f(n, text)
		}
	}
}

// sysctls reads a file of sysctl.conf(5): KEY = VALUE, with a dash in front where a failure does not matter.
func (b *Boot) sysctls(root fs.FS, file string) {
	lines(root, file, func(n int, text string) {
		b.assign(text, Origin{File: "/" + file, Line: n, By: "sysctl"})
	})
}

func (b *Boot) assign(text string, o Origin) {
	key, value, ok := strings.Cut(text, "=")
	key = strings.TrimSpace(strings.TrimPrefix(key, "-"))
	if !ok || key == "" {
		return
	}
	id, err := parseID(KindSysctl + ":" + key)
	if err != nil {
		return
	}
	o.Value = squeeze(Value(value))
	if strings.Contains(key, "*") {
		b.globs = append(b.globs, bootGlob{id, o})
		return
	}
	b.exact[id] = o
}

// options reads a file of modprobe.d(5): options MODULE NAME=VALUE…
func (b *Boot) options(root fs.FS, file string) {
	lines(root, file, func(n int, text string) {
		words := strings.Fields(text)
		if len(words) < 3 || words[0] != "options" {
			return
		}
		for _, w := range words[2:] {
			parameter, value, ok := strings.Cut(w, "=")
			id, err := parseID(KindModule + ":" + words[1] + "/" + parameter)
			if ok && err == nil {
				b.exact[id] = Origin{File: "/" + file, Line: n, Value: Value(strings.Trim(value, `"`)), By: "modprobe"}
			}
		}
	})
}

// tunedDirs hold profiles; the administrator's first, the new place of each before the old one (TuneD 2.23 made profiles/).
var tunedDirs = []string{"etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"}

// tuned reads the sysctls of the active profiles. active_profile holds their names parted by blanks; the later one wins.
func (b *Boot) tuned(root fs.FS) {
	active, err := fs.ReadFile(root, "etc/tuned/active_profile")
	if err != nil {
		return
	}
	for _, name := range strings.Fields(string(active)) {
		b.profile(root, name, make(map[string]bool))
	}
}

// profile reads one profile and before it those that it includes, each once: two may include each other by mistake.
func (b *Boot) profile(root fs.FS, name string, seen map[string]bool) {
	if seen[name] || strings.Contains(name, "/") {
		return
	}
	seen[name] = true
	for _, dir := range tunedDirs {
		file := path.Join(dir, name, "tuned.conf")
		if _, err := fs.Stat(root, file); errors.Is(err, fs.ErrNotExist) || !fs.ValidPath(file) {
			continue
		}
		section := ""
		type assignment struct {
			text   string
			origin Origin
		}
		var own []assignment
		lines(root, file, func(n int, text string) {
			switch key, value, _ := strings.Cut(text, "="); {
			case text[0] == '[':
				section = strings.Trim(text, "[]")
			case section == "main" && strings.TrimSpace(key) == "include":
				for _, included := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }) {
					b.profile(root, included, seen)
				}
			// A value with a variable of TuneD is not known here.
			case section == "sysctl" && !strings.Contains(value, "$"):
				own = append(own, assignment{text, Origin{File: "/" + file, Line: n, By: "tuned"}})
			}
		})
		for _, a := range own {
			b.assign(a.text, a.origin)
		}
		return
	}
}
