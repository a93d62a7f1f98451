package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host/owner"
	"github.com/linerate/linerate/internal/kernel/nl/nft"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// readPlatform reads what surrounds the NICs.
func readPlatform(src *source, s *Snapshot, said *notes) Platform {
	return Platform{
		Qdiscs: readQdiscs(src, said), Softnet: readSoftnet(src), Idle: readIdle(src, s.CPUs),
		Tables: readTables(src, s), Firewall: readFirewall(src), Mounts: readMounts(src), Owners: readOwners(src, said),
		KernelLog: readKernelLog(src, s.Interfaces),
	}
}

func readQdiscs(src *source, said *notes) []Qdisc {
	facts, err := src.qdiscs()
	said.add("queueing disciplines", err)
	var qdiscs []Qdisc
	for _, q := range facts {
		qdiscs = append(qdiscs, Qdisc{Interface: q.Interface, Kind: q.Kind, Handle: handleText(q.Handle),
			Parent: handleText(q.Parent), QdiscState: q.QdiscState})
	}
	return qdiscs
}

// readSoftnet returns the lines of softnet_stat by CPU. Counters, which reads it as well, reports a
// broken file.
func readSoftnet(src *source) []Softnet {
	b, err := src.Net("softnet_stat")
	if err != nil {
		return nil
	}
	var lines []Softnet
	for _, l := range procfs.SoftnetLines(b) {
		lines = append(lines, Softnet(l))
	}
	return lines
}

// handleText formats a handle as tc(8) does: major and minor in hexadecimal, without the minor of a
// discipline's own handle.
func handleText(h uint32) string {
	const root = 0xffffffff // TC_H_ROOT
	major, minor := h>>16, h&0xffff
	switch {
	case h == root:
		return "root"
	case h == 0:
		return ""
	case major == 0:
		return fmt.Sprintf(":%x", minor)
	case minor == 0:
		return fmt.Sprintf("%x:", major)
	}
	return fmt.Sprintf("%x:%x", major, minor)
}

// readIdle reads the idle states of the first CPU, and for each CPU which of them it may not use.
// All CPUs have the same states, except on machines with two kinds of core. Nil: the kernel has no
// cpuidle here, as in most virtual machines.
func readIdle(src *source, cpus []CPU) *Idle {
	if len(cpus) == 0 {
		return nil
	}
	const dir = "sys/devices/system/cpu/cpuidle/"
	idle := &Idle{Driver: src.Optional(dir + "current_driver")}
	if idle.Governor = src.Optional(dir + "current_governor"); idle.Governor == "" {
		idle.Governor = src.Optional(dir + "current_governor_ro") // before Linux 5.9
	}
	// By number up to the first missing one: the directory has other entries too, in the order of a
	// hash.
	for n := 0; ; n++ {
		state := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpuidle/state%d/", cpus[0].ID, n)
		name := src.Optional(state + "name")
		if name == "" {
			break
		}
		s := IdleState{Name: name}
		if us, ok := src.Number(state + "latency"); ok {
			s.LatencySeconds = float64(us) / 1e6
		}
		var disabled []int
		for _, cpu := range cpus {
			if off, ok := src.Number(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpuidle/state%d/disable", cpu.ID,
				n)); ok && off != 0 {
				disabled = append(disabled, cpu.ID)
			}
		}
		s.Disabled = procfs.FormatCPUList(disabled)
		idle.States = append(idle.States, s)
	}
	if len(idle.States) == 0 {
		return nil
	}
	return idle
}

// readFirewall asks the running kernel for the chains of nftables and of x_tables. The question
// itself makes the kernel load the module, so a host that has not loaded it is not asked, nor for a
// table that the kernel does not list. A kernel without /proc/modules cannot load any, and has it
// built in or not at all. The refusal to an ordinary user is expected, so it gives no warning.
func readFirewall(src *source) []FirewallChain {
	if !src.Live() {
		return nil
	}
	var all []FirewallChain
	add := func(chains []nft.Chain, err error) {
		if err != nil {
			return
		}
		for _, c := range chains {
			all = append(all, FirewallChain(c))
		}
	}
	if src.Exists("sys/module/nf_tables") || !src.Exists("proc/modules") {
		add(nft.Chains())
	}
	add(nft.Legacy("ip"))
	add(nft.Legacy("ip6"))
	return all
}

// readTables reads how full the kernel's tables are. Conntrack and sockets are those of the
// thread's network namespace; neighbours and the memory of sockets are the machine's, and so are
// their limits.
func readTables(src *source, s *Snapshot) []Table {
	var tables []Table
	add := func(name string, entries uint64, limit string) {
		// The limits are among the settings already read.
		l, known := s.SysctlNumber(limit)
		// Memory has three thresholds; at the last one sockets get no more.
		if triple, ok := s.Setting("sysctl:" + limit); ok && !known {
			_, _, l, _ = Triple(triple)
		}
		tables = append(tables, Table{Name: name, Entries: entries, Limit: uint64(max(l, 0))})
	}
	if n, ok := procfs.ParseUint([]byte(src.Optional("proc/sys/net/netfilter/nf_conntrack_count"))); ok {
		add("conntrack", n, "net.netfilter.nf_conntrack_max")
	}
	for _, neighbours := range []struct{ name, file, limit string }{
		{"neighbours-ipv4", "stat/arp_cache", "net.ipv4.neigh.default.gc_thresh3"},
		{"neighbours-ipv6", "stat/ndisc_cache", "net.ipv6.neigh.default.gc_thresh3"},
	} {
		b, err := src.Net(neighbours.file)
		if err != nil {
			continue // exists only in the first network namespace
		}
		if n, err := procfs.ParseNeighbourEntries(b); err == nil {
			add(neighbours.name, n, neighbours.limit)
		}
	}
	set := procfs.NewCounts(16)
	if b, err := src.Net("sockstat"); err == nil {
		_ = procfs.ParseSockstat(b, set) // A partial result is used; Counters reports a broken file.
	}
	for _, sockets := range []struct{ name, count, limit string }{
		{"tcp-sockets", "sockets.tcp_inuse", ""},
		{"tcp-orphans", "sockets.tcp_orphan", "net.ipv4.tcp_max_orphans"},
		{"tcp-time-wait", "sockets.tcp_tw", "net.ipv4.tcp_max_tw_buckets"},
		{"tcp-memory", "tcpmem.pages", "net.ipv4.tcp_mem"},
		{"udp-sockets", "sockets.udp_inuse", ""},
		{"udp-memory", "udpmem.pages", "net.ipv4.udp_mem"},
	} {
		if n, ok := set.Values[sockets.count]; ok {
			add(sockets.name, n, sockets.limit)
		}
	}
	return tables
}

// readMounts reads the NFS mounts that this process sees. It keeps no other mounts, not even in an
// archive.
func readMounts(src *source) []Mount {
	b, err := src.Aside("proc/self/mounts")
	if err != nil {
		b, err = src.Aside("proc/mounts")
	}
	if err != nil {
		return nil // Not archived: every Linux has the file.
	}
	var mounts []Mount
	// Line by line, so that a copy keeps what the kernel printed, but only of those mounts.
	var kept strings.Builder
	for line := range strings.Lines(string(b)) {
		for _, m := range procfs.ParseNFSMounts([]byte(line)) {
			mounts = append(mounts, Mount(m))
			kept.WriteString(line)
		}
	}
	if kept.Len() > 0 {
		src.Keep("proc/mounts", []byte(kept.String()))
	}
	return mounts
}

// maxProcesses bounds the search for programs. Programs that manage a host start when it boots, so
// they are among the first.
const maxProcesses = 4096

// readOwners finds the other programs that manage the host. It keeps no process names other than
// those it looks for.
func readOwners(src *source, said *notes) []owner.Owner {
	wanted, running := owner.Processes(), make(map[string]bool)
	names, _ := src.List("proc") // An archive may hold only sys.
	// In numeric order, which begins with the processes started at boot.
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	// Every process namespace has a process 1.
	if src.Live() && len(pids) > 0 && pids[0] != 1 {
		running = owner.Served(src.Exists)
		said.say("other programs that manage this host: not permitted: /proc hides the processes of other users (hidepid)")
	}
	for _, pid := range pids[:min(len(pids), maxProcesses)] {
		file := fmt.Sprintf("proc/%d/comm", pid) // since Linux 2.6.33
		b, err := src.Aside(file)
		if err != nil {
			continue // The process is gone, or hidden (hidepid).
		}
		if name := strings.TrimSpace(string(b)); wanted[name] {
			running[name] = true
			src.Keep(file, []byte(name+"\n"))
		}
	}
	return owner.Find(owner.Tree{
		Exists: src.Exists, Text: src.Optional,
		List: func(dir string) []string { names, _ := src.List(dir); return names },
	}, running)
}
