// Package tables has the rules about the kernel's tables and queues above the NIC: sockets,
// listeners, connection tracking, neighbours, ports, memory, and the program behind them.
//
// # Model
//
// Each rule has a file of its own with the evidence it needs, its thresholds and their reasons, the
// look-alikes it rejects, and the settings to try. Most rules examine an [evidence.Span], one host
// over a period, and so work with and without a run. All are pure functions.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// proc(5); Documentation/networking/ip-sysctl.rst and snmp_counter.rst; sock_diag(7) for sockets,
// by package watch; nftables(8) for the rules that a packet is compared with, by package nft. The
// places where counters increase are from Linux 6.18: net/netfilter/nf_conntrack_core.c,
// net/core/neighbour.c, net/ipv4/tcp.c, tcp_input.c, inet_connection_sock.c and udp.c.
//
// # Limits
//
// Counters cover a whole host or network namespace, with the traffic of all programs. Those of
// neighbours and of the memory of TCP are one for all namespaces. Only the first namespace shows
// the limits of that memory, so a container is judged by its own pruned queues and its time under
// pressure. The rules do not see memory limits of control groups, nor firewalls other than
// nftables.
package tables
