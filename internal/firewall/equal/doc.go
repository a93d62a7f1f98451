// Package equal proves that two sets of rules treat every packet alike: the same verdict, the same
// counters increased by the same amount, the same unmodelled statements reached in the same order.
//
// # Model
//
// A chain becomes a flat list of entries. An entry is a box of the packets that reach one statement
// of one rule, an interval for each field, and what the statement does: increase a counter, decide,
// go ahead to a later entry, or an effect that is not modelled. Jumps, verdict maps and sets with
// counters become the entries of their elements. The identity of a counter is its address, so the
// new rules share the counters of the old ones.
//
// Two lists are equal in a box of packets if one is a permutation of the other that exchanges only
// entries whose order is free: entries that no packet reaches both of, and entries that only count.
// If they are not, the box is cut at the end of an interval, and both halves are compared with the
// entries that they still meet. A box that every entry covers has one outcome, which is computed
// and compared. So equality is decided by cells, but rules that only moved need few of them. A
// difference is reported with a packet, whose traces through both rulesets differ.
//
// A condition that is not modelled and has no effect is an unknown answer, the same for both
// rulesets between two effects. An effect keeps its place against every entry that a packet can
// reach with it.
//
// Directed packets are a second proof, by [ruleset.Table.Walk]: the ends of the intervals of each
// rule and the values beside them, combined in pairs. [Kernel] is the third: nft loads both
// rulesets in two network namespaces, and the same packets pass both.
//
// # Units
//
// Cells, packets and counters are counts.
//
// # Sources
//
// Gouda and Liu, "Structured firewall design" (Computer Networks 51, 2007), for decision diagrams
// of rules; El-Atawy et al., "Policy segmentation for intelligent firewall testing" (NPSec 2005),
// for packets at the ends of intervals.
//
// # Limits
//
// The proof is about the model: fragments without ports, extension headers and the answers of
// unmodelled conditions are as in package ruleset. Rules that need more cells or comparisons than
// [Limits] allows are neither equal nor different: the answer is [TooMany].
package equal
