// Package ruleset is the model of a packet filter's rules, whichever program wrote them, and what
// one packet meets in them.
//
// # Model
//
// A [Ruleset] has tables, tables have chains and sets, chains have rules, and a rule is a row of
// statements that are evaluated from the left: a [Match] that does not hold ends the rule, a
// [*Counter] counts the packets that reach it, a [Verdict] or the verdict of a [VerdictMap] says
// what follows. Matches on eight fields are modelled: interface in and out, source and destination
// address, protocol, source and destination port, state of the connection; and the network
// protocol. Everything else is [Opaque]: kept as it was written, with what is known of its effect.
// An opaque statement with a side effect is a barrier: no rewrite may move a rule across it.
//
// Every value of every field is sixteen bytes in network byte order ([Value]), so that every match
// is a union of intervals: an address as IPv6 or IPv4-mapped, a number at the end, and the name of
// an interface as the kernel keeps it, padded with zeros. The wildcard eth* is the interval of the
// names that begin so.
//
// [Ruleset.Trace] walks a packet through a hook as nft_do_chain and ipt_do_table do. It reports the
// rules that were evaluated, the counters that increased and the verdict. For ipfw it follows
// skipto, and for pf the last matching rule decides unless one is quick. [Packet.Answers] decides
// the conditions on flags of TCP and on either interface that are no fields of the model.
//
// # Units
//
// Counters are in packets and bytes since the rule was loaded. Timeouts are time.Duration.
//
// # Sources
//
// nft(8) and libnftables-json(5) of nftables 1.0.6; net/netfilter/nf_tables_core.c of Linux 6.18
// for the order of evaluation; linux/netfilter_ipv4.h for the priorities of iptables; ipfw(8) and
// pf.conf(5) of FreeBSD 14, and
// pf.c, ip_fw2.c and pfctl_parser.c of its sources for flags and what is printed of them.
//
// # Limits
//
// A packet has one network header: tunnels and extension headers are not looked into. A negated
// state is modelled for one state. Dynamic sets are what they held when they were read.
package ruleset
