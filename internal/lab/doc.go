// Package lab makes practice worlds on one machine: hosts in namespaces of their own joined by a
// link, with a known fault, on which the ordinary commands of linerate are run and judged.
//
// # Model
//
//   - World: which hosts there are, how they are joined, and the settings they all start with. Pair
//     is near – far, Router is near – router – far.
//   - Running: a world that is up. It vanishes, with every process in it, when it is closed or when
//     the process that made it dies.
//   - Host: one host of it, an agent process in network, mount, pid, uts and ipc namespaces of its
//     own that starts commands there.
//   - Staged: the world of a scenario (package scenario) with its fault planted and the work under
//     way, for one verdict; see package matrix.
//   - Result: what measure, diagnose, tune and undo made of a scenario, and the proof that every
//     setting is back.
//
// The agents are our own binary started again as the hidden command "linerate lab-host" (RunHost).
// One of them, the hub, owns the pid namespace that all others live in and the network namespace
// through which links run; when it ends the kernel ends everything else. It listens on an inherited
// socket and ends when that closes, so a killed parent leaves nothing behind. Without privileges
// the hub is started in a new user namespace, and the rest is the same. See package link for the
// emulated link.
//
// # Order of life and death
//
// A world is built hub, hosts, settings, devices, addresses, routes, so that every device is born
// with the settings it is to have. It dies from the hub: its pid namespace ends with it, the
// network namespaces end with their last process, and devices end with their namespaces. There is
// nothing to clean up on the machine and nothing on disk but the state directory, so kill -9 of the
// maker at any moment leaves nothing behind.
//
// Faults are set by the agents directly: that is the lab making its world. Changes that the product
// makes go through journal as always.
//
// # Units
//
// Rates in bits per second, times in seconds in documents, sizes in bytes; setting names as in the
// rest of the project.
//
// # Sources
//
// namespaces(7), user_namespaces(7), pid_namespaces(7), mount_namespaces(7), network_namespaces(7),
// prctl(2) for PR_SET_PDEATHSIG, unix(7) for SCM_RIGHTS and SCM_CREDENTIALS, veth(4).
//
// # Limits
//
// Linux only; elsewhere Up answers ErrNotSupported. Global settings (net.core.*) are those of the
// machine and can be faults in a guest alone. In containers that mask /proc a host keeps the outer
// /proc and says so in Running.Warnings. Congestion controls other than the kernel's unrestricted
// ones (reno and what net.ipv4.tcp_allowed_congestion_control of the machine adds) cannot be set in
// a world.
package lab
