// Package live reads and writes the knobs of the running system.
//
// # Model
//
// A [Host] is the knob.Backend of the system that the program runs on. It has one way for each kind
// of knob. Sysctls are files of /proc/sys. Links, NICs, routes and queueing disciplines are read
// and written over netlink. Queues, interrupts, modules, CPUs, PCIe devices and disks are files of
// sysfs and /proc. NFS options are in the table of mounts. [Host.Instances] lists which knobs of a
// definition this host has.
//
// A parameter of a NIC driver that has no file is written by loading the module again (package
// reload); [Host.Displaces] names the interfaces that this creates anew.
//
// The package holds nothing open between calls. A call acts in the network namespace of the calling
// thread and determines where that is ([Here]): in a container it refuses settings of the whole
// host.
//
// A write checks the form and leaves the range to the kernel, because an original outside the
// catalogue's range must go back. The kernel may round the value: the caller reads it back. Errors
// are *knob.Error, with a hint where the user can act.
//
// # Units
//
// Those of the kernel, as the definition of a knob states them; values are text in canonical form.
//
// # Sources
//
// proc(5), sysfs(5), Documentation/ABI/testing/sysfs-class-net{,-queues},
// Documentation/core-api/irq/irq-affinity.rst, nfs(5), and the sources of package nl and its rooms.
//
// # Limits
//
// On FreeBSD, illumos, Solaris and Windows, Host is that of package native, with the kinds of those
// systems; on any further system every call returns knob.ErrNotSupported. Files of sysfs (queues,
// some of link) work only where /sys shows the namespace of the thread. A qdisc whose parameters
// were set by hand is not replaced by another kind. Interrupts and modules belong to the whole
// host. A sysctl that the kernel keeps for the whole host is absent or read-only in other network
// namespaces (knob.Place). Only package journal may call Write.
package live
