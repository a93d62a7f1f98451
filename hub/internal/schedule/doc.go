// Package schedule measures named targets at intervals, so that the history of a host has the
// results of its paths beside its own counters.
//
// # Model
//
// A [Config] is one measurement: a target, a test, an interval, and caps. A [Scheduler] divides
// time into slots of each measurement's interval and starts at most one run in each, after a random
// delay. Runs of all measurements follow one after the other, because two at once would disturb
// each other. The scheduler does not make up for a slot that has passed. A result becomes points of
// the series in [Metrics], an event with the document linerate.measure/1, and a [Cell] of the
// matrix; a failure becomes an event and a success of zero.
//
// # Units
//
// Bits per second, payload bytes, seconds.
//
// # Sources
//
// proc_locks(5) for which process holds a journal; sysfs-class-net-statistics of the kernel's ABI
// documentation for the load of an interface.
//
// # Limits
//
// Slots follow the monotonic clock, so a clock that is set neither adds runs nor delays them. The
// scheduler sees tunes of this host alone. The far host decides what it lets clients do.
package schedule
