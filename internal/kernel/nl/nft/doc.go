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
// continues it in another chain. Conditional jumps are not followed. Elements of sets and maps do
// not count as rules: a set of any size takes one lookup.
//
// Each chain costs one message, because the kernel keeps its count of rules. Rules are read only
// for long chains, where the difference matters.
//
// # Sources
//
// include/uapi/linux/netfilter/nf_tables.h and nfnetlink.h of Linux 6.18; nft_do_chain in
// net/netfilter/nf_tables_core.c for the order of evaluation; iptables-nft(8), whose rules are
// nftables rules that contain a "match" of xtables.
//
// # Limits
//
// Linux, with CAP_NET_ADMIN in the user namespace of the network namespace. Rules of the older
// xtables (iptables-legacy) and of ebtables are invisible. A query makes the kernel load the module
// nf_tables, so a caller that must not change the host must not query a host without it.
package nft
