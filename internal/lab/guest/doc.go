// Package guest boots a Linux of its own under QEMU, with the real drivers of real cards, runs
// programs in it and brings back what they said.
//
// A namespace shares the kernel of the machine and has no card: what a driver rounds, refuses or
// forgets, what a kernel of another age calls a setting, and what is left when a card is pulled are
// seen in a guest alone.
//
// # Model
//
//   - Options: processors, memory, cards, kernel modules, and programs of this machine to take
//     along.
//   - Guest: one that is up. [Guest.Run] runs a program in it, [Guest.ReadFile] brings a file back.
//     It ends when it is closed and when the process that booted it dies.
//   - Disk: a Debian with its own systemd, for guests that are restarted or lose their power. See
//     [NewDisk].
//   - Init: what the calling program does when it is the first process of a guest. Who calls [Boot]
//     calls Init first of all in main.
//
// The kernel is that of Debian's package linux-image-amd64, downloaded by apt-get once and kept
// below the user's cache directory with those of its modules that a guest for networks can use. The
// initramfs is written here (cpio, newc): the program that called Boot, as /init, the modules asked
// for with what they depend on, and programs with their shared libraries. What is written in a
// guest is gone with it, unless it has a disk.
//
// # A system on a disk
//
// With [Options].Disk the first process mounts the disk and becomes its /sbin/init; we go on as a
// unit of it, [Guest.Run] runs programs from there, and Boot returns when that unit is up, which
// other units may not be yet. The image is made of Debian's packages, whose maintainer scripts are
// not run: no user but what sysusers.d(5) asks for, no unit that is not enabled by name.
// [Guest.Close] is a power cut, [Guest.Wait] awaits a guest that restarts.
//
// # How the two talk
//
// A virtio-serial port in the guest is one end of a socket pair on the host. Messages are JSON
// objects, one after another: requests go in, pieces of output and the exit status come out. When
// the port closes the guest turns itself off, so that a killed test leaves nothing behind. The
// console (a serial line) is kept for the error message of a guest that dies.
//
// # Two clocks
//
// An ordinary guest lives in the time of its host: what its host is busy with it sees as a slow
// processor. With [Options].Counted its clock is the number of instructions that it has executed,
// one a nanosecond, so that it sees a processor of 1 GHz that nobody else uses, and goes through
// the same figures whatever else runs; its seconds last longer than ours while it works (five
// times, about) and no time at all while it waits. Such a guest burns a processor of its host
// whenever it has nothing to do.
//
// # Units
//
// Memory in bytes. Exit statuses as in wait(2): a program that was killed by signal n has 128+n.
//
// # Sources
//
// Documentation/driver-api/early-userspace/buffer-format.rst (initramfs);
// Documentation/admin-guide/kernel-parameters.rst; init_module(2) and finit_module(2);
// switch_root(8), systemd(1) and sd_booted(3); modinfo(8) for the section .modinfo;
// qemu-system-x86_64(1); elf(5) and ld.so(8) for libraries.
//
// # Limits
//
// Linux on amd64, and Debian's package tools. The processor is emulated (TCG) even where it could
// be borrowed (KVM), so that results do not depend on the machine: a guest computes some twenty
// times slower than its host and is no place to measure speed in. QEMU runs in a network namespace
// of its own, in which there is nothing: no packet of a guest leaves the machine, and none gets in.
package guest
