package owner

import (
	"fmt"
	"slices"
	"strings"
)

// claim is what a running program writes again by itself, by the names of knobs in which * stands
// for anything.
type claim struct {
	knobs []string
	when  string // a clause: when it writes
}

// mtu is written by everything that configures addresses: a lease, an advertisement or a file holds
// one.
var mtu = []string{"link:*/mtu"}

// claims are those of running programs whose knobs are known beforehand; those of TuneD depend on
// its profile and are in Owner.Sets.
//
// A program that only writes at boot makes none: what it will overwrite is a question of persisting
// a change, and a trial is over long before.
var claims = map[string]claim{
	"irqbalance": {[]string{"irq:*/affinity"}, "spreads interrupts anew every ten seconds"},
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
	}, "changes it whenever it sees a limit near"},
	"NetworkManager":   {mtu, "sets it whenever a connection comes up"},
	"systemd-networkd": {mtu, "sets it whenever the link comes up"},
	"wicked":           {mtu, "sets it whenever the link comes up"},
	"dhcpcd":           {mtu, "sets it with each lease"},
	"dhclient":         {mtu, "sets it with each lease"},
}

// Reapplies says in a clause, with the program's name, that it writes this knob again by itself;
// empty: it does not. knob is its full name: sysctl:net.ipv4.tcp_rmem, link:eth0/mtu.
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

// glob is a match in which * stands for any text, also for none.
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

// tunedDirs hold the profiles of TuneD: the administrator's first, and the new place of each before
// the old one (2.23 made profiles/).
var tunedDirs = [...]string{"etc/tuned/profiles/", "etc/tuned/", "usr/lib/tuned/profiles/", "usr/lib/tuned/"}

// tunedSets are the knobs that profiles of TuneD write, with those that they include, sorted. names
// are parted by blanks, as in its file of the active profile.
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

// plugins are the options of TuneD's plugins that are knobs of ours. A section is called like its
// plugin, or says by type= which it is.
var plugins = map[string]map[string]string{
	"net": {"mtu": "link:*/mtu", "txqueuelen": "link:*/txqueuelen", "coalesce": "ethtool:*/coalesce.*",
		"features": "ethtool:*/feature.*", "pause": "ethtool:*/pause.*",
		"ring": "ethtool:*/ring.*", "channels": "ethtool:*/channels.*"},
	"cpu": {"governor": "cpu:*/scaling_governor",
		"energy_performance_preference": "cpu:*/energy_performance_preference", "force_latency": "cpu:*/dma_latency"},
}

// profileSets are the knobs of one profile; include is called for those that it builds on.
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
