// Package overview is a fleet as a page shows it: counts before hosts, the worst before the many,
// and everything in pages of a bounded size.
//
// # Model
//
// [Count] counts the hosts of a selection and names the worst by one [Measure], with the
// distribution of that measure beside them. [List] returns a page of hosts; a page ends with the
// [Page.Next] that begins the next one, so that hosts which come and go do not shift a page.
// [GridOf] rolls a mesh of measurements up to racks, and [Within] opens one cell of it to at most
// 64 × 64 hosts. [Rollout] is what a rollout has to say about itself.
//
// The measure that a page begins with is how far a host is from its class: the distance from the
// median of the class in units of its median absolute deviation, which a few bad hosts do not move.
//
// # Units
//
// Times are UTC. Ratios are parts of one; a distance is a number of standard deviations.
//
// # Sources
//
// Rousseeuw and Croux, "Alternatives to the Median Absolute Deviation", JASA 1993, for the factor
// 1.4826; Guo et al., "Pingmesh", SIGCOMM 2015, for the reading of rows, columns and blocks.
//
// # Limits
//
// [MostListed] hosts on a page, [MostCounted] classes and findings, [MostRacks] racks and
// [MostHosts] hosts on an axis. A class of fewer than five measured hosts has no distances.
package overview
