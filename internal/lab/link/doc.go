// Package link emulates an Ethernet link in user space. It carries frames between two interfaces
// with a given rate, delay, jitter, loss, queue and MTU, separately for each direction. It needs
// neither netem nor any privilege beyond a user namespace.
//
// # Model
//
//   - Params: what one direction does to frames.
//   - Line: one direction as pure arithmetic on a clock that the caller reads. A frame that enters
//     may be policed, is queued and serialised, may be lost, is delayed, and leaves. A Line does
//     not know sockets, and tests run it on a virtual clock.
//   - Frame: one Ethernet frame, or a super-frame of many TCP or UDP segments (GSO) that represents
//     as many frames on the wire.
//   - Link: two Lines between two interfaces. One locked thread per Line moves the frames over
//     AF_PACKET sockets.
//
// The two interfaces are the inner ends of veth pairs. PACKET_VNET_HDR delivers super-frames of up
// to 64 kB with segmentation and checksum still to do, as a NIC with TSO and GRO would, so 1 Gb/s
// costs a fraction of one CPU. The arithmetic is still per wire segment. A super-frame takes the
// time of all its segments with their own headers and framing; every segment may be lost
// separately; and a tail drop removes only the segments that do not fit. The remaining segments
// continue as smaller super-frames with the lengths, identifiers, sequence numbers, flags and
// checksums that the segments would have had.
//
// # Units
//
// Rates are bits per second on the wire: one frame costs its Ethernet length (at least 60 bytes)
// and 24 bytes of checksum, preamble and inter-frame gap. 1 Gb/s with 1500-byte packets therefore
// carries 941.5 Mb/s of TCP payload (1448 of 1538 bytes, with timestamps). Times are seconds in
// Params and durations on the Line's clock; sizes are bytes; a queue counts wire bytes.
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
// Linux only (elsewhere Start returns ErrNotSupported). VLAN tags that the kernel keeps beside the
// frame are not carried. A super-frame arrives when its last segment does. A host sends a
// super-frame at once where a NIC would spread it over the time of the wire, so a queue shorter
// than a super-frame (64 kB) drops more than a real switch would. Waiting is exact to some tens of
// microseconds, and less exact when the CPUs are busy. Lateness never accumulates, because
// departure times come from arithmetic and not from the waiting. Queue and delay bound the memory,
// which is released when the link closes (10 Gb/s and 60 s would need 75 GB).
package link
