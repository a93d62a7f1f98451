// Package processors has the rules about where packets are processed: on which CPUs, in which class
// of time, at which clock, and near which memory.
//
// # Model
//
// Each rule has a file of its own with the evidence it needs, its thresholds and their reasons, the
// look-alikes it rejects, and the settings to try. Most rules examine an [evidence.Span], one host
// over a period, and so work with and without a run. All are pure functions. [Examine] is not a
// rule: it answers an engineer's usual questions about a watched host.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// proc(5); Documentation/networking/ip-sysctl.rst, scaling.rst and snmp_counter.rst.
//
// # Limits
//
// Counters cover a whole host or network namespace, with the traffic of all programs.
package processors
