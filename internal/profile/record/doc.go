// Package record samples this host and makes a profile of it.
//
// # Model
//
// [Run] asks the kernel which events it can sample, measures what a sample costs here, chooses the
// rate so that sampling takes less than 1 % of each CPU, and samples the chosen CPUs for a time.
// Functions get their names from the kernel, which is asked for those that samples hit, and from
// records of what it loads meanwhile; where it does not answer, from /proc/kallsyms, read once.
// Packets are counted over the same window, in the counters that every measurement reads
// (/proc/net/dev), and at the end of each slice of time.
//
// # Units
//
// Rates are samples per second and CPU. [Options.Duration] is the time from the start of the events
// to their end.
//
// # Sources
//
// perf_event_open(2), proc(5). An interface that stands on others (lower_* in /sys/class/net) does
// not count, because those count its packets: Documentation/ABI/testing/sysfs-class-net.
//
// # Limits
//
// Linux only. Packets are those of the network namespace of this process; samples are of the whole
// machine.
package record
