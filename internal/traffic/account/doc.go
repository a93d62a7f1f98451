// Package account says what one host saw of a test's packets: what its kernel tells of each TCP connection, and where packets died.
//
// # Model
//
// A [Flow] gathers the readings of struct tcp_info of one connection: at the two edges of the measured window, at the end of every interval,
// and in between. Counters are told as differences, smoothed values as means over the readings. [Drops] lists the places of a host
// where packets died, each packet once; [Losses] explains the loss of one test, packet by packet, from the counters of both hosts.
// [Clamped] tells from what both ends of a connection say of it whether somebody between them lowered the segment size.
//
// # Units
//
// Bytes of payload, seconds, bits per second; packets are datagrams or segments.
//
// # Sources
//
// tcp(7) and include/uapi/linux/tcp.h (struct tcp_info), net/ipv4/tcp.c (chronographs, Linux 4.10) and net/ipv4/tcp_input.c (tcp_rcv_nxt_update,
// tcp_segs_in); socket(7) for SO_RXQ_OVFL; Documentation/networking/statistics.rst for the counters of cards.
//
// # Limits
//
// Counters of a host are of all its traffic: what another program lost at the same time can be taken for a loss of the test. Therefore the
// counters of the test's own sockets come first, no place is given more than is missing, and what nothing explains is said to have died on
// the path.
package account
