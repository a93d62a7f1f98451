package hypervisor

import "strings"

// Container is the word for an operating-system container of any make.
const Container = "container"

// Tree is how the files of a host are read, by name below its root ("proc/1/cgroup"). Text is a
// whole file without blanks at its ends, empty where it cannot be read; Exists follows links.
type Tree struct {
	Text   func(name string) string
	Exists func(name string) bool
}

// hypervisors are looked for in the firmware's DMI strings (/sys/class/dmi/id, x86 and arm64
// servers), most specific first: clouds that run KVM put their own name there, and what is left of
// QEMU's decides only if nobody more specific has spoken. "Microsoft Corporation" alone is a
// laptop.
var hypervisors = []struct{ mark, name string }{
	{"VMware", "vmware"},
	{"VirtualBox", "virtualbox"},
	{"innotek", "virtualbox"},
	{"Parallels", "parallels"},
	{"BHYVE", "bhyve"},
	{"Microsoft Corporation Virtual Machine", "hyperv"},
	{"Xen", "xen"},
	{"Amazon EC2", "kvm"}, // Nitro; the bare metal types say "…metal" in the product name
	{"Google Compute Engine", "kvm"},
	{"OpenStack", "kvm"},
	{"KubeVirt", "kvm"},
	{"QEMU", "qemu"},
	{"KVM", "kvm"},
	{"Bochs", "qemu"},
}

// Find tells what a host runs on: the hypervisor's name, "vm" where one is there and does not say
// its name, "container", or both as "kvm+container". Evidence, strongest first: DMI strings,
// /sys/hypervisor, the clock sources that guests register, the processor flag that every hypervisor
// sets on x86, a device tree node elsewhere; for containers the marks that their makers leave.
func Find(t Tree) string {
	vm := below(t)
	if !contained(t) {
		return vm
	}
	if vm == "" {
		return Container
	}
	return vm + "+" + Container
}

// below gives the hypervisor's name, empty where there is none or none was seen.
func below(t Tree) string {
	// Dom0 of Xen is told apart by its capability: it has the hardware.
	if kind := t.Text("sys/hypervisor/type"); kind != "" && !strings.Contains(t.Text("proc/xen/capabilities"),
		"control_d") {
		return kind
	}
	flag := processorFlag(t.Text("proc/cpuinfo"))
	vendor, product := t.Text("sys/class/dmi/id/sys_vendor"), t.Text("sys/class/dmi/id/product_name")
	dmi := strings.Join([]string{vendor + " " + product, t.Text("sys/class/dmi/id/board_vendor"),
		t.Text("sys/class/dmi/id/bios_vendor")}, "\n")
	for _, h := range hypervisors {
		if strings.Contains(dmi, h.mark) && !strings.Contains(product, "metal") {
			// QEMU's firmware strings with hardware acceleration mean KVM, and its paravirtual
			// clock shows it.
			if h.name == "qemu" && strings.Contains(clockSources(t), "kvm-clock") {
				return "kvm"
			}
			return h.name
		}
	}
	// Arm and RISC-V guests have no processor flag; their device tree says it.
	if compatible := t.Text("proc/device-tree/hypervisor/compatible"); compatible != "" {
		if strings.Contains(compatible, "xen") {
			return "xen"
		}
		return "kvm"
	}
	// A guest whose firmware tells nothing, as that of small virtual machines which boot without
	// any, still has the flag and a clock.
	if !flag {
		return ""
	}
	clocks := clockSources(t)
	switch {
	case strings.Contains(clocks, "kvm-clock"):
		return "kvm"
	case strings.Contains(clocks, "hyperv"):
		return "hyperv"
	case strings.Contains(clocks, "xen"):
		return "xen"
	}
	return "vm"
}

// clockSources lists the clocks that this kernel could use; a guest registers that of its
// hypervisor.
func clockSources(t Tree) string {
	return t.Text("sys/devices/system/clocksource/clocksource0/available_clocksource")
}

// contained looks for what container makers leave: systemd's own note, the files of Docker and
// Podman, the control groups of the first process, and the variable that a container's first
// process is given (readable by root only).
func contained(t Tree) bool {
	for _, mark := range []string{"run/systemd/container", "run/.containerenv", ".dockerenv"} {
		if t.Exists(mark) {
			return true
		}
	}
	// With version 2 of control groups and a namespace for them this is "0::/", which tells
	// nothing.
	groups := t.Text("proc/1/cgroup")
	for _, mark := range []string{"/docker", "/lxc", "/kubepods", "/libpod", "/containerd", "machine.slice"} {
		if strings.Contains(groups, mark) {
			return true
		}
	}
	for variable := range strings.SplitSeq(t.Text("proc/1/environ"), "\x00") {
		if strings.HasPrefix(variable, "container=") {
			return true
		}
	}
	return false
}

// processorFlag looks in /proc/cpuinfo for the flag "hypervisor": CPUID leaf 1, ECX bit 31, which
// no processor sets and every hypervisor does. x86 only. The first processor speaks for all.
func processorFlag(cpuinfo string) bool {
	for line := range strings.Lines(cpuinfo) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "flags" {
			return strings.Contains(" "+strings.TrimSpace(value)+" ", " hypervisor ")
		}
	}
	return false
}
