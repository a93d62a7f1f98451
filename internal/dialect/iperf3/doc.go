// Package iperf3 speaks the protocol of iperf3, as server and as client, so that either end of a
// test may be the program of that name.
//
// # Model
//
// A test has one control connection and one data connection, TCP or UDP, per stream and direction.
// The client begins the control connection with a cookie of 37 bytes; from then on the server sends
// states of one byte each and the client answers, but for the end of the test, which is the
// client's to say:
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
// Lengths are 4 bytes, big-endian. Instead of 9 a server that cannot run the test now sends -1,
// ACCESS_DENIED; at any time it may send -2, SERVER_ERROR, with two numbers of 4 bytes, its own
// code and an errno. Streams are told apart by ids that both sides count for themselves: 1, 3, 4, 5
// …, first those that the client sends on. Data on TCP have no framing. A datagram begins with a
// [header]: the seconds and microseconds of the sender's monotonic clock and a sequence number from
// 1 on, of 4 or 8 bytes, all big-endian.
//
// A [Server] runs several tests at a time, which the program of that name does not: a data
// connection finds its test by the cookie, a UDP stream by its address, which must be that of a
// client that is opening streams. So nothing is ever sent to an address that has not proved itself
// in a TCP handshake. [Run] is a client. The data go over workers of package engine and package
// datagram at both ends.
//
// A receiver reads on until it has what the sender says it sent, or nothing more comes, before it
// reports: the totals of both ends agree, and datagrams lost at the very end of a test count as
// lost. The program closes its sockets on TEST_END, with what is still in them.
//
// # Units
//
// Payload bytes, bits per second, seconds; processor time in the results of the protocol is a
// percentage of one CPU over the test and of the process, not of the host, so it is not in
// [traffic.End].
//
// # Sources
//
// The wire was watched between iperf3 3.12 client and server (Debian 12): that version sends -1 as
// 2^64-1 in its results, counts the datagrams of the omitted seconds in "packets" and takes its own
// count of them off again before it shows the loss. Differences of other versions: RFC 1889 §6.3.1
// for the jitter; 3.7 for the monotonic clock in datagrams; 3.12 for "9876", older ones send the
// number 123456789 as it lies in memory; 3.14 for omitted_packets and omitted_errors.
//
// # Limits
//
// No SCTP, no MPTCP, no RSA authentication. A parameter of the client that does not matter to the
// measurement is ignored, and so is every key that is not known. The maximum segment size is the
// client's to set: it announces it when it connects, in both directions. The monotonic clocks of
// two hosts have nothing in common, so there is no one-way delay, only its variation.
package iperf3
