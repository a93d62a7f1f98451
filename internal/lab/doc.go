// Package lab makes practice worlds on one machine. A world has hosts in namespaces of their own, a
// link that joins them, and a known fault. The lab runs the ordinary commands of linerate in it and
// judges their results.
//
// # Model
//
//   - World: the hosts, how they are joined, and the settings that they start with. Pair is
//     near – far, Router is near – router – far.
//   - Running: a world that is up. It vanishes, with every process in it, when it is closed or when
//     the process that made it ends.
//   - Host: one host of a world. An agent process in network, mount, pid, uts and ipc namespaces of
//     its own starts commands there.
//   - Staged: the world of a scenario (package scenario) with its fault and its background work,
//     ready for one verdict; see package matrix.
//   - Result: what measure, diagnose, tune and undo made of a scenario, and the proof that every
//     setting is back.
//
// The agents are this binary, started again as the hidden command "linerate lab-host" (RunHost).
// One agent, the hub, owns the pid namespace of all others and the network namespace that links
// pass through; when it ends, the kernel ends everything in the world. The hub listens on an
// inherited socket and ends when that socket closes, so a killed parent leaves nothing behind.
// Without privileges the hub starts in a new user namespace, and the rest is the same. Package link
// has the emulated link.
//
// # Order of making and ending
//
// A world is made in this order: hub, hosts, settings, devices, addresses, routes. Every device
// thus begins with the settings that it is to have. A world ends with its hub: the pid namespace
// ends with the hub, network namespaces end with their last process, and devices end with their
// namespaces. The machine keeps nothing, and the disk only the state directory, so kill -9 of the
// maker at any moment leaves nothing to clean up.
//
// # Settings
//
// The agents set faults directly, without the journal, because faults belong to the world and end
// with it. Changes that the product makes go through the journal as always. An agent sets the kinds
// that faults need: sysctl, link, route, queue, qdisc, and what the catalogue of knobs writes to
// NICs (ethtool). A snapshot of a host contains every setting that a program could have changed, so
// two equal snapshots prove that no setting has changed.
//
// # Units
//
// Rates in bits per second, times in seconds in documents, sizes in bytes; names of settings as in
// the rest of the project.
//
// # Sources
//
// namespaces(7), user_namespaces(7), pid_namespaces(7), mount_namespaces(7), network_namespaces(7),
// prctl(2) for PR_SET_PDEATHSIG, unix(7) for SCM_RIGHTS and SCM_CREDENTIALS, veth(4); proc(5) for
// sysctls as files below /proc/sys; tc(8) for the words of queueing disciplines;
// Documentation/networking/scaling.rst for rps_cpus.
//
// # Limits
//
// Linux only; elsewhere Up returns ErrNotSupported. Global settings (net.core.*) belong to the
// machine, so only a guest can have faults in them. In containers that mask /proc a host keeps the
// outer /proc, and Running.Warnings says so. A world can use only the kernel's unrestricted
// congestion controls: reno and those that net.ipv4.tcp_allowed_congestion_control of the machine
// adds.
package lab
