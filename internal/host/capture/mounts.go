package capture

import (
	"path"
	"strings"
)

// mounts reports whether a file is a table of mounted file systems.
func mounts(name string) bool {
	if !strings.HasPrefix(name, "proc/") {
		return false
	}
	switch path.Base(name) {
	case "mounts", "mountinfo", "mountstats":
		return true
	}
	return false
}

// mountFields finds, in a line of any of the three tables, the fields that are paths and the one
// that is the source. A negative source: none.
func mountFields(fields []string) (source int, paths []int) {
	// mountstats: device SERVER:/PATH mounted on /MNT with fstype nfs4
	if len(fields) >= 8 && fields[0] == "device" && fields[2] == "mounted" {
		return 1, []int{4}
	}
	// mountinfo: 36 35 98:0 /root /mnt rw,noatime shared:1 - ext3 /dev/root rw
	for i, f := range fields {
		// The number of optional fields varies from mount to mount; the lone hyphen ends them
		// (proc_pid_mountinfo(5)).
		if f == "-" && i >= 6 && i+2 < len(fields) {
			return i + 2, []int{3, 4}
		}
	}
	// mounts: /dev/root /mnt ext3 rw,noatime 0 0
	if len(fields) == 6 && strings.HasPrefix(fields[1], "/") {
		return 0, []int{1}
	}
	return -1, nil
}

// mountNames returns the names of the servers in a table.
func mountNames(table string) []string {
	var names []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if source, _ := mountFields(fields); source >= 0 {
			if server, _, ok := remote(fields[source]); ok && !address(server) {
				names = append(names, server)
			}
		}
	}
	return names
}

// remote splits server:/path (NFS, Ceph) and //server/share (SMB).
func remote(source string) (server, rest string, ok bool) {
	// A server's name often identifies its owner more clearly than a host name, and so does the
	// path after it.
	if after, ok := strings.CutPrefix(source, "//"); ok {
		server, _, _ = strings.Cut(after, "/")
		return server, after[len(server):], server != ""
	}
	// A slash before the colon makes it a local path with a colon, such as that of a device on a
	// bus.
	if i := strings.Index(source, ":/"); i > 0 && !strings.Contains(source[:i], "/") {
		return source[:i], source[i+1:], true
	}
	return "", "", false
}

// address reports whether a server is numeric rather than named; IPv6 has brackets.
func address(server string) bool {
	return strings.ContainsAny(server, "[]:") || strings.Trim(server, "0123456789.") == ""
}

// mountLine replaces source, paths and options of one mount, and addresses in its other fields.
func (s *scrubber) mountLine(line string) string {
	fields := strings.Split(line, " ")
	source, paths := mountFields(fields)
	if source < 0 {
		return s.options(line)
	}
	isPath := make(map[int]bool, len(paths))
	for _, i := range paths {
		// Split at each single blank and joined by one: a line of unknown form keeps its form.
		isPath[i] = true
	}
	for i, f := range fields {
		switch {
		case i == source:
			fields[i] = s.source(f)
		case isPath[i]:
			fields[i] = s.directories(f)
		default:
			fields[i] = s.options(f)
		}
	}
	return strings.Join(fields, " ")
}

// source replaces the source of a mount.
func (s *scrubber) source(text string) string {
	server, rest, ok := remote(text)
	switch {
	case !ok:
		return s.directories(text)
	case strings.HasPrefix(text, "//"):
		return "//" + s.server(server) + s.directories(rest)
	}
	return s.server(server) + ":" + s.directories(rest)
}

// server replaces the server of a mount: as an address if it is one, so that it matches the one in
// addr=, otherwise as the name of a host.
func (s *scrubber) server(name string) string {
	if address(name) {
		return s.text(name)
	}
	return s.hostName(name)
}

// usual are the parts of paths that every system has (Filesystem Hierarchy Standard, and the mounts
// of Linux itself): they reveal nothing, and a reader needs them.
var usual = map[string]bool{
	"": true, ".": true, "..": true, "bin": true, "boot": true, "cgroup": true, "dev": true, "efi": true, "etc": true,
	"fs": true, "home": true,
	"hugepages": true, "kernel": true, "lib": true, "local": true, "log": true, "media": true, "mnt": true,
	"mqueue": true, "net": true, "nfs": true,
	"opt": true, "proc": true, "pts": true, "root": true, "run": true, "shm": true, "srv": true, "sys": true,
	"tmp": true, "user": true, "usr": true,
	"var": true, "mapper": true, "none": true, "tmpfs": true, "sysfs": true, "devtmpfs": true, "devpts": true,
	"overlay": true, "cgroup2": true,
	"securityfs": true, "debugfs": true, "tracefs": true, "bpf": true, "pstore": true, "configfs": true,
	"fusectl": true, "hugetlbfs": true,
}

// directories replaces the elements of a path that users chose: shares, homes, projects.
func (s *scrubber) directories(text string) string {
	parts := strings.Split(text, "/")
	for i, p := range parts {
		if !usual[p] {
			parts[i] = s.replace.name("dir", p)
		}
	}
	return strings.Join(parts, "/")
}

// options replaces the values of mount options: by their key if that is a name, as a path if it
// looks like one, otherwise as text.
func (s *scrubber) options(text string) string {
	parts := strings.Split(text, ",")
	for i, p := range parts {
		key, value, ok := strings.Cut(p, "=")
		switch {
		// Bare words (rw, noatime) are the kernel's own; as text they stay unless they are
		// addresses.
		case !ok || value == "":
			parts[i] = s.text(p)
			// Values typed by an administrator. A password is here only if a file system prints its
			// own.
		case key == "username" || key == "user" || key == "domain" || key == "cruid" || key == "name" ||
			key == "password" || key == "pass":
			parts[i] = key + "=" + s.replace.name("user", value)
		case strings.Contains(value, "/"):
			elements := strings.Split(value, ":") // overlayfs has several directories in one option
			for j, e := range elements {
				elements[j] = s.directories(e)
			}
			parts[i] = key + "=" + strings.Join(elements, ":")
		default:
			parts[i] = key + "=" + s.text(value)
		}
	}
	return strings.Join(parts, ",")
}

// tuning are the parameters of the kernel's command line whose values show how the machine runs and
// not whose it is.
var tuning = map[string]bool{
	"isolcpus": true, "nohz": true, "nohz_full": true, "rcu_nocbs": true, "rcu_nocb_poll": true, "mitigations": true,
	"pcie_aspm": true, "idle": true,
	"processor.max_cstate": true, "intel_idle.max_cstate": true, "intel_pstate": true, "amd_pstate": true,
	"intel_iommu": true, "amd_iommu": true,
	"iommu": true, "iommu.passthrough": true, "iommu.strict": true, "hugepages": true, "hugepagesz": true,
	"default_hugepagesz":   true,
	"transparent_hugepage": true, "numa_balancing": true, "numa": true, "clocksource": true, "tsc": true, "nosmt": true,
	"nmi_watchdog": true,
	"skew_tick":    true, "irqaffinity": true, "threadirqs": true, "preempt": true, "net.ifnames": true,
	"biosdevname": true, "maxcpus": true,
	"spectre_v2": true, "pti": true, "mce": true, "audit": true, "selinux": true, "quiet": true, "ro": true, "rw": true,
	"pci": true, "acpi": true,
	"cpufreq.default_governor": true, "ipv6.disable": true, "mem": true, "nosoftlockup": true,
	"workqueue.power_efficient": true,
}

// commandLine keeps the parameters that affect speed, and only the names of the others, whose
// values may contain a root file system or a key.
func (s *scrubber) commandLine(text string) string {
	fields := strings.Fields(text)
	for i, f := range fields {
		key, _, ok := strings.Cut(f, "=")
		// Only the key stays: it is useful to know that a parameter was given, and its name is the
		// kernel's or a module's word.
		switch {
		// Kept with their values, since isolcpus=2-7 explains where the interrupts go.
		case tuning[key]:
		case ok:
			fields[i] = key + "=" + "x"
		default:
			fields[i] = s.text(key)
		}
	}
	return strings.Join(fields, " ")
}

// bigEndian reports whether a machine stores the most significant byte first, by the names of
// uname(2) and of Go.
func bigEndian(arch string) bool {
	switch arch {
	case "s390", "s390x", "ppc", "ppc64", "powerpc", "powerpc64", "mips", "mips64", "armeb", "aarch64_be", "sparc",
		"sparc64", "m68k", "parisc":
		return true
	}
	return false
}
