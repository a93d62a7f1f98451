// Package nft counts the firewall rules that packets of a network namespace are compared with.
//
// # Model
//
// [Chains] lists the base chains of nftables: those that a hook of the stack leads packets to. A
// chain is walked from its first rule on, until one decides; so what a packet costs is the number
// of rules before that. [Chain.Rules] is what the chain holds, [Chain.Compared] the rules that a
// packet of a connection that exists passes if it fits none of them: a rule that lets such
// connections through, or everything, ends the walk, and a jump without a condition leads it
// through another chain. Jumps with a condition are not followed, and elements of sets and maps are
// no rules: a set of any size is asked once.
//
// The chains cost one message each, as the kernel keeps their count. Rules are read of long chains
// only, where the difference matters.
//
// # Sources
//
// include/uapi/linux/netfilter/nf_tables.h and nfnetlink.h of Linux 6.18; nft_do_chain in
// net/netfilter/nf_tables_core.c for the order of the walk; iptables-nft(8), whose rules are rules
// of nftables with a "match" of xtables in them.
//
// # Limits
//
// Linux, with CAP_NET_ADMIN in the user namespace of the network namespace. Rules of the older
// xtables (iptables-legacy) and of ebtables are not seen. The kernel loads the module nf_tables
// when it is asked, so that a caller that only looks must ask nothing of a host without it.
package nft
