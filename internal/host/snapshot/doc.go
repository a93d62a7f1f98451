// Package snapshot reads unreachable hosts from files that were sent, and computes what one moment
// and two moments show.
//
// # Model
//
// [Open] recognises a file or directory by its content: a capture (package capture), a report of
// sos(1), unpacked or as a tar file (package sosreport), or a plain copy of /proc and /sys. Each is
// a [File], which yields a host.Snapshot and a [Moment].
//
// One moment has counters since the host started: [Moment.SinceBoot]. The share of one counter in
// another (retransmissions in segments) is a fact about that whole time. A rate is a mean that says
// nothing about the hour in question, and a loss in it may be years old. Two moments of one boot of
// one host show what happened between them: [Between] puts them in order and refuses two that do
// not belong together.
//
// # Sources
//
// proc_stat(5) for the start of the host. The kernel prints softnet_stat, tc's statistics and
// interrupts in 32 bits.
//
// # Limits
//
// A 32-bit counter that wrapped more than once between two moments looks as if it wrapped less
// often. Two captures have different replacements for every name, so only hardware and interfaces
// show whether they are of one host.
package snapshot
