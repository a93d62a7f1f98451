package host

import "strings"

// inContainer is the Virtualization of an operating-system container of any make.
const inContainer = "container"

// evidence reads the files of a host by their names below its root ("proc/1/cgroup"). Text returns
// a whole file without blanks at its ends, empty if it cannot be read. Exists follows links.
type evidence struct {
	Text   func(name string) string
	Exists func(name string) bool
}

// hypervisors are searched for in the firmware's DMI strings (/sys/class/dmi/id, x86 and arm64
// servers), most specific first. Clouds that run KVM put their own name there, so QEMU's string
// decides only where no cloud's name is found. "Microsoft Corporation" alone is a laptop.
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

// virtualization returns what a host runs on: the hypervisor's name, "vm" for a hypervisor that
// hides its name, "container", or both as "kvm+container". It is empty for bare metal. The result
// decides whether the speeds of a NIC and of a bus mean anything: those of an emulated device do
// not.
//
// The evidence, strongest first: DMI strings, /sys/hypervisor, the clock sources that guests
// register, the CPU flag that every hypervisor sets on x86, a device tree node on other
// architectures. For containers it is the marks that container runtimes leave.
//
// A hypervisor that hides well is not found; bare metal is never mistaken for a guest. Clouds that
// rent whole machines use the strings of their guests with one more word, which is known for one
// cloud.
//
// Sources: /sys/class/dmi/id and /sys/hypervisor of Documentation/ABI; CPUID leaf 1 as
// /proc/cpuinfo prints it; arch/x86/kernel/{kvmclock.c,cpu/hypervisor.c};
// Documentation/devicetree/bindings/arm/xen.txt; systemd-detect-virt(1).
func virtualization(t evidence) string {
	vm := hypervisor(t)
	if !contained(t) {
		return vm
	}
	if vm == "" {
		return inContainer
	}
	return vm + "+" + inContainer
}

// hypervisor returns the hypervisor's name, empty if no hypervisor is found.
func hypervisor(t evidence) string {
	// Dom0 of Xen has the hardware; its capability identifies it.
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
	// Arm and RISC-V guests have no CPU flag, but a node in their device tree.
	if compatible := t.Text("proc/device-tree/hypervisor/compatible"); compatible != "" {
		if strings.Contains(compatible, "xen") {
			return "xen"
		}
		return "kvm"
	}
	// A guest without informative firmware, such as a small virtual machine that boots without any,
	// still has the flag and a clock.
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

// clockSources lists the clocks that this kernel can use; a guest registers that of its hypervisor.
func clockSources(t evidence) string {
	return t.Text("sys/devices/system/clocksource/clocksource0/available_clocksource")
}

// contained reports whether a container runtime left its marks: systemd's note, the files of Docker
// and Podman, the control groups of the first process, and the environment variable of a
// container's first process (readable by root only).
func contained(t evidence) bool {
	for _, mark := range []string{"run/systemd/container", "run/.containerenv", ".dockerenv"} {
		if t.Exists(mark) {
			return true
		}
	}
	// With cgroup v2 and a cgroup namespace this is "0::/", which decides nothing.
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

// processorFlag reports whether the first CPU of /proc/cpuinfo has the flag "hypervisor": CPUID
// leaf 1, ECX bit 31, which no hardware sets and every hypervisor does. x86 only.
func processorFlag(cpuinfo string) bool {
	for line := range strings.Lines(cpuinfo) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "flags" {
			return strings.Contains(" "+strings.TrimSpace(value)+" ", " hypervisor ")
		}
	}
	return false
}
