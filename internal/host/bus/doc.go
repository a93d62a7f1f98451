// Package bus tells where a card sits and what its slot carries: PCI Express, PCI-X, conventional
// PCI, EISA, ISA, USB, virtio.
//
// # Model
//
// A [Machine] is a [Tree] to read (sysfs, of the running system or of an archive) and what has to
// be known of the computer to believe it. [Machine.Slot] answers for one device with a [Slot]: kind
// of bus, address, capacity now and at best, and who shares it. The device is named by its real
// path in the tree of buses ("sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0"), in which every
// directory above it is the bridge that its data go through; [Machine.Locate] finds that path from
// an address.
//
// A capacity is given only where something says it. sysfs does not tell the clock of a parallel
// bus, and hypervisors imitate buses that carry whatever the processor copies; there the capacity
// stays 0, which means not known and never nothing.
//
// # Units
//
// Capacities are nominal bits per second, after line coding and before any protocol of the bus
// (packet headers, arbitration, descriptors): what a card gets out of it is less, and
// [Slot.Efficiency] says how much less. They are per direction for PCIe, for both directions
// together for PCI, PCI-X and USB 2. Speeds of PCIe are gigatransfers per second and lane, clocks
// are megahertz.
//
// # Sources
//
// Documentation/ABI/testing/sysfs-bus-pci and sysfs-bus-usb; drivers/pci/{pci-sysfs,probe,slot}.c
// and include/uapi/linux/pci_regs.h; PCI Local Bus Specification 3.0; PCI-X Addendum 2.0; EISA
// Specification 3.12; PCI Express Base Specification 5.0 and 6.0; USB 2.0 and 3.2.
//
// # Limits
//
// Linux only, as sysfs is. Before Linux 4.13, and for a conventional bus always, the configuration
// space is needed, of which everybody may read 64 bytes and only root the capabilities behind them.
// Reading it changes nothing, though it may wake a sleeping device.
package bus
