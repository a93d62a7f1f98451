package bootconf

import (
	"bufio"
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// Line is a line of a configuration file that gives a knob its value when the host starts.
type Line struct {
	File   string     `json:"file"` // absolute path on its host
	Number int        `json:"line"` // counted from 1
	Value  knob.Value `json:"value"`
	By     string     `json:"by"` // who reads the file: sysctl, tuned, modprobe, systemd-udevd, udev, NetworkManager, systemd-networkd, ifupdown
}

// Config is what the configuration of a host sets when it starts.
type Config struct {
	exact  map[knob.ID]Line
	globs  []glob           // in the order in which they are applied
	except map[knob.ID]bool // no glob is meant for these
}

// glob is a line for several knobs: net.ipv4.conf.*.rp_filter = 1.
type glob struct {
	pattern knob.ID
	line    Line
}

// sysctlDirs are searched in this order: a file hides those of the same name in directories behind
// it (sysctl.d(5)).
var sysctlDirs = []string{"etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"}

// modprobeDirs likewise (modprobe.d(5)).
var modprobeDirs = []string{"etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d",
	"lib/modprobe.d"}

// Read reads the configuration below the root directory of a host, and for some of its interfaces
// what files say of each. Files that are not there or may not be read are left out.
//
// What comes later wins: the files by name and not by directory, so that 99-x of the vendor beats
// 10-y of the administrator, and /etc/sysctl.conf last of all, as in sysctl --system.
// (systemd-sysctl reads that one only where a link in /etc/sysctl.d leads to it, as Debian and Red
// Hat have it.) TuneD comes after them and then by default applies those of /etc and /run again
// (reapply_sysctl of tuned-main.conf(5)): it beats the vendor and not the administrator.
//
// An interface gets its settings from udev first (.link files, then rules), then from TuneD, and
// last from whoever brings it up.
func Read(root fs.FS, devices ...Device) *Config {
	c := &Config{exact: make(map[knob.ID]Line), except: make(map[knob.ID]bool)}
	files := append(dropIns(root, sysctlDirs), "etc/sysctl.conf")
	for _, file := range files {
		c.sysctls(root, file)
	}
	if c.tuned(root) {
		for _, file := range files {
			if strings.HasPrefix(file, "etc/") || strings.HasPrefix(file, "run/") {
				c.sysctls(root, file)
			}
		}
	}
	for _, file := range dropIns(root, modprobeDirs) {
		c.options(root, file)
	}
	for _, d := range devices {
		c.links(root, d)
	}
	c.rules(root, devices)
	for _, d := range devices {
		c.tunedNet(root, d)
		c.networkd(root, d)
		c.networkManager(root, d)
		c.ifupdown(root, d)
	}
	return c
}

// Line returns the line that decides the value of a knob. A line with its full name beats one with a star,
// wherever they stand (sysctl.d(5)).
func (c *Config) Line(id knob.ID) (Line, bool) {
	if l, ok := c.exact[id]; ok {
		return l, true
	}
	if c.except[id] {
		return Line{}, false
	}
	for _, g := range slices.Backward(c.globs) {
		if id.Fits(g.pattern) {
			return g.line, true
		}
	}
	return Line{}, false
}

// dropIns lists NAME.conf of several directories, sorted by name and not by directory.
func dropIns(root fs.FS, dirs []string) []string { return named(root, dirs, ".conf") }

// named lists the files of several directories whose names end in one way, likewise.
func named(root fs.FS, dirs []string, ending string) []string {
	byName := make(map[string]string)
	for _, dir := range dirs {
		entries, err := fs.ReadDir(root, dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if _, hidden := byName[e.Name()]; !hidden && strings.HasSuffix(e.Name(), ending) && !e.IsDir() {
				byName[e.Name()] = path.Join(dir, e.Name())
			}
		}
	}
	out := slices.Collect(maps.Values(byName))
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(path.Base(a), path.Base(b)) })
	return out
}

// lines calls f for each line of a file that is neither empty nor a comment, without the blanks
// around it.
//
// A line of more than 64 KiB ends the file: nothing that the user has written is that long.
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

// sysctls reads a file of sysctl.conf(5): KEY = VALUE, with a dash in front where a failure does
// not matter. A dash and a key without a value keeps the globs away from that key (sysctl.d(5)).
func (c *Config) sysctls(root fs.FS, file string) {
	lines(root, file, func(n int, text string) {
		c.assign(text, Line{File: "/" + file, Number: n, By: "sysctl"})
	})
}

func (c *Config) assign(text string, l Line) {
	key, value, assigned := strings.Cut(text, "=")
	key, dash := strings.CutPrefix(key, "-")
	key = strings.TrimSpace(key)
	id, err := knob.ParseID(knob.KindSysctl + ":" + key)
	if err != nil {
		return
	}
	if !assigned {
		c.except[id] = c.except[id] || dash
		return
	}
	l.Value = knob.Value(strings.Join(strings.Fields(value), " "))
	if strings.Contains(key, "*") {
		c.globs = append(c.globs, glob{id, l})
		return
	}
	c.exact[id] = l
}

// options reads a file of modprobe.d(5): options MODULE NAME=VALUE…
func (c *Config) options(root fs.FS, file string) {
	lines(root, file, func(n int, text string) {
		words := strings.Fields(text)
		if len(words) < 3 || words[0] != "options" {
			return
		}
		for _, w := range words[2:] {
			parameter, value, ok := strings.Cut(w, "=")
			id, err := knob.ParseID(knob.KindModule + ":" + words[1] + "/" + parameter)
			if ok && err == nil {
				c.exact[id] = Line{File: "/" + file, Number: n, Value: knob.Value(strings.Trim(value, `"`)),
					By: "modprobe"}
			}
		}
	})
}

// tunedDirs hold profiles; the administrator's first, the new place of each before the old one
// (TuneD 2.23 made profiles/).
var tunedDirs = []string{"etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"}

// tuned reads the sysctls of the active profiles and reports whether there are any. active_profile
// holds their names separated by blanks; the later one wins.
func (c *Config) tuned(root fs.FS) bool {
	active, err := fs.ReadFile(root, "etc/tuned/active_profile")
	names := strings.Fields(string(active))
	if err != nil || len(names) == 0 {
		return false
	}
	for _, name := range names {
		c.profile(root, name, make(map[string]bool))
	}
	return true
}

// profile reads one profile and before it those that it includes, each once: two may include each
// other by mistake.
func (c *Config) profile(root fs.FS, name string, seen map[string]bool) {
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
			text string
			line Line
		}
		var own []assignment
		lines(root, file, func(n int, text string) {
			switch key, value, _ := strings.Cut(text, "="); {
			case text[0] == '[':
				section = strings.Trim(text, "[]")
			case section == "main" && strings.TrimSpace(key) == "include":
				for _, included := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }) {
					c.profile(root, included, seen)
				}
			// A value with a variable of TuneD is not known here.
			case section == "sysctl" && !strings.Contains(value, "$"):
				own = append(own, assignment{text, Line{File: "/" + file, Number: n, By: "tuned"}})
			}
		})
		for _, a := range own {
			c.assign(a.text, a.line)
		}
		return
	}
}
