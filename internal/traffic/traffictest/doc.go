// Package traffictest holds what the tests of the dialects share: a check of what a package leaves
// behind, the log of a server, and the real programs that the dialects are tested against.
//
// # Model
//
// [Main] is the whole TestMain of a package: it fails a package whose tests leave goroutines of
// this module or descriptors behind. A [Log] collects sentences of a server, or lines of a program,
// and tests wait for those. [Serve] runs one of our servers for the length of a test. [Run] and
// [Start] run programs of other projects. [Longer] repeats a test whose window was too short for a
// busy machine.
//
// # Units
//
// Durations.
//
// # Sources
//
// The observed behaviour of the servers and programs of the dialects; proc(5) for the descriptors.
//
// # Limits
//
// For tests only. Descriptors are counted where /proc/self/fd exists, which is Linux.
package traffictest
