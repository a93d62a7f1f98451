package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// linuxTrees and freebsdTrees are the first parts of sysctl names, which distinguish the two
// systems. The trees share no first two parts except below vm, where Linux has the longer list
// here.
//
// Sources: Documentation/admin-guide/sysctl and Documentation/networking/ip-sysctl.rst; sysctl(8)
// of FreeBSD.
var (
	linuxTrees = []string{
		"net.core.", "net.ipv4.", "net.ipv6.", "net.netfilter.", "net.nf_conntrack", "net.bridge.", "net.unix.",
		"net.mptcp.", "net.sctp.",
		"kernel.", "fs.", "sunrpc.", "user.", "vm.swappiness", "vm.dirty_", "vm.min_free_kbytes", "vm.overcommit_",
		"vm.zone_reclaim_mode",
		"vm.max_map_count", "vm.vfs_cache_pressure", "vm.nr_", "vm.drop_caches", "vm.stat_interval", "vm.watermark_",
		"vm.page-cluster",
		"vm.oom_", "vm.panic_on_oom", "vm.compact", "vm.laptop_mode", "vm.hugetlb_", "vm.lowmem_", "vm.admin_reserve_",
		"vm.user_reserve_",
		"vm.percpu_", "vm.numa_", "vm.mmap_", "vm.block_dump", "vm.legacy_va_layout", "vm.memory_failure",
		"vm.extfrag", "vm.unprivileged_userfaultfd", "dev.raid.", "dev.cdrom.", "dev.tty.", "dev.hpet.", "dev.scsi.",
		"dev.mac_hid.", "dev.i915.", "dev.parport.", "abi.", "debug.exception-trace", "debug.kprobes-optimization",
		"net.nd.", "net.ipx.", "net.appletalk.", "net.token-ring.", "net.rds.", "net.smc.", "net.tipc.", "net.mpls.",
		"net.vrf.", "net.x25.", "net.ethernet.", "net.dccp.", "net.iw_cm.",
	}
	freebsdTrees = []string{
		"net.inet.", "net.inet6.", "net.isr.", "net.link.", "net.iflib.", "net.route.", "net.bpf.", "net.local.",
		"net.graph.", "net.pf.", "net.fibs", "net.add_addr_allfibs", "net.wlan.", "net.key.", "net.raw.", "net.pfsync.",
		"net.enc.", "net.pipex.",
		"kern.", "hw.", "dev.", "vm.", "vfs.", "security.", "machdep.", "debug.", "compat.", "hint.", "ddb.", "proc.",
		"iogpu.",
	}
)

// sysctlOS returns the system that a dotted name is a sysctl of; false for a name of neither.
func sysctlOS(name string) (OS, bool) {
	for _, p := range linuxTrees {
		if strings.HasPrefix(name, p) {
			return Linux, true
		}
	}
	for _, p := range freebsdTrees {
		if strings.HasPrefix(name, p) {
			return FreeBSD, true
		}
	}
	return "", false
}

// sysctl adds a sysctl by its name in either notation. FreeBSD's kernel settings at boot
// (loader.conf) have names of the same form.
func (r *reader) sysctl(name, value string) bool {
	name = strings.TrimPrefix(strings.TrimSpace(name), "-") // sysctl.d: carry on when it fails
	name = strings.TrimPrefix(strings.TrimPrefix(name, "/proc/sys/"), "sysctl.")
	if first := strings.IndexAny(name, "./"); first >= 0 && name[first] == '/' {
		// In the notation with slashes a dot belongs to the name of an interface.
		parts := strings.Split(name, "/")
		for i, p := range parts {
			parts[i] = strings.ReplaceAll(p, ".", "/")
		}
		name = strings.Join(parts, ".")
	}
	o, ok := sysctlOS(name)
	if !ok {
		return false
	}
	// A list that a program inserts at once (sed '/x/i \'): the next setting begins within the value.
	if at := nextSetting.FindStringSubmatchIndex(value); at != nil {
		r.sysctl(value[at[2]:at[3]], strings.TrimSpace(value[at[1]:]))
		value = strings.TrimSpace(value[:at[0]])
	}
	value = strings.TrimRight(value, "`")
	// An empty value is a template that the reader was to fill in.
	if value == "" {
		return false
	}
	if value == "{" || value == "[" || value == "(" { // the head of a block of Nix
		return true
	}
	r.add(o, "sysctl:"+name, value)
	return true
}

// nextSetting is the beginning of another setting within a value.
var nextSetting = pattern.New(`\s((?:net|kern|kernel|vm|fs)\.[\w.]+)\s*=\s*`)

// assignmentLine is NAME = VALUE, with or without a comment after it. sysctl.conf has no comments
// after a value, and the kernel refuses such a line; the author still means a comment
// (sysctl.d(5)).
var assignmentLine = pattern.New(`^(-?[A-Za-z_][\w./*%-]*)\s*\??=\s*("[^"]*"|'[^']*'|[^#]*)`)

// endOfString is the end of a text that echo writes into a file over several lines.
var endOfString = pattern.New(`["']\s*>>?\s*[/$~]\S*\s*$`)

// numberSaid is a number that a sentence goes on behind: net.ipv4.tcp_tw_reuse = 1 allows ….
var numberSaid = pattern.New(`^(\d+(?: \d+)*) [a-z]{2,}(?: [\w(-]+){3}`)

// numberRemarked is a number with a remark in parentheses.
var numberRemarked = pattern.New(`^(-?\d+(?:\s+\d+)*)\s+\(.*\)\.?$`)

// split takes a line of the form NAME = VALUE apart. Quotes around the whole value are
// loader.conf's, rc.conf's and TuneD's, and no part of it; quotes within it stay.
func split(text string) (name, value string, ok bool) {
	m := assignmentLine.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	value = strings.TrimSpace(endOfString.ReplaceAllString(m[2], ""))
	// Pages write the default behind the value, and prose may follow a setting: cut what no setting
	// has. A closing backquote or semicolon is of the page.
	if at := strings.Index(value, "(default"); at > 0 {
		value = strings.TrimSpace(value[:at])
	}
	if strings.Contains(m[1], ".") {
		value = strings.TrimRight(value, "`;,")
		if said := numberSaid.FindStringSubmatch(value); said != nil {
			value = said[1]
		} else if remarked := numberRemarked.FindStringSubmatch(value); remarked != nil {
			value = remarked[1]
		}
	}
	if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		value = value[1 : len(value)-1]
	}
	if inner, ok := strings.CutPrefix(value, `\"`); ok { // a string within a string
		value = strings.TrimSuffix(inner, `\"`)
	}
	return m[1], strings.TrimSpace(value), true
}

// assignment reads sysctl.conf, sysctl.d, loader.conf, rc.conf and the ifcfg files of Red Hat.
func (r *reader) assignment(text string) bool {
	name, value, ok := split(text)
	if !ok {
		return false
	}
	if r.sysctl(strings.TrimPrefix(name, "lxc.sysctl."), value) { // of a container of LXC
		return true
	}
	device, isInterface := strings.CutPrefix(name, "ifconfig_")
	switch {
	case isInterface: // rc.conf of FreeBSD
		r.interfaceWords(FreeBSD, device, strings.Fields(value))
	// The file's name, and with it the interface, is not in the text.
	case name == "MTU" && r.used["MTU"]: // a variable of a script
		return false
	case name == "MTU" || name == "MTUBytes" || name == "ethernet.mtu": // ifcfg-eth0, systemd.link, NetworkManager.conf
		r.add("", "link:*/mtu", value)
	case name == "match-device": // of NetworkManager.conf: which interfaces the lines below it are for
	case strings.HasPrefix(name, "ETHTOOL_OPT"): // ETHTOOL_OPTS of Red Hat, ETHTOOL_OPTIONS_x of SUSE
		for _, c := range splitCommands(value) {
			words := c.words
			if !strings.HasPrefix(words[0], "-") {
				words = append([]string{"-s", "*"}, words...) // the old form: arguments of -s alone
			} else if len(words) > 1 && words[1] == "iface" {
				words[1] = "*"
			}
			r.ethtool(command{words: append([]string{"ethtool"}, words...)})
		}
	// loader.conf(5): NAME_load="YES" loads a module of the kernel at boot; FreeBSD's congestion
	// controls come this way.
	case strings.HasSuffix(name, "_load") && strings.EqualFold(value, "no"): // it loads nothing
	case strings.HasSuffix(name, "_load"):
		r.add(FreeBSD, "kldload:"+strings.TrimSuffix(name, "_load"), value)
	default:
		return rcSwitches[name] != "" && r.rcVariable(name, value)
	}
	return true
}

// bootLineVariable is the variable that holds the kernel's command line in /etc/default/grub, or
// what stands before it elsewhere: in the log of the kernel, in files of boot loaders, in a profile
// of TuneD, in NixOS and for grubby.
var bootLineVariable = pattern.New(`^(?:GRUB_CMDLINE_LINUX(?:_DEFAULT)?\+?\s*=|.*\bKernel command line:|` +
	`(?:linux(?:efi|16)?|append|options|APPEND)\s.*\broot=|cmdline\w*\s*\+?=|(?:boot\.)?kernelParams\s*=|` +
	`.*\bgrubby\s.*--args=)`)

// bootParameter is MODULE.NAME=VALUE on that line, which is what options MODULE NAME=VALUE is for a
// driver built into the kernel. Source: Documentation/admin-guide/kernel-parameters.rst.
var bootParameter = pattern.New(`^([a-z][\w-]*)\.(\w+)=(\S+)$`)

// bootLine reads the parameters of modules on that line. Other parameters (isolcpus, mitigations,
// iommu) are not network settings.
func (r *reader) bootLine(text string) bool {
	if !bootLineVariable.MatchString(text) {
		return false
	}
	found := strings.HasPrefix(text, "GRUB")
	for _, w := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\"'[];", c) }) {
		w = strings.TrimPrefix(w, "--args=")
		if m := bootParameter.FindStringSubmatch(w); m != nil && m[1] != "net" {
			// net.ifnames is read by udev, and no module
			found = r.moduleParameters(m[1], []string{m[2] + "=" + m[3]}) || found
		}
	}
	return found
}

// kernelOptionLine is a line of a FreeBSD kernel configuration: capital letters, which no module of
// Linux has.
var kernelOptionLine = pattern.New(`^(?:options|device)\s+([A-Z][A-Z0-9_]+)(?:=(\S+))?\s*(?:#.*)?$`)

func (r *reader) kernelOption(text string) bool {
	m := kernelOptionLine.FindStringSubmatch(text)
	if m != nil {
		r.add(FreeBSD, "option:"+m[1], m[2])
	}
	return m != nil
}

// moduleOptionsLine is a line of modprobe.d or the older modules.conf.
var moduleOptionsLine = pattern.New(`^options\s+([a-z][\w-]*)\s+(.+)$`)

func (r *reader) moduleOptions(text string) bool {
	m := moduleOptionsLine.FindStringSubmatch(text)
	return m != nil && r.moduleParameters(m[1], strings.Fields(m[2]))
}

// moduleParameters adds NAME=VALUE words behind the name of a module; underscores and dashes are
// the same in such a name.
func (r *reader) moduleParameters(module string, words []string) bool {
	module = strings.TrimSuffix(module[strings.LastIndex(module, "/")+1:], ".ko")
	module = strings.ReplaceAll(module, "-", "_")
	// Words without an equals sign are not parameters: modprobe e1000 && …, or a comment. A value
	// without quotes ends at a blank (modprobe.d(5)), and a list for several NICs is separated by
	// commas.
	found := false
	for _, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok && name != "" && value != "" {
			r.add(Linux, "module:"+module+"/"+name, strings.Trim(value, `"'`))
			found = true
		}
	}
	return found
}

// etcSystemLine is a line of /etc/system, which names a module before each variable except those of
// the kernel itself.
var etcSystemLine = pattern.New(`^set\s+(\w+):(\w+)\s*=\s*(\w+)`)

func (r *reader) etcSystem(text string) bool {
	if m := etcSystemLine.FindStringSubmatch(text); m != nil {
		r.add(Solaris, "system:"+m[1]+"/"+m[2], m[3])
		return true
	}
	// A variable of the kernel itself has no module before it, and looks like any assignment.
	m := kernelVariableLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	_, ours := factOf(Solaris, "system:"+m[1])
	if ours {
		r.add(Solaris, "system:"+m[1], m[2])
	}
	return ours
}

// kernelVariableLine is a line of /etc/system for a variable of the kernel (system(5)).
var kernelVariableLine = pattern.New(`^set\s+([a-z]\w+)\s*=\s*(\w+)$`)

// driverConfLine is an entry of a driver's file on Solaris and illumos (driver.conf(5)): it ends in
// a semicolon.
var driverConfLine = pattern.New(`^(\w+)\s*=\s*([\w,]+)\s*;`)

func (r *reader) driverConf(text string) bool {
	m := driverConfLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	// An assignment with a semicolon is in half of all languages: only names that are known count.
	if _, ok := bareNames()["driver"][m[1]]; !ok {
		return false
	}
	r.add(Solaris, bareNames()["driver"][m[1]], m[2])
	return true
}

// hostnameLine is the content of hostname.IF on Solaris 10: an address or a name, and the MTU.
var hostnameLine = pattern.New(`^\S+\s+mtu\s+(\d+)$`)

func (r *reader) hostname(text string) bool {
	m := hostnameLine.FindStringSubmatch(text)
	if m != nil {
		r.add("", "link:*/mtu", m[1])
	}
	return m != nil
}

// bareLine is a name and a value without a command or a file around them, as users pass them on:
// "TcpWindowSize 131400".
var bareLine = pattern.New(`^([A-Za-z_][\w.-]*)\s*[=: ]\s*("[^"]*"|[\w.,]+)$`)

// pageLine is the last part of a name and its value in a page, with the unit of a time behind it.
var pageLine = pattern.New(`^([a-z]+_[a-z0-9_]+)\s+=\s+(\d+)(?:\s+s(?:ec(?:onds)?)?)?$`)

// bare reads such a line when the name alone identifies the setting.
func (r *reader) bare(text string) bool {
	if m := pageLine.FindStringSubmatch(text); m != nil && !r.isScript && !r.used[m[1]] {
		if name := netNameOf(m[1]); name != "" {
			return r.sysctl(name, m[2])
		}
	}
	m := bareLine.FindStringSubmatch(text)
	if m == nil || r.used[m[1]] { // a variable of a script
		return false
	}
	// A sysctl starts with its tree and needs no guess. Names of these three kinds appear alone: in
	// tables of pages, in forum answers, in the left column of a vendor's sheet.
	for _, kind := range []string{"module", "registry", "ndd"} {
		if name, ok := bareNames()[kind][m[1]]; ok {
			value := strings.Trim(m[2], `"`)
			if kind == "registry" {
				value = number(value)
			}
			r.add(bareOS[kind], name, value)
			return true
		}
	}
	if name := registryNamed(m[1]); name != "" && len(m[1]) > 7 && numbers.MatchString(m[2]) {
		r.add(Windows, name, m[2])
		return true
	}
	return false
}

var bareOS = map[string]OS{"module": Linux, "registry": Windows, "ndd": Solaris}
