// Package resolvers makes findings of what package server observed of a name server.
//
// # Model
//
// [Findings] shows one observation to each rule, in the order of [Codes]: first what refuses or
// loses queries, then what slows them, then what only costs. A rule needs numbers of its own; it
// rejects the look-alikes with theirs. A cause mutes its symptoms: a saturated worker overflows
// its socket, and slow upstream servers fill the places for recursive clients. Where no rule finds
// anything, the one finding is resolver-nothing-to-tune, with the numbers that say so.
//
// # Units
//
// Those of package server. Shares are ratios from 0 to 1.
//
// # Sources
//
// BIND 9 administrator reference manual; unbound.conf(5) and "Howto optimise" of NLnet Labs; the
// manuals of Knot Resolver and PowerDNS Recursor; dnsmasq(8). The defaults named are those of the
// versions in docs/evidence/resolver.md, where each rule met the fault planted in a real server.
//
// # Limits
//
// A rule that a server's counters do not support is silent for that server; Unseen of the
// observation names the larger gaps. Names that are asked for only once fill any cache, and no
// counter separates them from names that come back.
package resolvers
