// Package nicstat is the dictionary of the counters in which network cards and their drivers
// confess: what was lost, damaged or held back, and why.
//
// # Model
//
// [Lookup] takes a driver and the name of one counter, as /sys/class/net/X/statistics or ethtool -S
// have it, and answers with an [Entry]: its [Class], what it means, and where that is written. The
// dictionary is data (counters.json), a group for each family of drivers. A driver's own entry goes
// before the common one: the kernel lets each driver decide what it puts into rx_missed_errors.
//
// [Queue] and [InterruptQueue] tell which queue a counter or an interrupt belongs to, by the ways
// in which drivers name them.
//
// # Names
//
// A number sign in a name of counters.json stands for the digits of a queue or ring:
// rx_queue_#_drops, [#]: rx_discards.
//
// # Sources
//
// Documentation/networking/statistics.rst and include/uapi/linux/if_link.h for the common ones; of
// each driver the file that names its counters, in drivers/net, and its page in
// Documentation/networking/device_drivers; data sheets where the register has one. Each entry names
// its own.
//
// # Limits
//
// Counters that count good traffic are not in it, nor those that repeat another one. What is not in
// it is not known, which is no proof of its being harmless. Some counters count events and not
// packets; their meaning says so.
package nicstat
