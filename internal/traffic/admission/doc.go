// Package admission decides which client may ask how much of a server that answers strangers.
//
// # Model
//
// One [Gate] serves all servers of a host, so what a source takes from one dialect is missing in
// another. There are two ways in:
//
//   - [Gate.Enter] is for tests that last: a source, once it has proved its address (a TCP
//     handshake, a token sent back), becomes a [Visit]. The gate bounds how many there are, how
//     many of one source, how long each lasts, how many bytes it moves and how fast; and how many
//     bytes a source moves in all its visits of a window of time. Where all places are taken, a
//     newcomer gets that of a test that moves next to nothing. [Gate.EnterKnown] is the same for
//     holders of the host's key, whose places strangers cannot take.
//   - [Gate.Allow] is for reflectors that keep no state: every packet may come from a forged
//     source, so each source has a bucket of packets and one of bytes, and all sources together
//     have one that is as large as those of [Limits.Clients] sources.
//
// Beside it are an [Anteroom] for connections that have not yet said what they want, [Turns] for
// moments of a protocol that only one test of a source can be in, and [LimitLines] and [OneLine]
// for the log, which strangers must neither fill nor forge.
//
// A source is an IPv4 address or the /48 of an IPv6 one: a host with one address of a /64 has them
// all, and a site that is assigned a /48 has 65 536 of those.
//
// # Buckets
//
// A bucket holds one second of its rate, so any t seconds let at most (t + 1) times the rate
// through. It is kept as a single instant, the time at which it will be full again (the generic
// cell rate algorithm of ITU-T I.371, run backwards). That makes a bucket 8 bytes, and one whose
// instant has passed indistinguishable from one that never was, so it can be forgotten.
//
// Buckets are in a table of fixed size: [tableSets] sets of [tableWays] places. A newcomer that
// finds its set full takes the place of the source whose bucket is nearest to full, and inherits
// what is missing from it. So no number of forged sources makes the table grow or creates a single
// packet, and a source in the middle of a test is the last to lose its place. The set of a source
// depends on a seed of the process, so no attacker can aim at another source's set.
//
// # Units
//
// Payload bytes as the servers count them, bits per second, packets per second, durations.
//
// # Sources
//
// ITU-T I.371 (GCRA); RFC 6177 §2 for the assignments to one IPv6 site, a /48 at most; RFC
// 8085 §3 for what a server that answers over UDP owes the network.
//
// # Limits
//
// Nothing is kept on disk: a restart forgives. When more than [maxSources] sources have moved bytes
// within one window, the gate forgets one that moved little in favour of a newcomer, which inherits
// what that one had moved. Time is the monotonic clock, which on Linux stands still while the host
// sleeps.
package admission
