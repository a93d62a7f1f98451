// Package swarm simulates the hosts of a fleet in one process, to measure a hub.
//
// # Model
//
// A [Swarm] runs nodes of package node with their own keys, connections and memberships, over real
// TCP and TLS, and with a simulated source: everything but the reading of a host is what a host
// runs. Hosts are of some classes, some have drifted, and their documents have the size of real
// ones.
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
