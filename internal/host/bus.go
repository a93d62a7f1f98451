package host

import (
	"github.com/linerate/linerate/internal/host/bus"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// machine is what package bus is told of this host. It reads through src, so an archive is never
// left and a copy being made has every file that was looked at.
func machine(src *source, s *Snapshot) bus.Machine {
	return bus.Machine{
		Tree:  bus.Tree{Read: src.wakeful, List: src.List, Link: src.Link, Resolve: src.Resolve},
		Guest: s.VirtualMachine(),
		// {current,max}_link_{speed,width} came with Linux 4.13 (sysfs-bus-pci).
		ShowsLinks: procfs.KernelAtLeast(s.Kernel, 4, 13),
	}
}

// readBus tells where the card of an interface sits; nil: on no bus, or nobody says where. address
// is what the driver tells. own: sysfs shows this network namespace; where it shows another one,
// the address is looked for in /sys/bus, which is not divided by them.
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
