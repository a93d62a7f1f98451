// Package casefile stores everything that a verdict rests on in one file, which the user can send
// to others, and reads it back to judge the case again.
//
// # Model
//
// [Write] writes a [File], linerate.case/1: one JSON document with the snapshots of the hosts, the
// runs and probes between them, and the observations. [Read] reads it. The file does not contain
// the verdict, which follows from the rest: a later version may judge the same case better.
//
// # Replaced values
//
// Every file is scrubbed, with the same rules as package capture: addresses, hardware addresses,
// identifiers and names of hosts, and sources and paths of network file systems. Equal values stay
// equal, by a random key that is not stored. Settings, counters, sizes, versions and times do not
// change.
//
// # Units
//
// As in package evidence; counters are as the kernels count them.
//
// # Limits
//
// 64 MiB. Read ignores fields that a later version added. Names that users gave to interfaces stay.
package casefile
