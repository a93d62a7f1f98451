// Package cards judges what is between the cable and the network stack: link, bus, rings, queues,
// interrupts and offloads.
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
// Documentation/networking/statistics.rst and scaling.rst; the counters of drivers by package
// nicstat; what interrupts cost by package moderation.
//
// # Limits
//
// What a driver does not count is not seen.
package cards
