// Package export writes a profile in the forms that other programs read.
//
// # Model
//
// Each function writes a whole profile to a writer: [Folded] one line for each stack, [Speedscope]
// its JSON, [Pprof] the compressed protocol buffer of go tool pprof, [Gprof] a flat table and a
// call graph as GNU gprof prints them, [Flame] a page with a flame graph that needs no network.
//
// # Units
//
// Weights are samples, and nanoseconds of processor time where the event has time.
//
// # Sources
//
// Folded stacks: the README of FlameGraph (Brendan Gregg). speedscope: file-format-spec.ts of
// speedscope. pprof: proto/profile.proto of google/pprof. gprof: GNU Binutils, "Interpreting
// gprof's output".
//
// # Limits
//
// Pprof has names and no addresses, because the profile was resolved on the host. Gprof's counts of
// calls are samples; a sampling profiler does not see calls.
package export
