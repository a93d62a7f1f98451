package host

import (
	"github.com/linerate/linerate/internal/host/bus"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// machine returns what package bus needs to know about this host. It reads through src, so it never
// leaves an archive, and a copy contains every file that was read.
func machine(src *source, s *Snapshot) bus.Machine {
	return bus.Machine{
		Tree:  bus.Tree{Read: src.wakeful, List: src.List, Link: src.Link, Resolve: src.Resolve},
		Guest: s.VirtualMachine(),
		// {current,max}_link_{speed,width} came with Linux 4.13 (sysfs-bus-pci).
		ShowsLinks: procfs.KernelAtLeast(s.Kernel, 4, 13),
	}
}

// readBus finds the bus of an interface; nil if it is on no bus or the bus is not known. address is
// what the driver reports. own: sysfs shows this network namespace. If it shows another one,
// readBus searches for the address in /sys/bus, which namespaces do not divide.
func readBus(src *source, m bus.Machine, name, address string, own bool) *Bus {
	var device string
	if own {
		device, _ = src.Resolve("sys/class/net/" + name + "/device")
	} else {
		device, _ = m.Locate(address)
	}
	slot, ok := m.Slot(device)
	if !ok {
		return nil
	}
	b := Bus(slot)
	return &b
}
