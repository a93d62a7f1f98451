// Package snapshot reads hosts that cannot be reached out of whatever somebody sent, and says what
// may be concluded of one moment and of two.
//
// # Model
//
// [Open] tells by the content what a file or directory is: a capture (package capture), a report of
// sos(1), unpacked or as a tar file (package sosreport), or a plain copy of /proc and /sys. All of
// them are a [File], which gives a host.Snapshot and a [Moment].
//
// One moment has counters since the start of the host: [Moment.SinceBoot]. A share of one in
// another (retransmissions of segments) is a fact about all that time; a rate is a mean that says
// nothing of the hour somebody complains about, and a loss in it may be years old. Two moments of
// one boot of one host have what happened in between: [Between] puts them in order and refuses two
// that do not belong together.
//
// # Sources
//
// proc_stat(5) for the moment of the start. The kernel prints softnet_stat, tc's statistics and
// interrupts in 32 bits.
//
// # Limits
//
// A counter of 32 bits that went through zero more than once between two moments looks as if it had
// not. Two captures bear different replacements of every name, so that they can be told to be of
// one host by its hardware and interfaces alone.
package snapshot
