// Package inventory holds what the hub knows of each host: its hardware and settings, when it last
// spoke, the class of like hosts, and in what it differs from them.
//
// # Model
//
// A node makes [Facts] of a snapshot and sends their hash with each sign of life; the hub fetches
// them when the hash is new. A [Store] holds the facts of all hosts in memory and nothing on disk:
// a hub that starts anew asks again.
//
// A class is what must be the same for a proof on one host to say anything about another: NIC model
// and firmware, driver and its version, kernel x.y, CPU model and nodes, virtual or bare, speed,
// MTU. Its name begins with driver, kernel and speed and ends in a hash of all of it:
// mlx5-6.12-100g-a1b2c3.
//
// A host differs from its class in a setting where at least four fifths of the class, and at least
// three hosts, have one other value ([Store.Outliers]). A kept change has drifted if the knob no
// longer holds what the change wrote.
//
// # Units
//
// Bits per second, bytes. Times are UTC by the clock of the hub.
//
// # Sources
//
// Package host for the facts; docs/design/0017-fleet.md for the class.
//
// # Limits
//
// The class follows from the fastest interface with a bus. At most [MostFacts] bytes a host. What a
// host says of itself is not proven: a host can put itself into any class.
package inventory
