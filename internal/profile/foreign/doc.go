// Package foreign reads the profiles of other programs: the text of perf script, folded stacks, the
// text of pmcstat -G, the stacks that DTrace aggregates, and the protocol buffers of pprof.
//
// # Model
//
// [Read] recognises the format by the content, never by a name. Each format has a parser that hands
// stacks to a profile.Builder, so that a profile of FreeBSD or Solaris gets the same stages as one
// of this host.
//
// # Units
//
// Counts are samples. Where a file has the period of a clock, a sample has a time as well.
//
// # Sources
//
// perf script: tools/perf/builtin-script.c of Linux. pmcstat -G: pmcpl_callgraph.c in
// usr.sbin/pmcstat of FreeBSD. DTrace: dt_print_stack in dt_consume.c of illumos. pprof:
// proto/profile.proto of google/pprof. Folded stacks: the README of FlameGraph.
//
// # Limits
//
// Binary files of perf (perf.data) hold addresses without names: the kernel's list of functions is
// that of the host that recorded them. A folded stack does not say which frames are the kernel's;
// the entry points of kernels, and the suffix _[k], decide.
package foreign
