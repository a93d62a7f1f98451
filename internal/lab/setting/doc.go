// Package setting makes and reads the settings of one host of a practice world, from within it.
//
// # Model
//
//   - Set: one setting made true, by the project's knob name. It is how a world gets its faults,
//     and knows just the kinds that these need: sysctl, link, route, queue, qdisc, and what the
//     catalogue of knobs writes to cards (ethtool).
//   - Here: a sysctl of the machine itself, with what puts it back.
//   - Rename, AwaitCarrier, Renew: what the lab does to the cards of a guest before and after it
//     moves them.
//   - Snapshot: everything that anybody could have changed, so that two of them prove that nothing
//     has.
//
// Worlds are made by these without the journal: they end with everything in them.
//
// # Sources
//
// sysctl names as files below /proc/sys (proc(5)); tc(8) for the words of queueing disciplines;
// Documentation/networking/scaling.rst for rps_cpus.
//
// # Limits
//
// Linux only.
package setting
