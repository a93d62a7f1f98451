// Package timeline keeps what happened to hosts and when: changes, tune runs, measurements, reboots, links that came and went, findings, alerts.
//
// # Model
//
// An [Event] is a moment or a span with an id and one line of text; some have a document that tells the rest.
//
// # Units
//
// Times are UTC, to the millisecond.
//
// # Sources
//
// Package durable for what survives power loss.
//
// # Limits
//
// One writer.
package timeline
