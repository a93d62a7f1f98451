// Package nft counts the firewall rules that the kernel evaluates for a packet in a network
// namespace.
//
// # Model
//
// [Chains] returns the base chains of nftables, which the hooks of the stack call. The kernel
// evaluates a chain from its first rule until a rule decides, so the cost of a packet is the number
// of rules before that. [Chain.Rules] is the number of rules in the chain. [Chain.Compared] is the
// number of rules evaluated for a packet of an existing connection that matches none of them. A
// rule that accepts such connections, or everything, ends the evaluation; an unconditional jump
// continues it in another chain, and so does a conditional jump whose counter saw half of the
// table's packets. [Chain.AtMost] follows every conditional jump. [Chain.Counting] is the number of
// rules that only count packets, as accounting does: accepting packets before them ends it.
// Elements of sets and maps do not count as rules: a set of any size takes one lookup.
//
// Each chain costs one message, because the kernel keeps its count of rules. Rules are read only
// for long chains, where the difference matters.
//
// [Legacy] returns the same of x_tables (iptables-legacy), where every rule has a counter.
//
// # Sources
//
// include/uapi/linux/netfilter/nf_tables.h and nfnetlink.h of Linux 6.18; nft_do_chain in
// net/netfilter/nf_tables_core.c for the order of evaluation; iptables-nft(8), whose rules are
// nftables rules that contain a "match" of xtables; linux/netfilter/x_tables.h, ip_tables.h and
// ip6_tables.h for x_tables.
//
// # Limits
//
// Linux, with CAP_NET_ADMIN in the user namespace of the network namespace. Rules of
// ebtables are invisible. A query makes the kernel load the module
// nf_tables, so a caller that must not change the host must not query a host without it. The same
// holds for each table of x_tables.
package nft
