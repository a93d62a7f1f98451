// Package incoming takes connections and datagrams that hosts send to a listening socket. It is the
// one rule about the errors of such a socket: which pass, and how long a loop rests after them.
//
// # Model
//
// [Connections] accepts until its context ends. A loop of another shape, such as one that reads
// datagrams, asks a [Retry] after each error. An error has one of three causes:
//
//   - One peer: a connection that was reset before it was accepted, an ICMP message about an
//     earlier answer, a datagram that is longer than the buffer. The error used that event up, so
//     the loop goes on at once.
//   - A shortage: no descriptor (EMFILE, ENFILE), no memory (ENOMEM, ENOBUFS), or a firewall or a
//     security module that forbids it (EPERM). The loop rests, twice as long each time, up to a
//     second. Every errno that is in neither of the other lists counts as a shortage: an unforeseen
//     reason must not end a server that strangers use.
//   - The socket: it was closed, or does not listen. The loop ends.
//
// # Units
//
// Durations.
//
// # Sources
//
// accept(2), section ERRORS, for the pending errors of the network that a program should treat as
// EAGAIN. The pauses are those of net/http (Server.Serve, Go 1.26) and of gRPC (Server.Serve):
// 5 ms, doubled up to 1 s. Both end for ENOBUFS, ENOMEM and EPERM, which package net does not call
// temporary. icmp_err_convert (net/ipv4/icmp.c) and tab_unreach (net/ipv6/icmp.c) for the errors
// that ICMP causes. recvfrom of Winsock: Windows reports ICMP messages about answers
// (WSAECONNRESET) and cut datagrams (WSAEMSGSIZE) also on sockets that are not connected.
//
// # Limits
//
// Package net repeats ECONNABORTED without a report. A loop that rests while the caller closes the
// socket ends with that rest, up to a second later, unless the caller also ends the context.
package incoming
