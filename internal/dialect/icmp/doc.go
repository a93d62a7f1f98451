// Package icmp measures a host that runs no server but answers echo requests, as nearly every
// kernel does. It measures the round trip, and the largest packet that passes in both directions
// without fragmentation.
//
// # Model
//
// [Run] runs one test from this end alone. Package echo sends the requests and times the answers;
// the counters of this host are read before and after. The result lacks everything that only the
// far end could report.
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
// Linux only, and only where this user may send echo requests (net.ipv4.ping_group_range or
// CAP_NET_RAW). An answer is as large as its request, so the path MTU is the smaller one of the two
// directions, and a black hole may be in either. Kernels limit the rate at which they answer echo
// requests (net.ipv4.icmp_msgs_per_sec), and many firewalls drop them.
package icmp
