// Package datagram sends and receives UDP in bulk, at a rate or as fast as possible, in batches,
// and accounts for every packet.
//
// # Model
//
// A [Socket] is one connected UDP socket. [NewSender] and [NewReceiver] make workers of package
// engine around it. Every datagram starts with a [Header], which carries a [Mark]: its sequence
// number, its send time, and whether it belongs to the measured window. Foreign dialects bring
// their own headers. A [Batch] is how datagrams go through system calls: one per call, several per
// call, or several per message that the kernel splits and merges (GSO, GRO).
//
// A sender with a rate follows a schedule in absolute time, so that delays do not add up. It makes
// up for a delay at twice the rate at most, and only for as much as a twentieth of a second; it
// forgives more. So it sends no bursts beyond those it plans where single packets would be closer
// together than system calls can be. [Sent] has the planned burst and the gaps achieved.
//
// A receiver keeps a window of the last 131072 sequence numbers, one bit each. What arrived once,
// twice, or after a later one is counted exactly; what is older than the window is late, and the
// receiver cannot know whether it arrived before. Loss is what the sender sent minus what arrived;
// no estimate is involved. Datagrams that the sender cannot have sent, by their number or their
// time, are strays. The first one counts too where the ends agree on its number, see
// [RandomNumber].
//
// # Units
//
// Payload bytes, without headers of IP and UDP; bits and packets per second; durations. Clocks:
// [Mark.Sent] is sys.Monotonic of the sender.
//
// # Sources
//
// sendmmsg(2), recvmmsg(2), udp(7), ip(7), socket(7). UDP_SEGMENT: Linux 4.18,
// Documentation/networking/segmentation-offloads.rst. UDP_GRO: Linux 5.0. SO_RXQ_OVFL: Linux
// 2.6.33. SO_MEMINFO: Linux 4.12. Jitter: RFC 3550 §6.4.1. Packet delay variation: RFC 5481 §4.2.
// Reordering: RFC 4737 §3.3. Duplicates: RFC 5560.
//
// # Limits
//
// Batches, and the kernel's arrival times and drop counts, are Linux only; elsewhere datagrams go
// one by one through package net, and [Connected] is not supported. A merged message has one
// arrival time and one send time, so the jitter of unpaced GSO traffic is that of messages. The
// kernel counts the drop of a merged message as one, see [Received]. The pacer knows when the
// kernel took a packet, not when the NIC sent it. Where packets are closer than 120 µs it spins,
// which occupies a CPU; otherwise it sleeps.
package datagram
