// Package live reads and writes the knobs of the running system.
//
// # Model
//
// A [Host] is the knob.Backend of the system that the program runs on. It knows one way for each
// kind of knob: sysctls are files of /proc/sys; links, cards, routes and queueing disciplines are
// asked for by netlink; queues, interrupts, modules, processors, PCIe devices and disks are files
// of sysfs and /proc; NFS options are in the table of mounts. [Host.Instances] lists which knobs of
// a definition this host has.
//
// Nothing is held open between calls. A call acts in the network namespace of the calling thread,
// and finds out by itself where that stands ([Here]): what belongs to the whole host is refused in
// a container.
//
// A write checks the form, leaves the range to the kernel (an original outside of the catalogue's
// range must go back), and may be rounded: whoever writes reads back. Errors are *knob.Error, with
// a hint where there is something to do.
//
// # Units
//
// Those of the kernel, as the definition of a knob names them; values are text in canonical form.
//
// # Sources
//
// proc(5), sysfs(5), Documentation/ABI/testing/sysfs-class-net{,-queues},
// Documentation/core-api/irq/irq-affinity.rst, nfs(5), and the sources of package nl and its rooms.
//
// # Limits
//
// Linux only so far: all kinds but registry, ipadm and dladm, which are those of other systems,
// where every answer is knob.ErrNotSupported. What is a file of sysfs (queues, some of link) works
// only where /sys shows the namespace of the thread. A qdisc with parameters that somebody set is
// not replaced by another kind. Interrupts and modules belong to the whole host. A sysctl that the
// kernel keeps for the whole host is absent or read-only in other network namespaces (knob.Place).
// Only package journal may call Write.
package live
