package export

import (
	"fmt"
	"slices"
	"strings"
)

// tunedFeatures are the features that TuneD finds in the output of ethtool, by its own names. It
// looks for names at the start of a line, and so misses features that ethtool shows within a group.
var tunedFeatures = map[string]string{
	"tx-generic-segmentation": "gso", "rx-gro": "gro", "rx-lro": "lro", "rx-checksum": "rx",
	"tx-vlan-hw-insert": "txvlan", "rx-vlan-hw-parse": "rxvlan", "rx-ntuple-filter": "ntuple", "rx-hashing": "rxhash",
}

// tuned writes the directory of a profile: tuned.conf, and a script for the settings that TuneD
// cannot express.
//
// TuneD 2.20 expands variables in values and never in names, and treats a leading "<" or ">" of a
// value as a comparison; settings that this would alter go to the script.
func (d *draft) tuned() []File {
	var sysctls, modules strings.Builder
	var rest, kept []setting
	options := map[string]map[string][]string{} // by variable of the interface and option of the plug-in net
	for _, s := range d.settings {
		option, word := s.tunedNet(d.driver(s))
		switch {
		case s.way.kind == wayKernel:
			d.leave(s.Change, "it holds when the kernel starts",
				s.way.bootParameter(s.To)+" on the kernel's command line")
			continue
		case s.way.kind == wayModule:
			// TuneD keeps one line for a module.
			fmt.Fprintf(&modules, "%s=%s=%s\n", s.way.args[0].before, s.way.args[1].before, s.To)
		case s.way.kind == waySysctl && !s.way.bound() && tunedValue(string(s.To)) &&
			!strings.Contains(s.way.args[0].before, "."):
			fmt.Fprintf(&sysctls, "%s=%s\n", dotted(s.way.args[0].before), s.To)
		case option != "" && tunedValue(string(s.To)):
			v := s.way.args[0].variable
			if options[v] == nil {
				options[v] = map[string][]string{}
			}
			options[v][option] = append(options[v][option], word)
		default:
			rest = append(rest, s)
		}
		kept = append(kept, s)
	}
	d.settings = kept

	var b strings.Builder
	b.WriteString(d.header("Settings for other hosts, a TuneD profile"))
	b.WriteString("#\n# Copy this directory, as linerate-export, into /etc/tuned/profiles, or into /etc/tuned where " +
		"that is not there; then:\n# tuned-adm profile linerate-export\n" +
		"# With reapply_sysctl=1 in tuned-main.conf, the default, files of /etc/sysctl.d win over this profile.\n")
	b.WriteString("[main]\nsummary=Settings exported by linerate on another host\n")
	if len(d.interfaces) > 0 {
		b.WriteString("\n[variables]\n")
	}
	for _, i := range d.interfaces {
		fmt.Fprintf(&b, "%s=%s\n", i.Variable, i.Name)
	}
	part := func(name, lines string) {
		if lines != "" {
			b.WriteString("\n[" + name + "]\n" + lines)
		}
	}
	part("sysctl", sysctls.String())
	for _, i := range d.interfaces {
		var lines strings.Builder
		for _, option := range []string{"mtu", "txqueuelen", "channels", "ring", "pause", "coalesce", "features"} {
			if words := options[i.Variable][option]; len(words) > 0 {
				fmt.Fprintf(&lines, "%s=%s\n", option, strings.Join(words, " "))
			}
		}
		if lines.Len() > 0 {
			fmt.Fprintf(&b, "\n[net_%s]\ntype=net\ndynamic=0\ndevices=${%s}\n%s", i.Variable, i.Variable,
				lines.String())
		}
	}
	part("modules", joinModules(modules.String()))
	if len(rest) == 0 {
		return []File{{Name: "tuned.conf", Mode: "0644", Content: b.String()}}
	}
	b.WriteString("\n[script]\nscript=${i:PROFILE_DIR}/linerate-export.sh\n")
	return []File{
		{Name: "tuned.conf", Mode: "0644", Content: b.String()},
		{Name: "linerate-export.sh", Mode: "0755", Content: d.script(rest)},
	}
}

// tunedNet returns the option of TuneD's plug-in net for a setting, and its value there; "" if the
// plug-in cannot express it.
//
// TuneD silently skips every interface that is not a device of a bus.
func (s setting) tunedNet(driver string) (option, word string) {
	if len(s.way.args) < 2 || s.way.args[0].link == "" || !only(s.way.args[0].link, "_.-") || !card(driver) {
		return "", ""
	}
	key := s.way.args[1].before
	pair := key + " " + string(s.To)
	switch s.way.kind {
	case wayRing:
		return "ring", pair
	case wayChannel:
		return "channels", pair
	case wayPause:
		return "pause", pair
	case wayFeature:
		if short, ok := tunedFeatures[key]; ok {
			return "features", short + " " + string(s.To)
		}
	case wayLink:
		if key == "mtu" || key == "txqueuelen" {
			return key, string(s.To)
		}
	}
	return "", ""
}

// driver returns the driver of the interface of a setting, if known.
func (d *draft) driver(s setting) string {
	if len(s.way.args) == 0 {
		return ""
	}
	return d.set.Origin.Drivers[s.way.args[0].link]
}

// software are drivers of interfaces without hardware, as ethtool reports them.
var software = []string{"", "802.1Q VLAN Support", "8021q", "bonding", "bridge", "dummy", "ipvlan", "macvlan",
	"openvswitch", "team", "tun", "veth", "vxlan", "wireguard"}

// card reports whether a driver is that of a device on a bus.
func card(driver string) bool { return !slices.Contains(software, driver) }

// tunedValue reports whether TuneD accepts a value unchanged.
func tunedValue(s string) bool { return s != "" && only(s, " _.-+,:/") && strings.TrimSpace(s) == s }

// joinModules joins several lines for one module.
func joinModules(lines string) string {
	var names []string
	options := map[string][]string{}
	for line := range strings.Lines(lines) {
		name, option, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		options[name] = append(options[name], option)
	}
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + "=" + strings.Join(options[name], " ") + "\n")
	}
	return b.String()
}
