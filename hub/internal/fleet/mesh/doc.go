// Package mesh decides which hosts measure each other when, and which host, link, rack or spine the
// results accuse.
//
// # Model
//
// Full meshes grow with the square of the hosts. Here every host gets k partners: k rounds of the
// circle method, drawn at random, are a random k-regular graph, and in each round every host has
// one partner at most ([Partner]). [Schedule] puts the tests of all rounds into slots, in which no
// host is in two tests, no uplink of a rack and no site carries more load tests than its cap, and
// each test comes as early as it can.
//
// [Run] makes the tests, slot by slot. A host that is in a test of another planner is busy: the
// pair is tried again in a later slot, and nothing waits. The lease itself is that of package
// traffic/lease, at the hosts.
//
// [Vote] compares, for every element that tests have crossed, how likely the results are if this
// element is the one bad one and if none is. A host, the link of a host, the uplink of a rack to a
// spine, a rack and a spine are elements. [Second] chooses the tests of a second stage: each
// suspect against partners whose tests were good.
//
// A starved machine makes tests bad that cross nothing bad. A host says how late it was for times
// of its own: a bad result of a late host is not judged. And [Culprits] takes the share of bad
// tests that cross none of the accused for that of good paths, so that what disturbs all paths
// accuses nothing.
//
// Results are documents and roll-ups; n² series never exist.
//
// # Units
//
// Slots are whole numbers; the caller gives them a length. Scores are differences of log
// likelihoods.
//
// # Sources
//
// Kirkman 1847, the circle method; Arzani et al., "007", NSDI 2018, for votes over the elements of
// a path; Guo et al., "Pingmesh", SIGCOMM 2015.
//
// # Limits
//
// Where the path is not known (ECMP), only hosts, racks and pairs of racks can be accused. Vote
// looks for one fault; with several at once, remove the tests of the first and vote again
// ([Culprits]).
package mesh
