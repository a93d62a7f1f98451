// Package sample reads one host every second at low cost, as series that a history can keep and a
// live view can subtract.
//
// # Model
//
// Each call of [Sampler.Read] returns a [Reading]: one [Point] for each [Series] that exists then.
// A [Series] is one [Metric] of one thing (an interface, a queue, a processor). Its pointer stays
// the same as long as the thing exists, so a caller that keeps readings can keep its own data with
// a series. [Metrics] is the catalogue.
//
// # Counters
//
// A counter begins at zero with the sampler, or with the thing if that is newer: its value is what
// was counted during observation. A reading adds what was counted since the previous one, or
// nothing, never more. A thing is identified by its kernel number, its hardware address and its
// kind, not by its name: when two cards swap their names, both end, and two new ones begin.
//
// A counter that decreased has wrapped, was reset, or wavers slightly. Only a 32-bit counter can
// wrap. By the kernel's own structures those are the counters of queueing disciplines, softirqs,
// interrupts and softnet_stat. The kernel has 64 bits for those of interfaces, but an old driver
// below it may have 32. That is assumed for a counter that has never been above 2³², decreased
// alone among the bytes and packets of its interface, and advanced no further than its link allows.
// Any other decrease is a reset of all counters of its interface, and adds nothing for that
// reading. If a counter was reset and passed its old value between two readings, the addition is
// too small.
//
// # Time
//
// A reading taken within a tolerance of its tick is filed under the tick; any other has its own
// time. [Reading.SinceBoot] comes from a clock that is never set and that runs while the host
// sleeps: rates over it are right for late readings, for hosts that slept and for hosts whose clock
// was set.
//
// # Cost
//
// Files of /proc stay open, interfaces and queueing disciplines are three netlink dumps, and a
// reading asks nothing of single interfaces. It asks for driver and speed when a link changes and
// every 30 s. Drivers' own counters (ethtool -S) are read for NICs that have a link and are awake,
// and for veths with several queues. These counters and the interrupts by processor are read so
// rarely that they take at most a 400th of the time, so their series may be missing in a reading
// without having ended. A host with 40 VLANs, two interfaces of 64 queues and 2 processors has some
// 1050 series, and a reading takes 2 ms.
//
// No interface or queue has a series for each processor: interrupts are counted by queue and by
// processor. Of more than [DefaultMaxInterfaces] interfaces the NICs and the oldest of the rest are
// sampled.
//
// # Permission
//
// None is required. An ordinary user sees everything except the drops of queues on which programs
// give verdicts. No device is woken: package host, "Sleep".
//
// # Units
//
// Base units, named in the metric: bytes, seconds, packets, bits per second. Names follow the
// conventions of Prometheus.
//
// # Sources
//
// The files that each metric names; include/uapi/linux/if_link.h for the counters of interfaces.
// Package procfs has the text formats, package nl netlink, package nicstat the meanings of drivers'
// counters. Package host documents which figures count the same packets.
//
// # Limits
//
// Linux 4.7 and later, and only the running system: an archive is one moment. Interfaces, sockets
// and protocols are those of the network namespace of the thread that made the sampler; processors,
// memory and pressure are the machine's. Interrupts by processor need /sys of that namespace and
// Linux 4.9. A 32-bit counter that advances by more than half its range between two readings, as
// bytes at 17 Gb/s do in a second, loses some counts.
package sample
