// Package traffictest holds what the tests of the dialects need alike: a look at what a package
// leaves behind, the words of a server, and the real programs that it is tried against.
//
// # Model
//
// [Main] is the whole TestMain of a package: it fails one whose tests leave goroutines of ours or
// descriptors behind. A [Log] collects sentences of a server, or lines of a program, and tests wait
// for those. [Serve] runs one of our servers for the length of a test. [Program], [Run] and [Start]
// find and run the programs of others, at ports that [FreePorts] finds.
//
// # Units
//
// Durations.
//
// # Sources
//
// What the servers and programs of the dialects were seen to do; proc(5) for the descriptors.
//
// # Limits
//
// For tests only. Descriptors are counted where /proc/self/fd is, which is Linux. A port that
// [FreePorts] gives is free at that moment, and nothing keeps it so: who lets a program listen on
// it should try again with another one if that fails.
package traffictest
