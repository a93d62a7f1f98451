// Package icmp measures a host that runs nothing of ours and answers echo requests, as nearly every
// kernel does: its round trip, and the largest packets that the way there and back takes in one
// piece.
//
// # Model
//
// [Run] is one test, alone on this side: package echo sends and times, this host's counters are
// read around it, and what only the far end could tell is absent in the result.
//
// # Units
//
// Seconds; payload bytes of pings, and whole IP packets for path MTUs.
//
// # Sources
//
// RFC 792 and RFC 4443 (echo), RFC 4821 and RFC 8899 (search of the path MTU); icmp(7).
//
// # Limits
//
// Linux, and a host that lets this user send echo requests (net.ipv4.ping_group_range, or
// CAP_NET_RAW). An answer is as large as its request, so a path MTU is the smaller of both
// directions, and a black hole may be in either. Kernels answer echo requests at a limited rate
// (net.ipv4.icmp_msgs_per_sec), and firewalls often not at all.
package icmp
