// Package resolver is the wing about name servers: how fast one answers, what holds it, and what
// its options change.
//
// # Rooms
//
//	message  the wire format of DNS: queries to send, answers to check
//	names    which names a load asks for: a file, a query log, or a model
//	load     asks a server at a rate and checks every answer
//	world    a closed world of zones on loopback, in which real recursors are compared
//	server   what a name server and its host say about it, live and recorded
//	answer   a small server of our own that answers, or misbehaves on request
//
// # Units
//
// Queries per second; durations; ratios from 0 to 1. A latency counts from the time at which the
// query was due.
//
// # Limits
//
// Nothing here changes a host, and nothing here reads the configuration file of a server in use.
package resolver
