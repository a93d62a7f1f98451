// Package export writes a proven set of changes for other hosts: as an Ansible playbook, a TuneD
// profile, a shell script, or a NixOS module.
//
// # Model
//
// A [Set] is the changes of one host, with where and by what they were proven. [Write] makes a
// [Bundle] of it in one [Format]: files, the interfaces that became variables, and the changes left
// out, with reasons. Every setting is reached in one of a few ways ([way]): a sysctl, a file of
// sysfs, a command of ethtool, ip or tc, or an option that a module takes when it is loaded.
//
// A format uses its own means where it has them (ansible.posix.sysctl, TuneD's [sysctl] and [net],
// boot.kernel.sysctl). One engine does the rest, a POSIX shell script (engine.sh) in each bundle
// that needs it: it reads before it writes, saves the previous value only once, reads back, and
// restores only values that it set. So the four formats share one piece of code to trust.
//
// # Units
//
// Values are texts in the canonical form of the knob (package knob). Effects are ratios of the
// objective: 1 is no change.
//
// # Safety
//
// Everything that comes from a host or a document (names, values, kernels) is quoted for its target
// language, and reduced to printable characters in comments. A value that a language cannot
// represent is left out with a reason, not altered.
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
// Linux. Settings that name a part of one machine (an interrupt by number, a PCI address, the
// layout of a hash) are not exported. The engine parses the output of ethtool, ip and tc; it was
// tested with the versions above. Proof does not transfer: a change that helped one host may have
// no effect on another, and every file says so.
package export
