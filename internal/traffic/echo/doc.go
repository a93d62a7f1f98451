// Package echo sends single packets and receives their answers: ICMP echo with a far kernel, or UDP
// with a far [Server] of our own.
//
// # Model
//
// A [Pinger] is the body of an engine worker: it sends one packet per gap by the clock and times
// the answers. Every packet starts with a [Token]. A [Server] answers only registered tokens from
// the address they were registered for, and never sends more bytes than it received. An
// [Expectation] collects the hellos by which the near ends of a UDP test prove their addresses
// ([Arrival]); the sockets of that test, which share the server's port, answer them.
// [SearchPathMTU] sends unfragmentable packets of many sizes, and has the server do the same.
//
// Round trips are the kernel's where it reports times: from the moment a ping enters this host's
// queues to the moment its answer leaves the driver, without the time of this program and of the
// scheduler. The package keeps what the network reports about a packet that it did not deliver
// ([Trouble]).
//
// # Packets
//
// All packets start with the token (16 bytes) and a sequence number (8, big-endian). The highest
// byte of the number is the kind: below 0x80 a ping, which the server returns unchanged; 0x80 a
// hello for the stream in the lowest four bytes; 0x81 to 0x83 requests and answers of a path MTU
// search, whose further fields are in probe.go.
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
// Elsewhere a server goes through package net: it shares its port with no socket, answers from the
// address that the routes prefer, and sends no packets of a requested size.
package echo
