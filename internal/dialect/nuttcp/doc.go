// Package nuttcp implements the protocol of nuttcp, as server and as client, so that either end of
// a test may be the program of that name.
//
// # Model
//
// A test has one control connection, TCP, with lines of text, and data connections, TCP or UDP, on
// ports that the client chooses:
//
//	client                                     server
//	HELO nuttcp v6.1.2                       →
//	                                         ←  HELO nuttcp v6.1.2
//	buflen = 65536, nbuf = …                 →                          all of [params] in one line
//	                                         ←  OK v6.1.2               or KO, a reason, KO
//	data                                     ↔  data
//	                                         ←  a line per interval, DONE, the report; then it closes
//
// Data on TCP have no framing. The sender writes one block to each connection in turn. The
// program's receiver reads them in the same order, and takes the first connection that ends as the
// end of all. The sending end connects, unless "reverse" is set. Over UDP, datagrams of four bytes
// frame the test: BOD0, BOD1 a quarter of a second later, then data that begin with the last BOD,
// then EOD0 to EOD4. Where intervals are reported, the eight bytes at offset 24 of a datagram
// contain how many bytes were sent up to and including it. They are in the byte order of the
// sender, which is little-endian on all systems still in use.
//
// A [Server] answers several tests at a time. Data do not identify their test, so tests of one
// address whose data go to one port begin one after another: each receives its OK when the data of
// the previous one have begun to arrive. [Open] is a client. It asks the server to listen in both
// directions of TCP, so that no connection comes in at its end.
//
// # Units
//
// Payload bytes. The protocol's MB are 2^20 bytes and its KB 2^10; its Mbps are 10^6 bits per
// second; rates in params are 10^3 bits per second.
//
// # Sources
//
// Captures of the traffic between a nuttcp 6.1.2 client and server (Debian 12), for every option of
// the client that reaches the server.
//
// # Limits
//
// UDP goes only to the address of the control connection, which a handshake has proved. Connections
// that this server makes go there too, to ports from 1024 on. Third-party tests, traceroute and
// multicast are refused. The report has four digits after the MB, so byte counts that only the far
// end knows are exact to 53 bytes, and counts of shorter datagrams are not exact. The CPU seconds
// that this server reports are those of its process, which are also those of other tests that run
// at the same time; 0 where the system does not report them.
package nuttcp
