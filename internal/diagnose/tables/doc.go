// Package tables judges the tables and queues of the kernel above the card: sockets, listeners,
// connection tracking, neighbours, ports, memory, and the program behind them.
//
// # Model
//
// One rule is one file: what it needs to see, its thresholds with their reason, the look-alikes it
// must reject, and the settings worth trying. Most look at an [evidence.Span], one host over a
// time, and so work with and without a run; all are pure.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// proc(5); Documentation/networking/ip-sysctl.rst and snmp_counter.rst; sock_diag(7) for sockets,
// by package watch; nftables(8) for what a packet is compared with, by package nft. Where a counter
// moves is from Linux 6.18: net/netfilter/nf_conntrack_core.c, net/core/neighbour.c,
// net/ipv4/tcp.c, tcp_input.c, inet_connection_sock.c and udp.c.
//
// # Limits
//
// Counters are of a whole host or network namespace, whoever moved them. Those of neighbours and of
// the memory of TCP are one for all namespaces; the limits of that memory are told in the first one
// alone, so that a container is judged by its own pruned queues and the time under pressure. Memory
// limits of control groups, and firewalls other than nftables, are not seen.
package tables
