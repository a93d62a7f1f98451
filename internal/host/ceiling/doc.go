// Package ceiling computes the rates that a host cannot exceed: those of its links, buses,
// interrupts, rings and socket buffers.
//
// # Model
//
// [All] is a pure function of a [host.Snapshot]: it reads nothing, measures nothing and returns the
// same result on any machine. A [Rate] has a name, bits per second, and in Why the formula with its
// facts and its source, so that readers can check it. An unknown fact gives no ceiling. Neither
// does a number without hardware behind it, such as the speed of a veth or of an emulated card. Two
// functions need a measurement: [Core], and [Window] for a path of known round trip.
//
// # Units
//
// Bits per second. Ceilings of links, packets and rings count the whole frame on the wire, with
// preamble and gap; goodput and windows count payload; those of a bus count what passes the slot,
// for both directions together where they share the bus.
//
// # Sources
//
// IEEE 802.3 for frames; RFC 791, 8200, 9293 and 7323 for headers and windows;
// Documentation/networking/ip-sysctl.rst and admin-guide/sysctl/net.rst for what the settings mean;
// packages bus and moderation for slots and interrupts, with sources of their own.
//
// # Limits
//
// Upper bounds, one at a time: only a measurement shows how two of them interact (a full ring on a
// slow bus). Ceilings of packets hold for packets as on the wire; where a NIC or the kernel merges
// frames, fewer and larger ones pass.
package ceiling
