// Package sockperf speaks the protocol of sockperf: it answers its clients over UDP and TCP, and
// asks its servers.
//
// # Model
//
// A client sends messages, a [Server] sends those back that ask for it. There is no handshake, no
// control connection and no result: all that is measured, the client measures. Ping-pong keeps one
// message under way; under load, messages go out by the clock and every n-th asks for an answer.
//
// [Run] is a client: test rr is ping-pong over TCP, one message under way on each connection; test
// ping sends messages over UDP by the clock, each of which asks for an answer.
//
// # Format
//
// A message has a header of 14 bytes, all of it big-endian, and padding:
//
//	 0  8  sequence number, from 1, of all messages, whether they ask or not
//	 8  2  flags: 1 sent by a client · 2 asks for an answer · 4 warm-up, never answered
//	10  4  length of the message, header included: that of the datagram, or over TCP where the next begins
//	14     padding
//
// The answer to a message with flags 1 and 2 and without 4 is the same message without flag 1. No
// message is longer than 65507 bytes.
//
// # Latency and round trip
//
// What sockperf prints as latency is half the round trip, unless it is told --full-rtt. Half a
// round trip is neither way's delay, so results here are always whole round trips: twice sockperf's
// number for the same path.
//
// # Units
//
// Bytes of messages with their headers; seconds.
//
// # Sources
//
// The messages that sockperf 3.7 of Debian sends and answers, byte by byte; recvmmsg(2),
// sendmmsg(2), ip(7) and ipv6(7) for IP_PKTINFO.
//
// # Limits
//
// Nothing proves a client's address over UDP, so answers are never longer than what asked for them
// and their number is bounded by [admission.Gate.Allow]. Messages are not authenticated: who sits
// on the path can forge them. Multicast, playback and checks of the padding by the server are not
// offered. Batches of datagrams and bare descriptors are Linux only; elsewhere package net carries
// them.
package sockperf
