// Package rewrite makes rules that do the same for fewer comparisons per packet.
//
// # Model
//
// Two rules may change places if no packet matches both, or if both only count. A rule with an
// effect that is not modelled is a barrier: nothing moves across it, and it stays as it was
// written. Between barriers a rule joins the earliest place whose rules have the same form, if it
// may move there.
//
// Rules of nftables that compare the same fields with values of their own become one lookup: a set
// whose elements count, or a map from values to verdicts. Each element keeps the counter of its
// rule with its value, and its comment. Addresses with prefixes of one length are looked up behind
// a mask, by hash. Rules that share a field and differ otherwise go into chains of their own,
// behind a map from the field's values to those chains. For ipfw they are blocks behind skipto
// tablearg, and rules of pf that differ in an address share a table.
//
// iptables has no map, so its chains form a tree. Each comparison of the tree asks for the prefix
// that about half of the rest of the packets have, by the counters, and leaves with goto: what
// remains is compared with the next half. A rule that counts a whole prefix is such a comparison
// itself.
//
// Filter sets of nftables and iptables, whose rules overlap, become decision trees: one comparison
// after the other, each of which leads to a chain with goto. A rule that packets of both sides can
// match has a place on both. Then it has a chain of its own that its places lead to, so that
// its counter stays one. A rule that no packet reaches keeps its counter in a chain that nothing
// leads to. A comparison is chosen by how many rules both sides have and how many packets, by the
// counters. Trees are offered if they save rules and, by the prices of package cost, time.
//
// Several forms are made, and the one with the fewest rules on the way of a packet is kept. If two
// forms differ by two rules at most, the prices of package cost decide. Rules that decide more
// packets then come first where order is free.
//
// [Optimise] offers only what package equal proved. A chain whose new rules cannot be proved keeps
// the old ones, and the result says so.
//
// # Units
//
// Rules are counts.
//
// # Sources
//
// nft(8) of nftables 1.0.6 for sets, maps and their limits; iptables(8); ipfw(8) and pf.conf(5) of
// FreeBSD 14. Gupta and McKeown, "Packet classification on multiple fields" (SIGCOMM 1999), for the
// forms.
//
// # Limits
//
// Names of interfaces have no halves but those that their letters make, so ten names that differ in
// their last letter are compared one by one. Named counters stay in rules, because elements cannot
// have them. New numbers of rules of ipfw lie between those of the rules before and behind. No port
// is compared where the old rule compared none, because fragments have none.
package rewrite
