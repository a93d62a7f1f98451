// Package ground makes guests in which practice worlds are played: with a kernel whose settings may
// be changed, the drivers of real cards, and the program that made it as the program under test.
//
// # Model
//
//   - Options: what a scenario asks of its guest beyond what all get.
//   - Ground: a guest that is up. [Ground.Linerate] gives a command to the linerate in it.
//
// A world in a guest is made by the very code that makes it on the machine: hosts are namespaces of
// the guest's kernel. What differs is what joins them — two emulated cards on one wire, moved into
// the namespaces — and that the settings of the whole machine (net.core, conntrack, neighbour
// tables) may be written, since nobody else lives there.
//
// One guest serves scenario after scenario: a world that ends gives its cards back to the guest's
// first namespace. Booting costs six to ten seconds, so scenarios with equal options share one.
//
// # Sources
//
// The modules that a running kernel would load by itself, by the programs and settings that ask for
// them: modprobe(8) is not there.
//
// # Limits
//
// Those of package guest: Linux on amd64 with QEMU, and a Debian mirror once. The processor is
// emulated: see docs/design/0004 for what pairs of cards carry.
package ground
