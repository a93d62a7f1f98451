// Package iperf2 implements the protocol of iperf 2, as server and as client, so that either end of
// a test may be the program of that name.
//
// # Model
//
// There is no control connection. A TCP connection begins with [settings], 60 bytes or more, which
// the client repeats at the start of every write and which count as payload. Then bytes flow until
// their sender closes its half, and the other end closes the rest. The settings also request that
// the server sends (-R, --full-duplex). No TCP result is transmitted: each end knows only what it
// counted. A server that receives sends a greeting of 28 bytes ([greeting]), which no client needs.
//
//	word  of the settings, 32 bits each, big-endian
//	0     flags: 0x40000000 words 6 and up are present, 0x00010000 length present,
//	      length·2 in the low bits; 0x80000000 connect back, with 1 at once (-d), else
//	      afterwards (-r)
//	1     streams (-P)
//	2     port; with a connection back that of the client
//	3     length of a write, bytes; 0: the default
//	4     window, bytes
//	5     amount: bytes, or the negative of a time in 10 ms
//	8     upper half: 0x0010 trip times, 0x0400 reverse, 0x0800 full duplex
//	9,10  version: 2.1, 8.3
//	12,13 rate, bits per second, low word first
//
// A datagram begins with a [mark]: a number from 1 on, the sender's wall clock, and the upper half
// of the number. The same settings follow. The last datagram has a negative number. The program
// repeats it every 10 ms, for two seconds, until a [report] of what arrived comes back. The program
// counts the first of these as a datagram of the test, with its bytes; this package does too, so
// both ends show the same figures.
//
// Versions before 2.0.14 send the first six words of the settings, without a length in the flags.
// Until 2.0.9 a mark has no upper half: the settings of a datagram and the words of a report follow
// it four bytes earlier.
//
// With -d and -r the server connects back, once for each connection of the client, and sends there
// what the client sends. Such a connection has no settings.
//
// With --trip-times, what the server sends begins with settings of 80 bytes, and is cut into bursts
// that begin with their number, their length and the time of their write.
//
// With --bounceback a client sends messages with a layout of their own, and the server sends each
// one back.
//
// A [Server] receives anything over TCP and UDP, and sends over TCP on the connection that
// requested it, or that goes back to its client. [Open] is a client. The data that it sends go over
// workers of packages engine and datagram.
//
// # Units
//
// Payload bytes, including the settings at the head of a stream; bits per second; seconds. Jitter
// is that of RFC 1889.
//
// # Sources
//
// Captures of the traffic between an iperf 2.1.8 client and server (Debian 12). They show the
// settings in the upper half of word 8 and the greeting; the messages of --bounceback; that the
// program accepts reports of 56 bytes and more, but with --trip-times shows what its memory has
// after a report of less than 128; and that the numbers of the datagrams that end a test continue
// to count. For versions before 2.0.14, client_hdr, UDP_datagram and server_hdr of their
// Settings.hpp; no such program has been run against this package.
//
// # Limits
//
// UDP is never sent to an unproven address, and in this protocol no address can prove itself. So a
// client that requests datagrams (-R, --full-duplex) gets the end of a stream of none, which ends
// its test or that half of it, and no more bytes are sent to an address than came from it, headers
// included. Ports below 1024 get no answer. A table of fixed size holds the UDP tests, so that
// forged addresses displace only one another.
//
// Over TCP, a connection back goes to the address whose handshake opened the client's connection,
// and to no port below 1024. Over UDP, the port where a client with -d or -r listens gets the end
// of a stream of none, so that its test ends, under the same bounds and where the first datagram is
// long enough to show that port. Keys (--permit-key) are not implemented; the server still receives
// what such clients send. An amount of 2 GiB or more does not fit into word 5, so the
// server does not know it and sends for ten seconds.
//
// This client requests datagrams (-u -R) with a rate only, in one direction. The program's server
// sends the datagram that ends them once; without it, two quiet seconds end the test, and what was
// lost right before is not known.
package iperf2
