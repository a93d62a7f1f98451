package owner

import (
	"cmp"
	"strings"
)

// Tree reads the host; names are slash-separated and relative ("run/tuned"). All three functions
// are required.
type Tree struct {
	Exists func(name string) bool
	Text   func(name string) string   // a small file without blanks around it; empty if it does not exist
	List   func(name string) []string // the names in a directory, sorted
}

// Owner is one program that manages something of the host.
type Owner struct {
	Name    string `json:"name"`    // irqbalance, tuned, NetworkManager, systemd-networkd, …
	Running bool   `json:"running"` // has a process now; others write when the host boots or a link comes up
	// Manages names what the program may write: "interrupt affinity".
	Manages string `json:"manages"`
	// Profile is the program's choice of settings: the active profile of TuneD. Empty if the
	// program has no profile or it is not known.
	Profile string `json:"profile,omitempty"`
	// Sets are the knobs that the profile writes, by name, with * for "any". Empty if there are
	// none or they are not known.
	Sets  []string `json:"sets,omitempty"`
	Marks string   `json:"marks"` // the evidence: paths and the process's name, separated by ", "
}

// known is one program: process names (cut to 15 bytes, as the kernel keeps them), and marks, any
// of which is sufficient.
type known struct {
	name, manages string
	processes     []string
	marks         []string // a path; one that ends in "/*.EXT" matches any file with that extension
	profile       string   // a file with one word
	service       string   // of systemd; empty: the first process has its name
}

// programs lists the programs that write knobs of the network, in the order of the output. A mark
// shows something active: a package that is merely installed leaves files in /usr, which Find
// ignores.
var programs = [...]known{
	{name: "irqbalance", manages: "interrupt affinity", processes: []string{"irqbalance"},
		marks: []string{"run/irqbalance.pid"}},
	{name: "tuned", manages: "sysctls, rings, channels, coalescing, governors and idle states, by profile",
		processes: []string{"tuned"},
		marks:     []string{"run/tuned/tuned.pid"}, profile: "etc/tuned/active_profile"},
	{name: "tuned-ppd", manages: "the active profile of TuneD", processes: []string{"tuned-ppd"}},
	{name: "power-profiles-daemon", manages: "governors and energy preference", processes: []string{"power-profiles-"},
		service: "power-profiles-daemon"},
	{name: "bpftune", manages: "sysctls of TCP buffers, congestion control, neighbours and net.core",
		processes: []string{"bpftune"}},
	{name: "NetworkManager", manages: "addresses, routes, MTU and ethtool settings of its connections",
		processes: []string{"NetworkManager"},
		marks:     []string{"run/NetworkManager/NetworkManager.pid"}},
	{name: "systemd-networkd", manages: "addresses, routes, MTU and queueing disciplines",
		processes: []string{"systemd-network"}, service: "systemd-networkd",
		marks: []string{"run/systemd/netif/state"}},
	{name: "wicked", manages: "addresses, routes and MTU", processes: []string{"wickedd"}},
	{name: "connman", manages: "addresses and routes", processes: []string{"connmand"}, service: "connman"},
	{name: "dhcpcd", manages: "addresses, routes and MTU", processes: []string{"dhcpcd"}},
	{name: "dhclient", manages: "addresses, routes and MTU", processes: []string{"dhclient"}},
	{name: "netplan", manages: "the configuration of NetworkManager or systemd-networkd, at boot",
		marks: []string{"etc/netplan/*.yaml"}},
	{name: "cloud-init", manages: "the network configuration, at boot",
		marks: []string{"run/cloud-init/result.json", "run/cloud-init/status.json"}},
	{name: "ifupdown", manages: "addresses, routes and MTU, at boot", marks: []string{"run/network/ifstate"}},
	{name: "firewalld", manages: "packet filters", processes: []string{"firewalld"}},
	{name: "dockerd", manages: "bridges, veths, forwarding and packet filters", processes: []string{"dockerd"},
		service: "docker"},
	{name: "kubelet", manages: "sysctls and packet filters of a Kubernetes node", processes: []string{"kubelet"}},
	{name: "openvswitch", manages: "the ports and queues of its switches", processes: []string{"ovs-vswitchd"}},
}

// Processes returns every process name that Find looks for, so that a reader of /proc can ignore
// all others.
func Processes() map[string]bool {
	names := make(map[string]bool)
	for _, p := range programs {
		for _, process := range p.processes {
			names[process] = true
		}
	}
	return names
}

// Served returns the processes that systemd runs as services, of those that Find looks for: each
// active service has a control group. It is for a host whose /proc hides processes.
func Served(exists func(name string) bool) map[string]bool {
	running := make(map[string]bool)
	for _, p := range programs {
		if len(p.processes) == 0 {
			continue
		}
		group := "system.slice/" + cmp.Or(p.service, p.processes[0]) + ".service"
		// Version 2, and the hierarchy of systemd in version 1 (cgroups(7)).
		if exists("sys/fs/cgroup/"+group) || exists("sys/fs/cgroup/systemd/"+group) {
			running[p.processes[0]] = true
		}
	}
	return running
}

// Find returns the other programs that manage the host. running holds the names of the running
// processes (/proc/PID/comm); Processes lists the relevant ones.
func Find(t Tree, running map[string]bool) []Owner {
	var owners []Owner
	for _, p := range programs {
		o := Owner{Name: p.name, Manages: p.manages}
		var marks []string
		for _, process := range p.processes {
			if running[process] {
				o.Running = true
				marks = append(marks, "process "+process)
			}
		}
		for _, mark := range p.marks {
			if there(t, mark) {
				marks = append(marks, "/"+mark)
			}
		}
		// The file of the active profile outlives its program, so it is no evidence on its own.
		if len(marks) == 0 {
			continue
		}
		if p.profile != "" {
			o.Profile = t.Text(p.profile)
			o.Sets = tunedSets(t, o.Profile)
		}
		o.Marks = strings.Join(marks, ", ")
		owners = append(owners, o)
	}
	return owners
}

func there(t Tree, mark string) bool {
	dir, ending, isPattern := strings.Cut(mark, "/*")
	if !isPattern {
		return t.Exists(mark)
	}
	for _, name := range t.List(dir) {
		if strings.HasSuffix(name, ending) && t.Exists(dir+"/"+name) {
			return true
		}
	}
	return false
}
