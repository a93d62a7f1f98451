// Package layers names what lies between a file and the medium that keeps it, with the evidence for
// each layer.
//
// # Model
//
// [Find] starts at the place of an open file ([sys.FileAt]) and goes down: the mount, an overlay,
// the partition, loop devices and the files behind them, device mapper, RAID, and the disks at the
// bottom. A [Stack] lists the layers from the file downwards. Each [Layer] has its device, and a
// disk has its [Queue], its [Medium] and its [Link]. [Stack.Bottom] are the devices at which the
// bytes must arrive; where an array writes a byte more than once, [Stack.Counted] stops above it.
//
// A layer that cannot be named is not guessed: Find adds a sentence to [Stack.Unknown] instead, as
// in a container that hides /sys.
//
// # Units
//
// Bytes, bits per second, microseconds where the kernel's file has them; each key has its unit.
//
// # Sources
//
// Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-block-{dm,loop},
// Documentation/admin-guide/{md,iostats}.rst, Documentation/ABI/testing/sysfs-ata,
// proc_pid_mountinfo(5), overlay(5). Names of virtual disks: the vendor strings of QEMU, VMware,
// Hyper-V, Xen and of virtio.
//
// # Limits
//
// Linux only. File systems with devices of their own (btrfs, ZFS, bcachefs) show the devices of
// their mount source; ZFS shows none. The target types of device mapper (cache, writecache, crypt)
// are known only by their UUID. A RAID controller or a SAN looks like a disk.
package layers
