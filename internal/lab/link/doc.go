// Package link is an emulated Ethernet link in user space: it carries frames between two interfaces
// with a given rate, delay, jitter, loss, queue and MTU, each direction apart, on kernels without
// netem and without any privilege beyond a user namespace.
//
// # Model
//
//   - Params: what one direction does to frames.
//   - Line: one direction as pure arithmetic on a clock that the caller reads. A frame that goes in
//     is perhaps policed, queued, serialised, perhaps lost, delayed, and comes out. It knows
//     nothing of sockets and is tested on a virtual clock.
//   - Frame: one Ethernet frame, or a super-frame of many TCP or UDP segments (GSO) that stands for
//     as many frames on the wire.
//   - Link: two Lines between two interfaces, each moved by one locked thread over AF_PACKET
//     sockets.
//
// The two interfaces are the inner ends of veth pairs. PACKET_VNET_HDR hands over super-frames of
// up to 64 kB with their segmentation and checksum still to do, as a card with TSO and GRO would,
// so that 1 Gb/s costs a fraction of one CPU. The arithmetic is per wire segment all the same: a
// super-frame takes the time of all its segments with their own headers and framing, every segment
// may be lost by itself, and a tail drop takes only those that no longer fit; what is left goes on
// as smaller super-frames with lengths, identifiers, sequence numbers, flags and checksums as the
// segments would have had.
//
// # Units
//
// Rates are bits per second on the wire: one frame costs its Ethernet length (at least 60 bytes)
// and 24 bytes of checksum, preamble and inter-frame gap. 1 Gb/s with 1500-byte packets therefore
// carries 941.5 Mb/s of TCP payload (1448 of 1538 bytes, with timestamps). Times are seconds in
// Params and durations on the Line's clock, sizes are bytes; a queue counts wire bytes.
//
// # Sources
//
// packet(7); include/uapi/linux/if_packet.h (PACKET_VNET_HDR since 2.6.27, PACKET_QDISC_BYPASS
// since 3.14, PACKET_IGNORE_OUTGOING since 4.20, TPACKET_V2 ring:
// Documentation/networking/packet_mmap.rst); prctl(2) for timer slack; sched(7) for SCHED_RR;
// include/uapi/linux/virtio_net.h for the 10-byte header; IEEE 802.3 clause 4 for framing; RFC 1071
// for checksums; RFC 2697 §3 for token buckets; E. N. Gilbert, Capacity of a burst-noise channel,
// BSTJ 39 (1960), for bursts of loss; net/ipv4/tcp_offload.c and net/ipv4/udp_offload.c for what
// segmentation does to each header.
//
// # Limits
//
// Linux only (elsewhere Start answers ErrNotSupported). No VLAN tags that the kernel keeps beside
// the frame. A super-frame arrives when its last segment does. A host hands over a super-frame at
// once where a card would spread it over the wire's time, so queues of less than a super-frame (64
// kB) drop more than a real switch would. Waiting is exact to some tens of microseconds, more when
// the CPUs are busy; being late never accumulates, because departure times come from arithmetic,
// not from the waiting. Memory is bounded by what queue and delay hold (10 Gb/s and 60 s would be
// 75 GB: choose with care) and is not given back before the link closes.
package link
