package bootconf

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// networkDirs hold .link and .network files, searched in this order (systemd.link(5)).
var networkDirs = []string{"etc/systemd/network", "run/systemd/network", "usr/local/lib/systemd/network",
	"usr/lib/systemd/network", "lib/systemd/network"}

// Link is the .link file that systemd-udevd applies to an interface: only the first one by name
// that matches.
type Link struct {
	File string // absolute on its host
	// Own reports that the file matches only this interface, so that an addition to it affects no
	// other.
	Own bool
	// Settings is the [Link] section, followed by those of drop-ins, one setting per line.
	Settings string
	// Doubtful are files that come first and may match: their [Match] has conditions unknown here.
	Doubtful []string
}

// section is one section of an ini file; a name may appear several times.
type section struct {
	name     string
	settings []setting
}

type setting struct {
	key, value string
	line       int
}

// get returns the last value of a key.
func (s section) get(key string) string {
	value := ""
	for _, x := range s.settings {
		if x.key == key {
			value = x.value
		}
	}
	return value
}

// ini reads a file of sections and settings, the format of systemd, NetworkManager and TuneD.
func ini(root fs.FS, file string) []section {
	var sections []section
	lines(root, file, func(n int, text string) {
		if text[0] == '[' {
			sections = append(sections, section{name: strings.Trim(text, "[]")})
			return
		}
		key, value, ok := strings.Cut(text, "=")
		if !ok || len(sections) == 0 {
			return
		}
		last := &sections[len(sections)-1]
		last.settings = append(last.settings, setting{strings.TrimSpace(key), strings.TrimSpace(value), n})
	})
	return sections
}

// LinkOf returns the .link file of an interface, or false.
func LinkOf(root fs.FS, d Device) (Link, bool) {
	link, _, ok := linkOf(root, d)
	return link, ok
}

// linkOf also returns the files that compose it, the main one first.
func linkOf(root fs.FS, d Device) (Link, []string, bool) {
	var doubtful []string
	for _, file := range named(root, networkDirs, ".link") {
		// An empty file, or a link to /dev/null, hides one of the same name.
		if b, err := fs.ReadFile(root, file); err != nil || len(bytes.TrimSpace(b)) == 0 {
			continue
		}
		files := append([]string{file}, linkDropIns(root, path.Base(file))...)
		var matches, links []setting
		for _, f := range files {
			for _, s := range ini(root, f) {
				switch s.name {
				case "Match":
					matches = append(matches, s.settings...)
				case "Link":
					links = append(links, s.settings...)
				}
			}
		}
		fits, sure, own := d.match(matches)
		if fits && !sure {
			doubtful = append(doubtful, "/"+file)
		}
		if !fits || !sure {
			continue
		}
		var b strings.Builder
		for _, s := range links {
			b.WriteString(s.key + "=" + s.value + "\n")
		}
		return Link{File: "/" + file, Own: own, Settings: b.String(), Doubtful: doubtful}, files, true
	}
	return Link{Doubtful: doubtful}, nil, false
}

// linkDropIns returns the drop-ins of a file name.
func linkDropIns(root fs.FS, name string) []string {
	var dirs []string
	for _, dir := range networkDirs {
		dirs = append(dirs, path.Join(dir, name+".d"))
	}
	return named(root, dirs, ".conf")
}

// match compares an interface with a [Match] section. Unsure: it has a condition unknown here. Own:
// it can match no other interface.
func (d Device) match(settings []setting) (fits, sure, own bool) {
	fits, sure = true, true
	for _, s := range settings {
		known, value, exact := "", strings.ToLower(s.value), false
		switch s.key {
		case "MACAddress":
			known, value, exact = d.Address, strings.ReplaceAll(value, "-", ":"), true
		case "PermanentMACAddress":
			known, value, exact = d.Permanent, strings.ReplaceAll(value, "-", ":"), true
		case "Path":
			known, exact = d.Path, true
		case "Driver":
			known = d.Driver
		case "OriginalName", "Name":
			known, exact = d.Name, true
			// The kernel's original name of a NIC is lost when it is renamed.
			if s.key == "OriginalName" && d.Permanent+d.Path != "" && !anyGlob(value, strings.ToLower(d.Name)) {
				sure = false
				continue
			}
		}
		if known == "" {
			if s.value != "*" {
				sure = false
			}
			continue
		}
		if !anyGlob(value, strings.ToLower(known)) {
			return false, true, false
		}
		own = own || exact && !strings.ContainsAny(value, "*?[ !")
	}
	return fits, sure, own && sure
}

// anyGlob reports whether a name matches one of several patterns; a list with a leading ! matches
// names that match none of them.
func anyGlob(list, name string) bool {
	list, not := strings.CutPrefix(list, "!")
	for _, pattern := range strings.Fields(list) {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return !not
		}
	}
	return not
}

// links reads what .link files set on interfaces.
func (c *Config) links(root fs.FS, d Device) {
	_, files, ok := linkOf(root, d)
	if !ok {
		return
	}
	byKey := map[string]knob.ID{}
	for name := range linkKeys {
		kind, attribute, _ := strings.Cut(name, "/")
		byKey[linkKeys[name].Name] = knob.ID(kind + ":" + d.Name + "/" + attribute)
	}
	for _, file := range files {
		for _, s := range ini(root, file) {
			if s.name != "Link" {
				continue
			}
			for _, x := range s.settings {
				id, known := byKey[x.key]
				if !known {
					continue
				}
				key, _ := LinkKeyOf(id)
				if v, ok := key.Value(x.value); ok {
					c.exact[id] = Line{File: "/" + file, Number: x.line, Value: v, By: "systemd-udevd"}
				}
			}
		}
	}
}
