// Package cost says what the rules of a packet filter cost each packet, and which rules are to
// blame.
//
// # Model
//
// A packet is compared with the rules of a chain from the first one until a rule decides. [Of]
// walks the packets that the counters saw through the chains: all that enter a chain are compared
// with its first rule, and those that a rule took away are not compared with the next. What enters
// a base chain is its policy's counter and everything that its rules decided, or at least the
// highest counter; in nftables, which counts for no policy, it is at least what the other chains of
// the hook saw and did not drop. Jumps and gotos carry their counter into the other chain; where
// several chains jump to one, its counters are shared in proportion. A verdict map carries the
// counters of its elements, or what the first counters of its chains saw, or equal shares.
//
// A rule of nftables without a counter is taken to match nothing, so that the figure is the highest
// that the counters allow ([Chain.Uncounted] says how many such rules there are). A chain without
// any packet on a counter is walked with one packet that matches no condition.
//
// The time is the sum of prices ([Prices]): of the way into a chain, of each rule, of the
// operations that the kernel compiled its conditions to, of lookups by the kind of set, of a jump.
// A rule that does not match is taken to end at its first condition that is not about a protocol.
// Connection tracking is a price for each packet, once, where a rule needs it.
//
// # Units
//
// Nanoseconds of CPU time per packet. Packets and rules are counts; rules per packet are an
// expectation.
//
// # Sources
//
// nft_do_chain, nft_payload_select_ops and the sets of Linux 6.18; Al-Shaer and Hamed, "Discovery
// of policy anomalies in distributed firewalls" (INFOCOM 2004), for shadowed, redundant and
// generalised rules.
//
// # Limits
//
// Counters since loading are an average of all that happened since. The prices of [Measured] are
// those of one machine; package measure finds those of the host. A rule of which the first
// condition often holds and the second does not costs more than the model says, and so does a
// negated one.
package cost
