// Package world is a closed world of name servers on loopback, in a network namespace of its own: a
// root, a top-level domain and a leaf zone with several servers, and a real recursor that asks
// them.
//
// # Model
//
// The authoritative servers are goroutines of this process, so that a delay, a loss, a lame server
// and the change of a record are one field each. The recursor is the program of a distribution
// (named, unbound, kresd), started from a directory of its own, with a configuration made of a base
// and the options under test. [Compare] runs the same load on one recursor after another: it warms
// the cache with every name once, measures, reads the recursor's own counters, and finally changes
// a record and waits until the recursor serves the new data. [Open] makes a room for trials: sound
// servers, and one recursor that a trial may restart.
//
// Times of the change are a thirtieth of real ones, in the zone and in the options under test: a
// record with 300 s would otherwise cost five minutes a variant. The load runs with the real ones.
//
// # Units
//
// Seconds, queries per second, ratios.
//
// # Sources
//
// BIND 9 administrator reference manual (statistics channels, options), unbound.conf(5),
// unbound-control(8). Referrals: RFC 1034 §4.3.2. Negative answers: RFC 2308. The seven options for
// BIND: a write-up of 2007, see docs/evidence/resolver.md.
//
// # Limits
//
// Linux only: the world needs port 53 on several addresses. The load and the recursor share the
// CPUs of this machine, so rates compare within one run only. No DNSSEC.
package world
