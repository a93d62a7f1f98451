// Package echo exchanges single packets that come back: ICMP echo with a far kernel, or UDP with a
// far [Server] of our own.
//
// # Model
//
// A [Pinger] is the body of an engine worker: it sends a packet per gap by the clock and times the
// answers. Every packet starts with a [Token]; a [Server] answers only registered tokens from the
// address they were registered for, and never more bytes than it got. An [Expectation] collects the
// hellos by which the near ends of a UDP test prove their addresses ([Arrival]); they are answered
// by the sockets of that test, which share the server's port. [SearchPathMTU] sends packets that
// nobody may fragment, of many sizes, and has the server do the same.
//
// Round trips are the kernel's where it tells: from the moment when a ping enters this host's
// queues to the moment when the answer comes out of the driver, without this program's and the
// scheduler's time. What the network says of a packet that it did not deliver ([Trouble]) is kept.
// # Packets
//
// All start with the token (16 bytes) and a sequence number (8, big-endian). The highest byte of
// the number is the kind: below 0x80 a ping, which is sent back as it came; 0x80 a hello for the
// stream in the lowest four bytes; 0x81 to 0x83 requests and answers of a path MTU search, whose
// further fields probe.go lays out.
//
// # Units
//
// Payload bytes, nanoseconds; MTUs are bytes of whole IP packets.
//
// # Sources
//
// RFC 792 and RFC 4443 (echo), RFC 1071 (checksum), icmp(7) for ping sockets, ip(7) and ipv6(7) for
// IP_PKTINFO, IP_RECVERR and IP_MTU_DISCOVER, socket(7) for SO_REUSEPORT, recvmmsg(2).
// Documentation/networking/timestamping.rst. Path MTU: RFC 1191, RFC 8201, RFC 4821 and RFC 8899.
//
// # Limits
//
// ICMP, timestamps, troubles with their reasons, and searches for a path MTU are Linux only.
// Elsewhere a server goes through package net: its port is its own, it answers from the address
// that the routes prefer, and it sends no packets of a named size.
package echo
