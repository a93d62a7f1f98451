// Package nuttcp speaks the protocol of nuttcp, as server and as client, so that either end of a
// test may be the program of that name.
//
// # Model
//
// A test has one control connection, TCP, with lines of text, and data connections of its own, TCP
// or UDP, on ports from the client's choice upwards:
//
//	client                                     server
//	HELO nuttcp v6.1.2                       →
//	                                         ←  HELO nuttcp v6.1.2
//	buflen = 65536, nbuf = …                 →                          all of [params] in one line
//	                                         ←  OK v6.1.2               or KO, a reason, KO
//	data                                     ↔  data
//	                                         ←  a line per interval, DONE, the report; then it closes
//
// Data on TCP have no framing; the sender goes from one connection to the next with each block, and
// a receiver of the program reads them in the same turn, so that the first one that ends is the end
// of all. Who sends connects, unless "reverse" turns that round. Over UDP datagrams of four bytes
// frame the test: BOD0, BOD1 a quarter of a second later, then data that begin with the last BOD,
// then EOD0 to EOD4. Where intervals are reported, the eight bytes at offset 24 of a datagram say
// how many bytes were sent with it, in the byte order of the sender, which is little-endian on
// everything that is left.
//
// A [Server] answers several tests at a time. The protocol gives data nothing to be told apart by,
// so tests from one address whose data go to one port begin one after another: each is told OK when
// the data of the one before have begun to arrive. [Open] is a client; it asks the server to listen
// in both directions of TCP, so that no connection comes in at its end.
//
// # Units
//
// Payload bytes. The protocol's MB are 2^20 bytes and its KB 2^10; its Mbps are 10^6 bits per
// second; rates in params are 10^3 bits per second.
//
// # Sources
//
// The wire was watched between nuttcp 6.1.2 client and server (Debian 12), for every option of the
// client that reaches the server.
//
// # Limits
//
// UDP goes to the address of the control connection only, which a handshake has proved, and
// connections that this server makes go there too, to ports from 1024 on. Third parties, traceroute
// and multicast are refused. The report has four digits after the MB, so lengths of tests that only
// the far end knows are exact to 53 bytes, and numbers of datagrams that short are not exact. The
// CPU seconds that this server reports are of the whole host, not of a process, and 0 where nobody
// counts them.
package nuttcp
