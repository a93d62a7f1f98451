// Package swarm simulates the hosts of a fleet in one process, to measure a hub.
//
// # Model
//
// A [Swarm] runs nodes of package node with their own keys, connections and memberships, over real
// TCP and TLS, with a simulated source and a disk in memory: everything but the reading of a host
// and its disk is what a host runs. The disks of ten thousand hosts are not one disk, and seven
// syncs of each would be most of the result. Hosts are of some classes, some have drifted, and
// their documents have the size of real ones.
//
// # Units
//
// Bytes; times are durations.
//
// # Sources
//
// linerate inspect of a virtual machine has 23 kB, of a host with 40 VLANs 232 kB.
//
// # Limits
//
// A host needs one file descriptor here and one at the hub. Memory is some 150 kB a host. Only
// tests use it.
package swarm
