// Package processors judges where the work of packets is done: which processors, in which class of
// time, at which clock, near which memory.
//
// # Model
//
// One rule is one file: what it needs to see, its thresholds with their reason, the look-alikes it
// must reject, and the settings worth trying. Most look at an [evidence.Span], one host over a
// time, and so work with and without a run; all are pure.
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
// Counters are of a whole host or network namespace, whoever moved them.
package processors
