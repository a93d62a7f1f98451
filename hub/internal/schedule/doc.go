// Package schedule measures named targets again and again, so that the history of a host has the
// figures of its paths beside those of its own.
//
// # Model
//
// A [Config] is one measurement as people write it: a target, a test, how often, and caps. A
// [Scheduler] cuts time into slots of each measurement's interval and starts at most one run in
// each, a random bit into it. Runs of all measurements come one after the other: two at once would
// measure each other. A slot that has passed is not made up for. The result becomes points of the
// series in [Metrics], an event with the document linerate.measure/1, and a [Cell] of the matrix; a
// failure becomes an event and a success of zero.
//
// # Units
//
// Bits per second, payload bytes, seconds.
//
// # Sources
//
// proc_locks(5) for who holds a journal; sysfs-class-net-statistics of the kernel's ABI
// documentation for how busy an interface is.
//
// # Limits
//
// Slots go by the monotonic clock, so a clock that is set does neither make up for time nor wait
// for it. Whether a tune runs is known of this host alone. The far host decides for itself what it
// lets clients do.
package schedule
