// Package bus finds the bus of a card and the capacity of its slot: PCI Express, PCI-X,
// conventional PCI, EISA, ISA, USB, virtio.
//
// # Model
//
// A [Machine] is a [Tree] to read (sysfs, of the running system or of an archive) with the facts
// about the computer that decide what to trust. [Machine.Slot] returns the [Slot] of one device:
// kind of bus, address, capacity now and at best, and the devices that share it. The device is
// named by its real path in the tree of buses ("sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0"),
// in which every directory above it is a bridge that its data pass. [Machine.Locate] finds that
// path from an address.
//
// A capacity is given only with evidence. sysfs does not show the clock of a parallel bus, and
// hypervisors emulate buses that carry as much as the processor copies. In these cases the capacity
// is 0, which always means not known.
//
// # Units
//
// Capacities are nominal bits per second, after line coding and before any protocol of the bus
// (packet headers, arbitration, descriptors). A card gets less, and [Slot.Efficiency] returns how
// much less. Capacities are per direction for PCIe, for both directions together for PCI, PCI-X and
// USB 2. Speeds of PCIe are gigatransfers per second and lane, clocks are megahertz.
//
// # Sources
//
// Documentation/ABI/testing/sysfs-bus-pci and sysfs-bus-usb; drivers/pci/{pci-sysfs,probe,slot}.c
// and include/uapi/linux/pci_regs.h; PCI Local Bus Specification 3.0; PCI-X Addendum 2.0; EISA
// Specification 3.12; PCI Express Base Specification 5.0 and 6.0; USB 2.0 and 3.2.
//
// # Limits
//
// Linux only, because sysfs is. Before Linux 4.13, and always for a conventional bus, the
// configuration space is needed: ordinary users may read 64 bytes of it, and only root the
// capabilities behind them. Reading it changes nothing, but may wake a sleeping device.
package bus
