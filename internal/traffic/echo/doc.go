// Package echo exchanges single packets that come back: ICMP echo with a far kernel, or UDP with a far [Server] of our own.
//
// # Model
//
// A [Pinger] is the body of an engine worker: it sends a packet per gap by the clock and times the answers. Every packet starts with a
// [Token]; a [Server] answers only registered tokens from the address they were registered for, and never more bytes than it got.
//
// # Units
//
// Payload bytes, nanoseconds.
//
// # Sources
//
// RFC 792 and RFC 4443 (echo), RFC 1071 (checksum), icmp(7) for ping sockets.
//
// # Limits
//
// ICMP is Linux only. On a host with several addresses the server answers from the one that its routes prefer, which a pinger that asked another does not accept.
package echo
