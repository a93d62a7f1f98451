package bootconf

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// set records a line about a knob of an interface.
func (c *Config) set(id knob.ID, v knob.Value, file string, number int, by string) {
	c.exact[id] = Line{File: "/" + file, Number: number, Value: v, By: by}
}

// networkd reads the MTU of the .network file of an interface: the first one by name that matches.
func (c *Config) networkd(root fs.FS, d Device) {
	for _, file := range named(root, networkDirs, ".network") {
		sections := ini(root, file)
		var matches []setting
		for _, s := range sections {
			if s.name == "Match" {
				matches = append(matches, s.settings...)
			}
		}
		// A file whose [Match] tests the type of interface, or is missing, does not apply to this
		// one.
		if fits, sure, _ := d.match(matches); len(matches) == 0 || !fits || !sure {
			continue
		}
		id := knob.ID("link:" + d.Name + "/mtu")
		key, _ := LinkKeyOf(id)
		for _, s := range sections {
			for _, x := range s.settings {
				if v, ok := key.Value(x.value); ok && s.name == "Link" && x.key == key.Name {
					c.set(id, v, file, x.line, "systemd-networkd")
				}
			}
		}
		return
	}
}

// nmFeatures are NetworkManager's names for offloads where they differ from the kernel's.
var nmFeatures = map[string]string{
	"gro": "rx-gro", "gso": "tx-generic-segmentation", "lro": "rx-lro", "ntuple": "rx-ntuple-filter",
	"rx": "rx-checksum", "rxhash": "rx-hashing",
	"rxvlan": "rx-vlan-hw-parse", "sg": "tx-scatter-gather", "tso": "tx-tcp-segmentation",
	"txvlan": "tx-vlan-hw-insert",
}

// nmFiles are the files of NetworkManager.conf(5), the deciding one last.
func nmFiles(root fs.FS) []string {
	return slices.Concat(named(root, []string{"run/NetworkManager/conf.d", "usr/lib/NetworkManager/conf.d"}, ".conf"),
		[]string{"etc/NetworkManager/NetworkManager.conf"}, named(root, []string{"etc/NetworkManager/conf.d"}, ".conf"))
}

// NetworkManagerSpares reports whether NetworkManager leaves an interface to ifupdown: its ifupdown
// plugin, which Debian enables by default, ignores interfaces in /etc/network/interfaces unless it
// is configured to manage those as well.
func NetworkManagerSpares(root fs.FS, name string) bool {
	plugins, managed := "ifupdown,keyfile", false
	for _, file := range nmFiles(root) {
		for _, s := range ini(root, file) {
			for _, x := range s.settings {
				switch {
				case s.name == "main" && x.key == "plugins":
					plugins = x.value
				case s.name == "ifupdown" && x.key == "managed":
					managed = slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(x.value))
				}
			}
		}
	}
	return !managed && slices.Contains(strings.FieldsFunc(plugins,
		func(r rune) bool { return r == ',' || r == ';' || r == ' ' }), "ifupdown") &&
		Ifupdown(root, name)
}

// networkManager reads the defaults for connections in its configuration, and then the connections,
// which override them. It does so only where the program is installed and does not leave the
// interface to ifupdown.
func (c *Config) networkManager(root fs.FS, d Device) {
	if !anyFile(root, "usr/sbin/NetworkManager", "usr/bin/NetworkManager", "sbin/NetworkManager") ||
		NetworkManagerSpares(root, d.Name) {
		return
	}
	const by = "NetworkManager"
	mtu := knob.ID("link:" + d.Name + "/mtu")
	for _, file := range nmFiles(root) {
		for _, s := range ini(root, file) {
			if !strings.HasPrefix(s.name, "connection") || !d.nmMatches(s.get("match-device")) {
				continue
			}
			for _, x := range s.settings {
				if x.key == "ethernet.mtu" && x.value != "0" {
					c.set(mtu, knob.Value(x.value), file, x.line, by)
				}
			}
		}
	}
	dirs := []string{"usr/lib/NetworkManager/system-connections", "run/NetworkManager/system-connections",
		"etc/NetworkManager/system-connections"}
	for _, file := range named(root, dirs, "") {
		sections := ini(root, file)
		if !d.nmConnection(sections) {
			continue
		}
		for _, s := range sections {
			for _, x := range s.settings {
				switch {
				case (s.name == "ethernet" || s.name == "802-3-ethernet") && x.key == "mtu" && x.value != "0":
					c.set(mtu, knob.Value(x.value), file, x.line, by)
				case s.name == "ethtool":
					group, attribute, _ := strings.Cut(x.key, "-")
					if full, ok := nmFeatures[attribute]; ok && group == "feature" {
						attribute = full
					}
					v := x.value
					if w, ok := map[string]string{"true": "on", "false": "off"}[v]; ok {
						v = w
					}
					if id, err := knob.ParseID("ethtool:" + d.Name + "/" + group + "." + attribute); err == nil {
						c.set(id, knob.Value(v), file, x.line, by)
					}
				}
			}
		}
	}
}

// nmMatches reads a match-device of NetworkManager.conf(5). An unknown condition may match this
// interface too.
func (d Device) nmMatches(list string) bool {
	if list == "" {
		return true
	}
	for _, spec := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ';' }) {
		kind, value, ok := strings.Cut(strings.TrimSpace(spec), ":")
		known := map[string]string{"interface-name": d.Name, "mac": cmp.Or(d.Permanent, d.Address)}[kind]
		if !ok || known == "" || anyGlob(strings.TrimPrefix(strings.ToLower(value), "="), strings.ToLower(known)) {
			return true
		}
	}
	return false
}

// nmConnection reports whether a connection may be that of an interface: it names it, or names
// none.
func (d Device) nmConnection(sections []section) bool {
	ethernet := false
	for _, s := range sections {
		switch s.name {
		case "connection":
			if name := s.get("interface-name"); name != "" {
				return name == d.Name
			}
			kind := s.get("type")
			ethernet = ethernet || kind == "ethernet" || kind == "802-3-ethernet"
		case "ethernet", "802-3-ethernet":
			if mac := strings.ToLower(s.get("mac-address")); mac != "" && mac != d.Permanent && mac != d.Address {
				return false
			}
		}
	}
	return ethernet
}

// ifupdown reads interfaces(5): the MTU of a stanza and the commands in it.
func (c *Config) ifupdown(root fs.FS, d Device) {
	for _, file := range interfaceFiles(root) {
		current := ""
		lines(root, file, func(n int, text string) {
			words := strings.Fields(text)
			switch words[0] {
			case "iface", "auto", "allow-hotplug", "allow-auto", "mapping", "source", "source-directory",
				"no-auto-down", "no-scripts", "template", "rename":
				current = ""
				if words[0] == "iface" && len(words) > 1 {
					current = words[1]
				}
				return
			}
			if current != d.Name || len(words) < 2 {
				return
			}
			switch words[0] {
			case "mtu":
				c.set(knob.ID("link:"+d.Name+"/mtu"), knob.Value(words[1]), file, n, "ifupdown")
			case "pre-up", "up", "post-up":
				for id, v := range command(strings.ReplaceAll(strings.Join(words[1:], " "), "$IFACE", d.Name), d) {
					c.set(id, v, file, n, "ifupdown")
				}
			}
		})
	}
	c.hooks(root, d, "etc/network/if-up.d", "ifupdown")
	if anyFile(root, "usr/sbin/NetworkManager", "usr/bin/NetworkManager", "sbin/NetworkManager") {
		c.hooks(root, d, "etc/NetworkManager/dispatcher.d", "NetworkManager")
	}
}

// hookMark begins the line by which our scripts state their change. Other scripts cannot be read.
const hookMark = "# linerate change "

// hooks reads our scripts that run when an interface comes up.
func (c *Config) hooks(root fs.FS, d Device, dir, by string) {
	for _, file := range named(root, []string{dir}, "") {
		b, err := fs.ReadFile(root, file)
		if err != nil || !strings.Contains(string(b), "\n"+hookMark) {
			continue
		}
		lines(root, file, func(n int, text string) {
			for id, v := range command(text, d) {
				c.set(id, v, file, n, by)
			}
		})
	}
}

// Ifupdown reports whether ifupdown brings an interface up.
func Ifupdown(root fs.FS, name string) bool {
	found := false
	for _, file := range interfaceFiles(root) {
		lines(root, file, func(_ int, text string) {
			words := strings.Fields(text)
			found = found || len(words) > 1 && words[0] == "iface" && words[1] == name
		})
	}
	return found && anyFile(root, "sbin/ifup", "usr/sbin/ifup")
}

// interfaceFiles returns /etc/network/interfaces and the files that it includes.
func interfaceFiles(root fs.FS) []string {
	const first = "etc/network/interfaces"
	files := []string{first}
	lines(root, first, func(_ int, text string) {
		words := strings.Fields(text)
		if len(words) < 2 {
			return
		}
		pattern := words[1]
		if !strings.HasPrefix(pattern, "/") {
			pattern = "/etc/network/" + pattern
		}
		if words[0] == "source-directory" {
			pattern += "/*"
		}
		if words[0] == "source" || words[0] == "source-directory" {
			more, err := fs.Glob(root, strings.TrimPrefix(path.Clean(pattern), "/"))
			if err == nil {
				files = append(files, more...)
			}
		}
	})
	return files
}

// tunedNet reads what the active profiles of TuneD set on NICs ([net] sections).
func (c *Config) tunedNet(root fs.FS, d Device) {
	active, err := fs.ReadFile(root, "etc/tuned/active_profile")
	if err != nil {
		return
	}
	for _, name := range strings.Fields(string(active)) {
		for _, dir := range tunedDirs {
			file := path.Join(dir, name, "tuned.conf")
			if !fs.ValidPath(file) || !anyFile(root, file) {
				continue
			}
			for _, s := range ini(root, file) {
				if s.name != "net" && s.get("type") != "net" {
					continue
				}
				if devices := s.get("devices"); devices != "" && devices != "*" &&
					!anyGlob(strings.ReplaceAll(devices, ",", " "), d.Name) {
					continue
				}
				for _, x := range s.settings {
					c.tunedSetting(d, x, file)
				}
			}
			break
		}
	}
}

// tunedSetting reads one setting of a [net] section: a number, or words of ethtool(8) in pairs.
func (c *Config) tunedSetting(d Device, x setting, file string) {
	groups := map[string]string{"features": "feature.", "coalesce": "coalesce.", "ring": "ring.",
		"channels": "channels.", "pause": "pause."}
	if x.key == "mtu" || x.key == "txqueuelen" {
		c.set(knob.ID("link:"+d.Name+"/"+x.key), knob.Value(x.value), file, x.line, "tuned")
		return
	}
	words := strings.Fields(x.value)
	for i := 0; i+1 < len(words); i += 2 {
		if id, err := knob.ParseID("ethtool:" + d.Name + "/" + groups[x.key] + words[i]); err == nil &&
			groups[x.key] != "" {
			c.set(id, knob.Value(words[i+1]), file, x.line, "tuned")
		}
	}
}

func anyFile(root fs.FS, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		info, err := fs.Stat(root, name)
		return err == nil && !info.IsDir()
	})
}
