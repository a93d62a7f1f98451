// Package switchtest is a switch for tests: a tree of objects that answers requests in memory and
// over UDP, with the faults of real agents. Only tests use it.
//
// # Model
//
// A [Tree] holds objects and is a mib.Agent. [Serve] answers version 2c at a socket; its [Fault]s
// drop, delay and spoil answers. [Load] reads the facts of a recorded walk.
//
// # Units
//
// As package mib.
//
// # Sources
//
// RFC 3416 section 4.2 for what an agent answers; the format .snmprec of snmpsim: OID|tag|value.
//
// # Limits
//
// Version 2c. Version 3 is tested against Debian's snmpd, which shares no code with the library
// that asks.
package switchtest
