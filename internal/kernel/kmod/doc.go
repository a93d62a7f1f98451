// Package kmod loads and unloads kernel modules with the kernel's own system calls, without
// modprobe(8).
//
// # Model
//
// A [Tree] is the directory of modules of the running kernel. [Tree.Ready] reports whether a module
// can be loaded, before anything is unloaded; [Tree.Load] loads it after the modules that it needs;
// [Unload] removes it. Parameters are the text that the kernel takes: NAME=VALUE parted by blanks.
//
// # Units
//
// None.
//
// # Sources
//
// init_module(2) for finit_module and its flags, delete_module(2), modules.dep(5),
// Documentation/ABI/testing/sysfs-module (/sys/module/compression, Linux 5.17),
// Documentation/admin-guide/sysctl/kernel.rst for modules_disabled.
//
// # Limits
//
// Linux. A compressed module needs a kernel that unpacks it (5.17 with CONFIG_MODULE_DECOMPRESS);
// on others insmod(8) loads it, if it is installed. Aliases, blacklists and install lines of
// modprobe.d(5) are not read: the caller names the module and its parameters.
package kmod
