// Package casefile keeps everything that a verdict rests on in one file that can be sent to a
// stranger, and reads it back to be judged again.
//
// # Model
//
// [Write] writes a [File], linerate.case/1: one JSON document with the snapshots of the hosts, the
// runs and probes between them, and what was watched. [Read] reads it. The verdict itself is not in
// it, as it follows from the rest: a later version may judge the same case better.
//
// # Replaced
//
// There is no file that is not scrubbed. What package capture replaces is replaced here: addresses,
// hardware addresses, identifiers and names of hosts, the same by the same, by a key that is random
// and forgotten; sources and paths of network file systems too. Settings, counters, sizes, versions
// and times are untouched.
//
// # Units
//
// As in package evidence; counters are as the kernels count them.
//
// # Limits
//
// 64 MiB. Fields that a later version added are passed by. The names that people gave to interfaces
// stay.
package casefile
