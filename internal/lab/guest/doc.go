// Package guest boots a Linux of its own under QEMU, with the real drivers of NICs, runs programs
// in it and returns their output.
//
// A namespace shares the kernel of the machine and has no NIC. Only a guest shows what a driver
// rounds, refuses or forgets, how a kernel of another age names a setting, and what remains when a
// card is pulled.
//
// # Model
//
//   - Options: processors, memory, cards, kernel modules, and programs of this machine to copy into
//     the guest.
//   - Guest: a guest that is up. [Guest.Run] runs a program in it, and [Guest.ReadFile] returns the
//     content of a file. It ends when it is closed and when the process that booted it ends.
//   - Disk: a Debian with its own systemd, for guests that restart or lose power; see [NewDisk].
//   - Init: the first thing that a program which calls [Boot] calls in main. In the first process
//     of a guest it serves the guest; elsewhere it does nothing.
//
// The kernel is that of Debian's package linux-image-amd64. apt-get downloads it once; the user's
// cache directory keeps it with the modules that a guest for networks can use. This package writes
// the initramfs (cpio, newc). It holds the program that called Boot as /init, the requested modules
// with their dependencies, and programs with their shared libraries. A guest without a disk keeps
// nothing when it ends.
//
// # A system on a disk
//
// With [Options].Disk the first process mounts the disk and becomes its /sbin/init. This program
// goes on as a unit of that system, from which [Guest.Run] runs programs. Boot returns when that
// unit is up; other units may still be starting. The image consists of Debian's packages without
// their maintainer scripts, so it has only the users that sysusers.d(5) asks for and only units
// that are enabled by name. [Guest.Close] is a power cut; [Guest.Wait] awaits a guest that
// restarts.
//
// # A container
//
// [Contain] starts the system on a disk without QEMU, on the kernel of this machine: in namespaces
// for processes, mounts, the network, names and control groups, with a control group of its own.
// It costs a tenth of a guest's processor time or less, and serves what needs a system but no
// kernel, driver or power cut of its own. The container sees no device of the machine, has only
// the loopback interface and what it makes, and can write no setting outside its network. The disk
// is mounted through a loop device. All processes end with the program that started them, and so do
// mounts and loop device; the empty control group of a killed program goes with the next container.
//
// # How host and guest talk
//
// A virtio-serial port in the guest is one end of a socket pair on the host; in a container it is a
// socket in the file system. Messages are JSON objects, one after another: requests go in; pieces
// of output and the exit status come out. When the port closes the guest turns itself off, so a
// killed test leaves nothing behind. The end of the console (a serial line) goes into the error
// message of a guest that dies.
//
// # Two clocks
//
// An ordinary guest lives in the time of its host: other work on the host looks like a slow
// processor. With [Options].Counted the guest's clock counts the instructions that it has executed,
// one a nanosecond. The guest then sees a 1 GHz processor without other users and produces the same
// figures on a busy host. Its seconds last longer than real ones while it works (about five times)
// and take no time while it waits. Such a guest uses a whole processor of its host when it is idle.
//
// # Units
//
// Memory in bytes. Exit statuses as in wait(2): a program that signal n killed has 128+n.
//
// # Sources
//
// Documentation/driver-api/early-userspace/buffer-format.rst (initramfs);
// Documentation/admin-guide/kernel-parameters.rst; init_module(2) and finit_module(2);
// switch_root(8), pivot_root(2), systemd(1) and sd_booted(3); systemd's CONTAINER_INTERFACE.md;
// modinfo(8) for the section .modinfo; qemu-system-x86_64(1); elf(5) and ld.so(8) for libraries.
//
// # Limits
//
// Linux on amd64, and Debian's package tools. The processor is emulated (TCG) even where KVM could
// provide one, so that results do not depend on the machine. A guest computes some twenty times
// slower than its host and is no place to measure speed in. QEMU runs in an empty network namespace
// of its own: no packet leaves the machine and none enters the guest. A container needs root and
// cgroup2, and shares the kernel: its clock, its log and the load are those of the machine.
package guest
