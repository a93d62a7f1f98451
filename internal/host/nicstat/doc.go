// Package nicstat is the dictionary of the counters in which NICs and their drivers report what
// they lost, received damaged or held back, and why.
//
// # Model
//
// [Lookup] takes a driver and the name of one counter, as /sys/class/net/X/statistics or ethtool -S
// shows it. It returns an [Entry]: the counter's [Class], its meaning, and the source of that
// meaning. The dictionary is data (counters.json), with a group for each family of drivers. A
// driver's own entry takes precedence over the common one, because the kernel lets each driver
// decide what it counts in rx_missed_errors.
//
// [Queue] and [InterruptQueue] find the queue of a counter or an interrupt in the forms that
// drivers use for such names. Of two forms with the same counter only one is known, so that a sum
// over a queue counts a packet once (nfp: rxq_0_pkts, and not rvec_0_rx_pkts).
//
// # Names
//
// A number sign in a name of counters.json stands for the digits of a queue or ring, and for any
// other digits: rx_queue_#_drops, [#]: rx_discards, rxq#_l#_err. A driver may be in several groups;
// the group with many drivers has the counters that any Ethernet port has, under the names of each.
//
// # Sources
//
// Documentation/networking/statistics.rst and include/uapi/linux/if_link.h for the common counters;
// for each driver the file in drivers/net that names its counters, and its page in
// Documentation/networking/device_drivers; data sheets where the register has one. Each entry names
// its source.
//
// # Limits
//
// The dictionary leaves out counters of good traffic and counters that repeat another one. Some
// drivers count the same packets in total, by queue, and in the kernel's common counters; readers
// take the largest of a class and never their sum. It also leaves out counters of wrong TCP and UDP
// checksums, because no cable causes them. A counter without an entry may still count a loss. Some
// counters count events instead of packets; their meaning says so.
package nicstat
