// Package rules makes series of the counters that a packet filter's rules have.
//
// # Model
//
// A [Keeper] takes the counts of package tally, as linerate agent reads them, and returns a reading
// for the history: bytes and packets of each count. A series begins at zero with the hub, and grows
// by what was counted since. A counter that decreased was set anew, and adds nothing for once. A
// count that is gone ends its series.
//
// # Units
//
// Bytes and packets.
//
// # Sources
//
// `linerate agent`, or the programs of the packet filter if the hub may read rules itself.
//
// # Limits
//
// At most tally.Most counts, each [Interval]. What is counted while an answer is on its way, some
// milliseconds, is filed under the time of the question.
package rules
