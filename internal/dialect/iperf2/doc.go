// Package iperf2 speaks the protocol of iperf 2, as server and as client, so that either end of a
// test may be the program of that name.
//
// # Model
//
// There is no control connection. A TCP connection begins with [settings], 60 bytes and more, which
// the client repeats at the start of every write and which count as payload; then bytes flow until
// their sender closes its half, and the other end closes the rest. Who wants the server to send
// says so in the settings (-R, --full-duplex). Nothing of a TCP result travels: each end knows what
// it counted. A server that received says hello with 28 bytes ([greeting]), which no client needs.
//
//	word  of the settings, 32 bits each, big-endian
//	0     flags: 0x40000000 words 6 and up are there, 0x00010000 length present, length·2 in the low bits
//	1     streams (-P)
//	2     port
//	3     length of a write, bytes; 0: the default
//	4     window, bytes
//	5     amount: bytes, or the negative of a time in 10 ms
//	8     upper half: 0x0400 reverse, 0x0800 full duplex
//	9,10  version: 2.1, 8.3
//	12,13 rate, bits per second, low word first
//
// A datagram begins with [mark]: a number from 1 on, the sender's wall clock, the upper half of the
// number, then the same settings. The end is a datagram with a negative number, repeated (every 10
// ms, for two seconds, by the program) until a [report] of what arrived comes back. The program
// counts the first of those as a datagram of the test, with its bytes, and so does this package:
// both ends show the same figures.
//
// A [Server] receives whatever comes by TCP and UDP and sends by TCP to whoever asked on the same
// connection. [Run] is a client. Data that a client sends go over workers of package engine and
// package datagram.
//
// # Units
//
// Payload bytes, the settings at the head of a stream included; bits per second; seconds. Jitter is
// that of RFC 1889.
//
// # Sources
//
// The wire was watched between iperf 2.1.8 client and server (Debian 12): the settings in the upper
// half of word 8, the greeting, that it takes reports of 56 bytes and more, that ids of the
// datagrams that end a test go on counting.
//
// # Limits
//
// UDP is never sent to an address that has not proved itself, and in this protocol no address ever
// does: tests by UDP in the reverse direction are not answered, and a report is never longer than
// the datagram that it answers, so that bare datagrams of less than 56 bytes get none. A table of
// fixed size holds the UDP tests, so that forged addresses cost nothing but each other. The old -d
// and -r, for which a server has to connect back to a port of the client's choice, --bounceback,
// and keys (--permit-key) are not understood; what a client sends is received all the same. An
// amount of 2 GiB and more does not fit into word 5, so the server cannot know it and sends for ten
// seconds.
package iperf2
