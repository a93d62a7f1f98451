// Package sample reads one host second after second, cheaply, as series that a history can keep and
// a live view can subtract.
//
// # Model
//
// A [Sampler] gives a [Reading] whenever it is asked: one [Point] for each [Series] that exists
// then. A [Series] is one [Metric] of one thing (an interface, a queue, a processor); as long as
// the thing is there its pointer stays the same, so that who keeps readings can keep what belongs
// to a series beside it. [Metrics] is the catalogue.
//
// # Counters
//
// A counter begins at zero with the sampler, and with the thing: its value is what was counted
// while we looked. A reading adds what was counted since the one before, or nothing, never more.
// What a thing is goes by the kernel's number of it, the address of its hardware and its kind, and
// not by its name: two cards that swap their names end, and begin as two others.
//
// A counter that went back went through zero, began anew, or wavers by a little. It can have gone
// through zero only where it has 32 bits: those of queueing disciplines, softirqs, interrupts and
// softnet_stat have, by the kernel's own structures. The kernel has 64 for those of interfaces, and
// an old driver below it may have 32: that is concluded of a counter that has never been above 2³²,
// went back alone among the bytes and packets of its interface, and came no further than its link
// allows. Everything else began anew, with all counters of its interface, and adds nothing for that
// reading. Where a counter has begun anew and passed its old value before anybody looked, what is
// added is less than the truth.
//
// # Time
//
// A reading that is taken within a tolerance of its tick is filed under the tick; every other has
// its own time. [Reading.SinceBoot] is of a clock that nobody sets and that goes on while the host
// sleeps: rates over it are right for readings that come late, and for hosts that slept or whose
// clock was set.
//
// # Cost
//
// Files of /proc stay open, interfaces and queueing disciplines are three dumps of netlink, and
// nothing is asked of each interface at each reading: driver and speed when its link changes and
// every 30 s. What drivers count themselves (ethtool -S) is read of cards that have a link and are
// awake, and of the veths with several queues; it and the interrupts by processor are read as often
// as they take no more than a 400th of the time, so that these series may be missing in a reading
// without having ended. A host with 40 VLANs, two interfaces of 64 queues and 2 processors has some
// 1050 series, and a reading takes 2 ms.
//
// No interface and queue has a series for each processor: interrupts are told by queue and by
// processor. Of more than [DefaultMaxInterfaces] interfaces the cards and the oldest others are
// told.
//
// # Permission
//
// None is needed. An ordinary user sees all but the drops of queues on which programs judge
// packets. No device is woken: package host, "Sleep".
//
// # Units
//
// Base units, named in the metric: bytes, seconds, packets, bits per second. Names follow the
// conventions of Prometheus.
//
// # Sources
//
// The files that each metric names; include/uapi/linux/if_link.h for the counters of interfaces.
// The text formats are those of package procfs, netlink is package nl, what drivers' counters mean
// is package nicstat. Package host says which figures count the same packets.
//
// # Limits
//
// Linux 4.7 and later, and the running system alone: an archive is one moment. Interfaces, sockets
// and protocols are those of the network namespace of the thread that made the sampler; processors,
// memory and pressure are the machine's. Interrupts by processor need /sys of that namespace and
// Linux 4.9. Of counters of 32 bits that come further than half their range between two readings,
// as bytes at 17 Gb/s do in a second, some is lost.
package sample
