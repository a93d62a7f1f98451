// Package sample reads one host second after second, cheaply, as series that a history can keep and a live view can subtract.
//
// # Model
//
// A [Sampler] gives a [Reading] whenever it is asked: one [Point] for each [Series] that exists then. A [Series] is one [Metric] of one thing (an interface, a
// queue, a processor); as long as the thing is there its pointer stays the same, so that who keeps readings can keep what belongs to a series beside it.
//
// # Units
//
// Base units, named in the metric: bytes, seconds, packets, bits per second. Names follow the conventions of Prometheus.
//
// # Sources
//
// Package host.
//
// # Limits
//
// Linux.
package sample
