package sosreport

import (
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// plugins are the directories of sos_commands that are searched for outputs: sos 3 and older had
// those of host and date in general.
var plugins = []string{"networking", "kernel", "host", "general", "date", "pci", "hardware"}

// tables are the files of /proc/net that package host reads besides those of counters. The
// directory also has lists of connections, which can be larger than all the rest.
var tables = []string{"dev", "if_inet6", "route", "ipv6_route"}

// counts reports whether a file below /proc has counters.
func counts(name string) bool {
	return slices.ContainsFunc(procfs.CounterFiles(), func(f procfs.CounterFile) bool { return f.Name == name })
}

// marks are what other programs that manage hosts leave behind; except for a profile's name, only
// their existence matters.
var marks = []string{
	"etc/netplan", "etc/tuned", "run/tuned", "run/NetworkManager", "run/systemd/netif", "run/cloud-init", "run/network",
	"run/irqbalance.pid",
}

// namesOnly reports whether only the name of a file is kept: configuration files contain passwords,
// and their contents are not needed.
func namesOnly(name string) bool {
	return strings.HasPrefix(name, "etc/netplan/") || strings.HasPrefix(name, "run/") ||
		strings.HasPrefix(name, "etc/tuned/") && path.Base(name) != "active_profile"
}

// wanted reports whether a file or link of a report is taken, by its path below the report's own
// directory.
func wanted(name string) bool {
	first, rest, below := strings.Cut(name, "/")
	if !below {
		return topLevel(name)
	}
	switch first {
	case "proc":
		return wantedProc(rest)
	case "sys":
		return wantedSys(rest)
	case "sos_commands", "sos_strings":
		plugin, command, deeper := strings.Cut(rest, "/")
		// Deeper files are outputs from other network namespaces and containers.
		return deeper && slices.Contains(plugins, plugin) && !strings.Contains(command, "/") &&
			!strings.HasPrefix(command, "journalctl") &&
			!strings.HasPrefix(command, "modinfo")
	case "etc", "run":
		// The zone converts the local time that date prints to a moment.
		return name == "etc/localtime" ||
			slices.ContainsFunc(marks, func(m string) bool { return name == m || strings.HasPrefix(name, m+"/") })
	}
	return false
}

// topLevel reports whether a name is a link from the top of a report to an output; older versions
// had files there.
func topLevel(name string) bool {
	switch name {
	case "date", "uptime", "hostname", "uname", "ip_addr", "ip_route", "lspci", "proc", "sys":
		return true
	}
	return false
}

// wantedProc leaves out what grows with the number of processes, connections and symbols.
func wantedProc(name string) bool {
	first, rest, below := strings.Cut(name, "/")
	switch {
	case counts(name):
		return true
	case !below:
		switch first {
		case "stat", "interrupts", "cpuinfo", "meminfo", "mounts", "uptime", "version", "cmdline", "net", "self",
			"thread-self":
			return true
		}
		return false
	// The link /proc/net leads through /proc/self into the directory of a process: sos keeps all
	// three.
	case first == "net", (first == "self" || number(first)) && strings.HasPrefix(rest, "net/"):
		table := strings.TrimPrefix(rest, "net/")
		bond, isBond := strings.CutPrefix(table, "bonding/")
		return slices.Contains(tables, table) || counts("net/"+table) || isBond && namesInterface(bond)
	case first == "self":
		return rest == "mounts" || rest == "net"
	case number(first):
		// For the first process, whether it is in a container; for the others, their names.
		return rest == "status" || rest == "comm" || rest == "net" || first == "1" && rest == "cgroup"
	case first == "sys":
		return strings.HasPrefix(rest, "net/") || strings.HasPrefix(rest, "kernel/") || strings.HasPrefix(rest, "vm/")
	}
	return first == "irq" || first == "bus" && strings.HasPrefix(rest, "pci/") || first == "xen" ||
		name == "device-tree/hypervisor/compatible"
}

// wantedSys accepts devices and interfaces, and from the CPUs' many files those on clocks and
// sleep.
func wantedSys(name string) bool {
	if name == "class/dmi" || name == "class/dmi/id" {
		return true // mostly a link
	}
	for _, dir := range []string{
		"class/net/", "bus/pci/", "class/dmi/id/", "hypervisor/", "devices/system/node/", "devices/system/clocksource/",
		"devices/system/cpu/cpuidle/",
	} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	// A CPU has some two hundred files, and a server hundreds of CPUs.
	if strings.HasPrefix(name, "devices/system/") {
		return strings.HasPrefix(name, "devices/system/cpu/") &&
			(strings.Contains(name, "/cpufreq") || strings.Contains(name, "/cpuidle/"))
	}
	return strings.HasPrefix(name, "devices/") && !strings.Contains(name, "/block/")
}

// mayHold reports whether a directory can contain wanted files, so that the logs and package
// databases of a report are not even listed.
func mayHold(dir string) bool {
	first, rest, below := strings.Cut(dir, "/")
	switch first {
	case "proc":
		plain, _, _ := strings.Cut(rest, "/")
		return !below || number(plain) ||
			slices.Contains([]string{"net", "self", "sys", "irq", "bus", "xen", "device-tree", "pressure"}, plain)
	case "sys":
		return !below || slices.Contains([]string{"class", "bus", "devices", "hypervisor"},
			strings.SplitN(rest, "/", 2)[0])
	case "sos_commands", "sos_strings":
		return !below || slices.Contains(plugins, rest)
	case "etc", "run":
		return !below || slices.ContainsFunc(marks, func(m string) bool {
			return dir == m || strings.HasPrefix(dir, m+"/") || strings.HasPrefix(m, dir+"/")
		})
	}
	return false
}

// number reports whether a name is a process's directory.
func number(name string) bool {
	return name != "" && strings.Trim(name, "0123456789") == ""
}
