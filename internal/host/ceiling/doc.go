// Package ceiling computes the rates that a host cannot pass: those of its links, buses,
// interrupts, rings and socket buffers.
//
// # Model
//
// [All] is a pure function of a [host.Snapshot]: it reads nothing, measures nothing and gives the
// same answer on any machine. A [Rate] has a name, bits per second, and in Why the formula with the
// facts that went into it and where the formula comes from, so that nobody has to believe it. A
// fact that is not known gives no ceiling, and neither does a number that nobody's hardware stands
// behind: the speed of a veth, or of a card that a hypervisor imitates. What a measurement has to
// be brought for is apart: [Core], and [Window] for a path of known round trip.
//
// # Units
//
// Bits per second. Those of a link, of packets and of rings count the whole frame on the wire, with
// preamble and gap; goodput and windows count payload; those of a bus count what passes the slot,
// both directions together where the bus is shared by them.
//
// # Sources
//
// IEEE 802.3 for frames; RFC 791, 8200, 9293 and 7323 for headers and windows;
// Documentation/networking/ip-sysctl.rst and admin-guide/sysctl/net.rst for what the settings mean;
// packages bus and moderation for slots and interrupts, with sources of their own.
//
// # Limits
//
// Upper bounds, one at a time: what two of them do to each other (a full ring on a slow bus) is for
// a measurement to say. Ceilings of packets hold for packets as the wire has them; where a card or
// the kernel joins frames, fewer and larger ones pass.
package ceiling
