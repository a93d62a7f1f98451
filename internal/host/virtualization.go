package host

import (
	"strings"

	"github.com/linerate/linerate/internal/procfs"
)

// container is the word for an operating-system container of any make.
const container = "container"

// hypervisors are looked for in the firmware's DMI strings (/sys/class/dmi/id, x86 and arm64 servers), most specific first: clouds that run KVM put
// their own name there, and what is left of QEMU's decides only if nobody more specific has spoken. "Microsoft Corporation" alone is a laptop.
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

// readVirtualization tells what this host runs on: the hypervisor's name, "vm" where one is there and does not say its name, "container",
// or both as "kvm+container". Evidence, strongest first: DMI strings, /sys/hypervisor, the clock sources that guests register, the
// processor flag that every hypervisor sets on x86, a device tree node elsewhere; for containers the marks that their makers leave.
func readVirtualization(src *source) string {
	vm := readHypervisor(src)
	if !readContainer(src) {
		return vm
	}
	if vm == "" {
		return container
	}
	return vm + "+" + container
}

// readHypervisor gives the hypervisor's name, empty where there is none or none was seen.
func readHypervisor(src *source) string {
	// Dom0 of Xen is told apart by its capability: it has the hardware.
	if kind := src.Optional("sys/hypervisor/type"); kind != "" && !strings.Contains(src.Optional("proc/xen/capabilities"), "control_d") {
		return kind
	}
	cpuinfo, _ := src.Read("proc/cpuinfo") // Its absence is reported where the processors are read.
	flag := procfs.HypervisorFlag(cpuinfo)
	vendor, product := src.Optional("sys/class/dmi/id/sys_vendor"), src.Optional("sys/class/dmi/id/product_name")
	dmi := strings.Join([]string{vendor + " " + product, src.Optional("sys/class/dmi/id/board_vendor"), src.Optional("sys/class/dmi/id/bios_vendor")}, "\n")
	for _, h := range hypervisors {
		if strings.Contains(dmi, h.mark) && !strings.Contains(product, "metal") {
			// QEMU's firmware strings with hardware acceleration mean KVM, and its paravirtual clock shows it.
			if h.name == "qemu" && strings.Contains(clockSources(src), "kvm-clock") {
				return "kvm"
			}
			return h.name
		}
	}
	// Arm and RISC-V guests have no processor flag; their device tree says it.
	if compatible := src.Optional("proc/device-tree/hypervisor/compatible"); compatible != "" {
		if strings.Contains(compatible, "xen") {
			return "xen"
		}
		return "kvm"
	}
	// A guest whose firmware tells nothing, as that of small virtual machines which boot without any, still has the flag and a clock.
	if !flag {
		return ""
	}
	clocks := clockSources(src)
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

// clockSources lists the clocks that this kernel could use; a guest registers that of its hypervisor.
func clockSources(src *source) string {
	return src.Optional("sys/devices/system/clocksource/clocksource0/available_clocksource")
}

// readContainer looks for what container makers leave: systemd's own note, the files of Docker and Podman, the control groups of the
// first process, and the variable that a container's first process is given (readable by root only).
func readContainer(src *source) bool {
	for _, mark := range []string{"run/systemd/container", "run/.containerenv", ".dockerenv"} {
		if src.Exists(mark) {
			return true
		}
	}
	// With version 2 of control groups and a namespace for them this is "0::/", which tells nothing.
	groups := src.Optional("proc/1/cgroup")
	for _, mark := range []string{"/docker", "/lxc", "/kubepods", "/libpod", "/containerd", "machine.slice"} {
		if strings.Contains(groups, mark) {
			return true
		}
	}
	for variable := range strings.SplitSeq(src.Optional("proc/1/environ"), "\x00") {
		if strings.HasPrefix(variable, "container=") {
			return true
		}
	}
	return false
}
