package owner

import (
	"fmt"
	"slices"
	"strings"
)

// claim describes what a running program writes again on its own, by names of knobs in which *
// matches any text.
type claim struct {
	knobs []string
	when  string // a clause: when it writes
}

// mtu is written by every program that configures addresses: a lease, an advertisement or a file
// may carry an MTU.
var mtu = []string{"link:*/mtu"}

// claims lists the running programs whose knobs are known beforehand; those of TuneD depend on its
// profile and are in Owner.Sets.
//
// A program that only writes at boot has no claim: it matters when a change is persisted, and a
// trial ends long before the next boot.
var claims = map[string]claim{
	"irqbalance": {[]string{"irq:*/affinity"}, "redistributes interrupts every ten seconds"},
	"power-profiles-daemon": {[]string{"cpu:*/scaling_governor", "cpu:*/energy_performance_preference"},
		"sets it with each power profile"},
	"bpftune": {[]string{
		"sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_wmem", "sysctl:net.ipv4.tcp_mem",
		"sysctl:net.ipv4.tcp_moderate_rcvbuf", "sysctl:net.ipv4.tcp_no_metrics_save",
		"sysctl:net.ipv4.tcp_no_ssthresh_metrics_save", "sysctl:net.ipv4.tcp_syncookies",
		"sysctl:net.ipv4.tcp_max_syn_backlog", "sysctl:net.ipv4.tcp_max_orphans",
		"sysctl:net.ipv4.udp_mem", "sysctl:net.ipv*.neigh.*.gc_thresh*", "sysctl:net.ipv4.ipfrag_high_thresh",
		"sysctl:net.core.netdev_max_backlog",
		"sysctl:net.core.netdev_budget*", "sysctl:net.core.flow_limit_cpu_bitmap",
		"sysctl:net.core.high_order_alloc_disable", "sysctl:net.core.rmem_*",
	}, "changes it whenever it detects that a limit is near"},
	"NetworkManager":   {mtu, "sets it whenever a connection comes up"},
	"systemd-networkd": {mtu, "sets it whenever the link comes up"},
	"wicked":           {mtu, "sets it whenever the link comes up"},
	"dhcpcd":           {mtu, "sets it with each lease"},
	"dhclient":         {mtu, "sets it with each lease"},
}

// Reapplies returns a clause, with the program's name, that says when the program writes this knob
// again; empty if it does not. knob is the full name: sysctl:net.ipv4.tcp_rmem, link:eth0/mtu.
func (o Owner) Reapplies(knob string) string {
	fits := func(pattern string) bool { return glob(pattern, knob) }
	if slices.ContainsFunc(o.Sets, fits) {
		return fmt.Sprintf("%s sets it with its profile %s", o.Name, o.Profile)
	}
	if c, ok := claims[o.Name]; ok && o.Running && slices.ContainsFunc(c.knobs, fits) {
		return o.Name + " " + c.when
	}
	return ""
}

// glob reports whether s matches the pattern, in which * matches any text, also an empty one.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(s, first) || len(s) < len(first)+len(last) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		at := strings.Index(s, p)
		if at < 0 {
			return false
		}
		s = s[at+len(p):]
	}
	return true
}

// tunedDirs hold the profiles of TuneD: the administrator's first, and each new directory before
// the old one (2.23 introduced profiles/).
var tunedDirs = [...]string{"etc/tuned/profiles/", "etc/tuned/", "usr/lib/tuned/profiles/", "usr/lib/tuned/"}

// tunedSets returns the sorted names of the knobs that profiles of TuneD write, including those of
// included profiles. names are separated by blanks, as in the file of the active profile.
func tunedSets(t Tree, names string) []string {
	var sets []string
	seen := map[string]bool{}
	var read func(name string)
	read = func(name string) {
		if seen[name] || strings.Contains(name, "/") {
			return
		}
		seen[name] = true
		for _, dir := range tunedDirs {
			text := t.Text(dir + name + "/tuned.conf")
			if text == "" {
				continue
			}
			sets = append(sets, profileSets(text, read)...)
			return
		}
	}
	for _, name := range strings.Fields(names) {
		read(name)
	}
	slices.Sort(sets)
	return slices.Compact(sets)
}

// plugins maps the options of TuneD's plugins to knobs. A section has the name of its plugin, or
// names the plugin with type=.
var plugins = map[string]map[string]string{
	"net": {"mtu": "link:*/mtu", "txqueuelen": "link:*/txqueuelen", "coalesce": "ethtool:*/coalesce.*",
		"features": "ethtool:*/feature.*", "pause": "ethtool:*/pause.*",
		"ring": "ethtool:*/ring.*", "channels": "ethtool:*/channels.*"},
	"cpu": {"governor": "cpu:*/scaling_governor",
		"energy_performance_preference": "cpu:*/energy_performance_preference", "force_latency": "cpu:*/dma_latency"},
}

// profileSets returns the knobs of one profile; it calls include for each profile that this one
// includes.
func profileSets(text string, include func(name string)) []string {
	var sets []string
	section, plugin := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			section = strings.Trim(line, "[]")
			plugin = section
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case section == "main" && key == "include":
			for _, name := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }) {
				include(name)
			}
		case key == "type":
			plugin = value
		case plugin == "sysctl":
			sets = append(sets, "sysctl:"+strings.ReplaceAll(key, "/", "."))
		case plugins[plugin][key] != "":
			sets = append(sets, plugins[plugin][key])
		}
	}
	return sets
}
