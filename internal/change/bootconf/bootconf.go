package bootconf

import (
	"bufio"
	"cmp"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/knob"
)

// Line is a line of a configuration file that sets a knob when the host starts.
type Line struct {
	File   string     `json:"file"` // absolute path on its host
	Number int        `json:"line"` // counted from 1
	Value  knob.Value `json:"value"`
	// The reader of the file: sysctl, tuned, modprobe, systemd-udevd, udev, NetworkManager,
	// systemd-networkd, ifupdown.
	By string `json:"by"`
}

// Config is the settings that the configuration of a host applies at its start.
type Config struct {
	exact  map[knob.ID]Line
	globs  []glob           // in the order of application
	except map[knob.ID]bool // globs do not apply to these
}

// glob is a line for several knobs: net.ipv4.conf.*.rp_filter = 1.
type glob struct {
	pattern knob.ID
	line    Line
}

// sysctlDirs are searched in this order: a file hides files of the same name in later directories
// (sysctl.d(5)).
var sysctlDirs = []string{"etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"}

// modprobeDirs are searched in the same way (modprobe.d(5)).
var modprobeDirs = []string{"etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d",
	"lib/modprobe.d"}

// Read reads the configuration below the root directory of a host, and the files that configure the
// given interfaces. It skips missing and unreadable files.
//
// Later files win: they are sorted by name and not by directory, so that 99-x of the vendor
// overrides 10-y of the administrator, with /etc/sysctl.conf last, as in sysctl --system.
// (systemd-sysctl reads that one only through a link in /etc/sysctl.d, as on Debian and Red Hat.)
// TuneD comes after them and then by default applies those of /etc and /run again (reapply_sysctl
// of tuned-main.conf(5)): it overrides the vendor but not the administrator.
//
// An interface gets its settings first from udev (.link files, then rules), then from TuneD, and
// last from the program that brings it up.
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

// Line returns the line that decides the value of a knob. A line with its full name overrides one
// with a star, in any file (sysctl.d(5)).
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

// dropIns returns NAME.conf of several directories, sorted by name and not by directory.
func dropIns(root fs.FS, dirs []string) []string { return named(root, dirs, ".conf") }

// named returns the files of several directories with a given suffix, in the same order.
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
	sorting.Func(out, func(a, b string) int { return cmp.Compare(path.Base(a), path.Base(b)) })
	return out
}

// lines calls f for each line of a file that is neither empty nor a comment, without surrounding
// blanks.
//
// A line of more than 64 KiB ends the file: no hand-written line is that long.
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

// sysctls reads a file of sysctl.conf(5): KEY = VALUE, with a leading dash where a failure is
// ignored. A dash and a key without a value exclude that key from the globs (sysctl.d(5)).
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

// ModuleOptions returns the parameters with which modprobe loads a module: those of modprobe.d(5),
// then those of the kernel's command line, MODULE.NAME=VALUE.
func ModuleOptions(root fs.FS, module string) map[string]string {
	c := &Config{exact: make(map[knob.ID]Line)}
	for _, file := range dropIns(root, modprobeDirs) {
		c.options(root, file)
	}
	found := map[string]string{}
	for id, line := range c.exact {
		if id.Subject() == module {
			found[id.Attribute()] = string(line.Value)
		}
	}
	words, _ := fs.ReadFile(root, "proc/cmdline") // not mounted: no parameters from there
	for _, word := range strings.Fields(string(words)) {
		name, value, assigned := strings.Cut(word, "=")
		owner, parameter, dotted := strings.Cut(name, ".")
		if assigned && dotted && strings.ReplaceAll(owner, "-", "_") == module {
			found[parameter] = strings.Trim(value, `"`)
		}
	}
	return found
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

// tuned reads the sysctls of the active profiles and reports whether any are active. active_profile
// holds their names separated by blanks; the later one wins.
func (c *Config) tuned(root fs.FS) bool {
	active, err := fs.ReadFile(root, "etc/tuned/active_profile")
	names := strings.Fields(string(active))
	if err != nil || len(names) == 0 {
		return false
	}
	for _, name := range names {
		files, _ := ProfileFiles(root, name)
		for _, file := range files {
			c.tunedSysctl(root, file)
		}
	}
	return true
}

// tunedSysctl reads the sysctls of one profile.
func (c *Config) tunedSysctl(root fs.FS, file string) {
	section := ""
	lines(root, file, func(n int, text string) {
		if text[0] == '[' {
			section = strings.Trim(text, "[]")
			return
		}
		// The value of a TuneD variable is unknown here.
		if _, value, _ := strings.Cut(text, "="); section == "sysctl" && !strings.Contains(value, "$") {
			c.assign(text, Line{File: "/" + file, Number: n, By: "tuned"})
		}
	})
}
