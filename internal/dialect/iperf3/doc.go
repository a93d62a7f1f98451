// Package iperf3 implements the protocol of iperf3, as server and as client, so that either end of
// a test may be the program of that name.
//
// # Model
//
// A test has one control connection and one data connection, TCP or UDP, per stream and direction.
// The client begins the control connection with a cookie of 37 bytes. From then on the server sends
// states of one byte each and the client answers; only the end of the test is announced by the
// client:
//
//	client                                server
//	cookie                            →
//	                                  ←   9  PARAM_EXCHANGE
//	length, parameters (JSON)         →
//	                                  ←  10  CREATE_STREAMS
//	cookie on each TCP stream, or
//	"9876" on each UDP stream         ↔   nothing, or "6789"
//	                                  ←   1  TEST_START, 2 TEST_RUNNING
//	data                              ↔   data
//	4  TEST_END                       →
//	                                  ←  13  EXCHANGE_RESULTS
//	length, results (JSON)            →
//	                                  ←  length, results (JSON), 14 DISPLAY_RESULTS
//	16 IPERF_DONE                     →
//
// Lengths are 4 bytes, big-endian. A server that cannot run the test now sends -1, ACCESS_DENIED,
// instead of 9. At any time it may send -2, SERVER_ERROR, followed by two numbers of 4 bytes: its
// own code and an errno. Both sides assign the same ids to streams: 1, 3, 4, 5 …, first to those on
// which the client sends. Data on TCP have no framing. A datagram begins with a [header]: the
// seconds and microseconds of the sender's monotonic clock and a sequence number from 1 on, of 4 or
// 8 bytes, all big-endian.
//
// A [Server] runs several tests at a time, which the program of that name does not. The cookie of a
// TCP connection identifies its test. A UDP stream belongs to the client at its address that is
// currently opening streams. So nothing is ever sent to an address that has not proved itself in a
// TCP handshake. [Run] is a client. Workers of packages engine and datagram move the data at both
// ends.
//
// A server sends the amount that -n and -k ask for and no more, and reports what has left it rather
// than what waits in its send buffers. A client counts, by its own clock, what the far kernel has
// acknowledged within the measured part; the far end's total covers a longer time.
//
// Before it reports an amount or datagrams, a receiver reads on until it has everything that the
// sender reports, or until nothing more arrives. So the totals of both ends agree, and datagrams
// lost at the very end of a test count as lost. Of a stream with a time, a server counts what it
// has at TEST_END, as the program does. The program closes its sockets on TEST_END and discards
// their unread data.
//
// # Units
//
// Payload bytes, bits per second, seconds. The protocol's CPU time is a percentage of one CPU over
// the test, and that of the process and not of the host, so [traffic.End] does not contain it.
//
// # Sources
//
// Captures of the traffic between an iperf3 3.12 client and server (Debian 12). That version sends
// -1 as 2^64-1 in its results. It counts the datagrams of the omitted seconds in "packets", and
// subtracts its own count of them before it shows the loss. Differences of other versions: RFC 1889
// §6.3.1 for the jitter; 3.7 for the monotonic clock in datagrams; 3.12 for "9876" (older ones send
// the number 123456789 in the byte order of the machine); 3.14 for omitted_packets and
// omitted_errors.
//
// # Limits
//
// No SCTP, no MPTCP, no RSA authentication. Client parameters that do not affect the measurement
// are ignored, as are unknown keys. The client sets the maximum segment size: it announces it when
// it connects, for both directions. The monotonic clocks of two hosts are unrelated, so only the
// variation of the one-way delay is known.
package iperf3
