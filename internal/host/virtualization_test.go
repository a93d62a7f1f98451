package host

import (
	"slices"
	"strings"
	"testing"
)

// virtualizationOf returns the result for a host that has these files.
func virtualizationOf(files map[string]string) string {
	return virtualization(evidence{
		Text:   func(name string) string { return strings.TrimSpace(files[name]) },
		Exists: func(name string) bool { _, ok := files[name]; return ok },
	})
}

// TestVirtualization has a host for every kind of evidence, and hosts with misleading evidence.
func TestVirtualization(t *testing.T) {
	const (
		vendor, product = "sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name"
		clocks          = "sys/devices/system/clocksource/clocksource0/available_clocksource"
		flag            = "processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"bare metal", map[string]string{vendor: "Dell Inc.", product: "PowerEdge R740",
			"proc/cpuinfo": "flags\t: fpu nohypervisor\n"}, ""},
		{"a laptop of Microsoft's", map[string]string{vendor: "Microsoft Corporation", product: "Surface"}, ""},
		{"Hyper-V", map[string]string{vendor: "Microsoft Corporation", product: "Virtual Machine"}, "hyperv"},
		{"VMware", map[string]string{vendor: "VMware, Inc."}, "vmware"},
		{"QEMU alone", map[string]string{vendor: "QEMU"}, "qemu"},
		{"QEMU with KVM", map[string]string{vendor: "QEMU", clocks: "kvm-clock tsc"}, "kvm"},
		{"EC2", map[string]string{vendor: "Amazon EC2", product: "c5.large"}, "kvm"},
		{"EC2 bare metal", map[string]string{vendor: "Amazon EC2", product: "c5.metal"}, ""},
		{"Xen", map[string]string{"sys/hypervisor/type": "xen"}, "xen"},
		{"Xen's own domain", map[string]string{"sys/hypervisor/type": "xen", "proc/xen/capabilities": "control_d"}, ""},
		{"an arm guest", map[string]string{"proc/device-tree/hypervisor/compatible": "linux,kvm"}, "kvm"},
		{"a guest without firmware", map[string]string{"proc/cpuinfo": flag, clocks: "kvm-clock"}, "kvm"},
		{"one that says no name", map[string]string{"proc/cpuinfo": flag}, "vm"},
		{"Docker", map[string]string{".dockerenv": ""}, "container"},
		{"a pod by its group", map[string]string{"proc/1/cgroup": "0::/kubepods/pod1", vendor: "QEMU"},
			"qemu+container"},
		{"LXC by its environment", map[string]string{"proc/1/environ": "a=b\x00container=lxc"}, "container"},
		{"an environment that speaks of containers", map[string]string{"proc/1/environ": "mycontainer=x"}, ""},
	} {
		if got := virtualizationOf(c.files); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// FuzzVirtualization: for any contents of the files, the result is one of the known words.
func FuzzVirtualization(f *testing.F) {
	f.Add("QEMU", "kvm-clock", "flags : hypervisor", "container=x")
	f.Fuzz(func(t *testing.T, vendor, clock, cpuinfo, environ string) {
		got, container := strings.CutSuffix(virtualizationOf(map[string]string{
			"sys/class/dmi/id/sys_vendor":                                       vendor,
			"sys/devices/system/clocksource/clocksource0/available_clocksource": clock, "proc/cpuinfo": cpuinfo,
			"proc/1/environ": environ,
		}), inContainer)
		got = strings.TrimSuffix(got, "+")
		known := got == "" || got == "vm" ||
			slices.ContainsFunc(hypervisors, func(h struct{ mark, name string }) bool { return h.name == got })
		if !known || container && !strings.Contains(environ, "container=") {
			t.Errorf("%q, container %v", got, container)
		}
	})
}
