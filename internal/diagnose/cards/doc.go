// Package cards has the rules about everything between the cable and the network stack: link, bus,
// rings, queues, interrupts and offloads.
//
// # Model
//
// Each rule has a file of its own with the evidence it needs, its thresholds and their reasons, the
// look-alikes it rejects, and the settings to try. Most rules examine an [evidence.Span], one host
// over a period, and so work with and without a run. All are pure functions.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// Documentation/networking/statistics.rst and scaling.rst; the counters of drivers from package
// nicstat; the cost of interrupts from package moderation.
//
// # Limits
//
// The rules do not see what a driver does not count.
package cards
