// Package tcpinfo holds what the kernel reports about one TCP connection, in plain units.
//
// # Model
//
// A [Flow] collects the readings of struct tcp_info of one connection: at both edges of a window,
// at the end of every interval, and between them. [Flow.Report] turns them into a [TCPInfo]:
// counters as differences over the window, smoothed values as means over the readings. [Clamped]
// compares both ends of a connection and reports whether a middlebox lowered the segment size.
//
// # Units
//
// Bytes of payload, seconds, bits per second.
//
// # Sources
//
// tcp(7) and include/uapi/linux/tcp.h (struct tcp_info); net/ipv4/tcp.c (chronographs, Linux 4.10);
// net/ipv4/tcp_input.c (tcp_rcv_nxt_update, tcp_segs_in); RFC 7323 §3.2 for the timestamps option.
//
// # Limits
//
// A field that the running kernel does not report is zero. Linux only; elsewhere a [Flow] has no
// readings, and [Flow.Known] is false.
package tcpinfo
