// Package admission decides who may ask how much of a server that answers strangers.
//
// # Model
//
// A [Gate] stands in front of all servers of one host, so that what a source takes from one dialect
// is missing in another. There are two ways in:
//
//   - [Gate.Enter] is for tests that last: a source, once it has proved its address (a TCP
//     handshake, a token sent back), becomes a [Visit]. The gate bounds how many there are, how
//     many of one source, how long each lasts, how many bytes it moves and how fast; and how many
//     bytes a source moves in all its visits of a window of time. [Gate.EnterKnown] is the same for
//     holders of the host's key, whose places strangers cannot take.
//   - [Gate.Allow] is for reflectors that keep no state: every packet may come from a forged
//     source, so each source has a bucket of packets and one of bytes, and all sources together
//     have one that is as large as those of [Limits.Clients] sources.
//
// Around it stand an [Anteroom] for connections that have not said yet what they want, [Turns] for
// moments of a protocol that only one test of a source can be in, and [LimitLines] and [OneLine]
// for the log, which strangers must neither fill nor forge.
//
// A source is an IPv4 address or the /64 of an IPv6 one: whoever has one address of a /64 has them
// all.
//
// # Buckets
//
// A bucket holds one second of its rate, so any t seconds let at most (t + 1) times the rate
// through. It is kept as a single instant, the time at which it will be full again (the generic
// cell rate algorithm of ITU-T I.371, run backwards). That makes a bucket 8 bytes, and one whose
// instant has passed indistinguishable from one that never was, so it can be forgotten.
//
// Buckets live in a table of fixed size: [tableSets] sets of [tableWays] places. A newcomer that
// finds its set full takes the place of the source that is nearest to a full bucket and inherits
// what is missing from it. So no number of forged sources makes the table grow or mints a single
// packet, and a source in the middle of a test is the last to lose its place. Which set a source
// falls into depends on a seed of the process, so nobody can aim at another's set.
//
// # Units
//
// Payload bytes as the servers count them, bits per second, packets per second, durations.
//
// # Sources
//
// ITU-T I.371 (GCRA); RFC 6177 §2 for the /64 as the smallest thing that one IPv6 customer gets;
// RFC 8085 §3 for what an answerer of UDP owes the network.
//
// # Limits
//
// Nothing is kept on disk: a restart forgives. When more than [maxSources] sources have moved bytes
// within one window, one that moved little is forgotten in favour of a newcomer, who inherits what
// that one had moved. Time is the monotonic clock, which on Linux stands still while the host
// sleeps.
package admission
