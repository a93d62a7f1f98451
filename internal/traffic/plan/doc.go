// Package plan says what a test can be asked for: its [Spec], what makes sense of it on any host,
// and what one host allows ([Limits]).
//
// # Model
//
// A [Spec] is plain data that travels to the far end as JSON. [Spec.Normalize] fills in defaults
// and checks every field against every other, so that whoever has a normalized one need not ask
// again: no allocation, timer or rate that is made of it is out of bounds. What a test has no use
// for must be zero.
//
// # Units
//
// Payload bytes, bits per second, packets per second; durations are nanoseconds in JSON.
//
// # Sources
//
// RFC 7323 §2.2 for the largest window; net/ipv4/tcp.c of Linux for the bounds of TCP_MAXSEG; RFC
// 768 and RFC 791 for the largest datagram.
//
// # Limits
//
// Whether a host has the congestion control, the processors or the privileges that a Spec names
// only that host can tell, when it runs.
package plan
