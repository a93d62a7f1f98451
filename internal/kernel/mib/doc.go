// Package mib reads and writes the management information base of a FreeBSD kernel: the settings
// that sysctl(8) shows.
//
// # Model
//
// A [Tree] looks up nodes by name. [Kernel] is that of the running kernel, through the system call
// __sysctl; [Dump] is the text of `sysctl -a` from another machine, which can be changed as a
// kernel would change it. A [Node] has a value as text and says whether it can be written now or
// only by the loader.
//
// # Units
//
// Those of the kernel; values are decimal numbers or texts.
//
// # Sources
//
// sysctl(3), sysctl(9), sys/sysctl.h of FreeBSD 14 (types, flags, the nodes 0.1 to 0.4 that name,
// list and describe others).
//
// # Limits
//
// Structures (kern.boottime, tables) have no value here. Kernel is of 64-bit systems.
package mib
