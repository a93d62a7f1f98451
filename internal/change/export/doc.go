// Package export writes a proven set of changes for other hosts: as an Ansible playbook, a TuneD
// profile, a shell script, a NixOS module.
//
// # Model
//
// A [Set] is what one host has changed, with where and by what it was proven. [Write] makes a
// [Bundle] of it in one [Format]: files, the interfaces that became variables, and what was left
// out and why. Every setting is reached in one of few ways ([way]): a sysctl, a file of sysfs, a
// command of ethtool, ip or tc, or an option that a module takes when it is loaded.
//
// What a format can say in words of its own it says so (ansible.posix.sysctl, TuneD's [sysctl] and
// [net], boot.kernel.sysctl). All the rest is done by one engine, a POSIX shell script (engine.sh)
// that is in each bundle which needs it: it reads before it writes, saves what was there before and
// never again, reads back, and puts back only what is still its own. So four formats have one thing
// to trust.
//
// # Units
//
// Values are texts in the canonical form of the knob (package knob). Effects are ratios of the
// objective: 1 is no change.
//
// # Safety
//
// Everything that comes from a host or a document (names, values, kernels) is quoted for the
// language that it goes into, and reduced to printable characters in comments. A value that a
// language cannot carry is left out with a reason rather than bent.
//
// # Sources
//
// POSIX.1-2017 XCU chapter 2 (shell); ansible.posix.sysctl and ansible.builtin.{command,copy} of
// ansible-core 2.14; tuned.conf(5) and the plug-ins sysctl, net, script and modules of TuneD
// 2.20.0; the NixOS options boot.kernel.sysctl, boot.extraModprobeConfig, boot.kernelParams and
// systemd.services; ethtool(8) 6.1, ip-link(8), ip-route(8), tc(8), modprobe.d(5),
// systemd.device(5).
//
// # Limits
//
// Linux. What names a part of one machine (an interrupt by number, a PCI address, the layout of a
// hash) is not carried to another one. The engine reads what ethtool, ip and tc print; it was tried
// with the versions above. Proof does not travel: what helped on one host may do nothing on
// another, and every file says so.
package export
