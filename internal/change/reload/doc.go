// Package reload changes parameters of a NIC driver that the module reads only while it is loaded:
// it unloads the module, loads it with the new value, and gives its interfaces back all that they
// had.
//
// # Model
//
// A [Driver] is one module. Its parameters have no files in sysfs, so a note in /run records what
// the module was loaded with. Without a note, the configuration of modprobe is taken for that, and
// [Driver.Keep] records it before our part of the configuration goes. [Driver.Set] takes a picture
// of every interface of the driver (package standing, its knobs, its sysctls, the affinity of its
// interrupts, what wakes the host, the driver's message level), records it in the note, and then
// goes through these steps:
//
//	note with the picture → unload → load → note of the parameters → name and dress → up →
//	addresses, routes, … → knobs → compare → note without the picture
//
// A process that is killed between two steps leaves the picture in the note. The next Set of any
// value, by the guard or by recovery, begins with a new load and puts that picture back. The note
// is in a file system that ends with the kernel, as the module does: after a power cut nothing is
// left of either.
//
// A parameter sets what a knob sets too (InterruptThrottleRate and coalesce.rx-usecs). The knob
// then follows the parameter, and its value from before comes back with the parameter's.
//
// Refused before anything is touched: what package standing cannot put back, an adapter whose
// interface is in another network namespace or wakes the host by a password, a module that
// something uses, and one whose file the kernel cannot load.
//
// # Units
//
// Those of the module: see package moderation.
//
// # Sources
//
// Documentation/networking/device_drivers/ethernet/intel/{e1000,e1000e}.rst for the parameters;
// delete_module(2) and finit_module(2), see package kmod; modprobe(8) for parameters on the
// kernel's command line.
//
// # Limits
//
// Linux; e1000 and e1000e ([Modules]). A module that an initial ramdisk loaded may have got other
// parameters than the files have now. Sockets bound to the index of an interface, memberships in
// multicast groups, captures and counters do not survive. The interfaces get new indexes, so
// changes of their other settings that are in the journal must be undone first.
package reload
