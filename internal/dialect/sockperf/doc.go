// Package sockperf implements the protocol of sockperf: a server for its clients over UDP and TCP,
// and a client for its servers.
//
// # Model
//
// A client sends messages, and a [Server] returns those that request it. There is no handshake, no
// control connection and no result: the client measures everything. Ping-pong keeps one message in
// flight. Under load, the client sends messages by the clock, and every n-th requests an answer.
//
// [Run] is a client. Test rr is ping-pong over TCP, with one message in flight on each connection.
// Test ping sends messages over UDP by the clock, each of which requests an answer.
//
// # Format
//
// A message has a header of 14 bytes, all of it big-endian, and padding:
//
//	 0  8  sequence number, from 1, of all messages, whether they request an answer or not
//	 8  2  flags: 1 sent by a client · 2 requests an answer · 4 warm-up, never answered
//	10  4  length of the message, header included: that of the datagram, or over TCP where the
//	       next begins
//	14     padding
//
// The answer to a message with flags 1 and 2 and without 4 is the same message without flag 1. No
// message is longer than 65507 bytes.
//
// # Latency and round trip
//
// The latency that sockperf prints is half the round trip, unless --full-rtt is set. Half a round
// trip is the delay of neither direction, so results here are always whole round trips: twice
// sockperf's number for the same path.
//
// # Units
//
// Bytes of messages with their headers; seconds.
//
// # Sources
//
// The messages that Debian's sockperf 3.7 sends and answers, byte by byte; recvmmsg(2),
// sendmmsg(2), ip(7) and ipv6(7) for IP_PKTINFO.
//
// # Limits
//
// Over UDP nothing proves a client's address, so an answer is never longer than its request, and
// [admission.Gate.Allow] bounds the number of answers. Messages are not authenticated: any host on
// the path can forge them. Multicast, playback and server-side checks of the padding are not
// implemented. Batches of datagrams and bare descriptors are Linux only; other systems use package
// net.
package sockperf
