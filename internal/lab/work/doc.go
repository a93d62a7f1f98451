// Package work is the work of other programs in a practice world: the background of a verdict, and
// half of the faults.
//
// # Model
//
//   - Work: one program as data: its kind, its host, and figures whose meaning depends on the kind.
//   - Run: the body of the hidden command "linerate lab-work". It is a process of its own in its
//     host, so the kernel accounts for its processor time, sockets and drops as for any program.
//   - Ready: the line that Run prints when the work takes effect: when it listens, is connected, or
//     has filled the table.
//
// Each kind is a bad habit of real programs in its smallest form: a slow reader, a listener that
// does not accept, a client that opens a connection for every request, a program that writes a
// request in two pieces. No kind is fitted to the rules that must find it.
//
// # Units
//
// Rates in bits or packets per second, sizes in bytes, times in seconds. For kinds that open
// connections, packets per second are connections per second.
//
// # Sources
//
// listen(2) for what a backlog holds; udp(7) and socket(7) for SO_RCVBUF, which the kernel doubles;
// RFC 896 and RFC 1122 §4.2.3.2 for Nagle against delayed acknowledgement; ip(7) for
// ip_local_port_range; Documentation/networking/nf_conntrack-sysctl.rst and
// net/netfilter/nf_conntrack_proto_udp.c for when a UDP flow is assured: after a reply and two
// seconds.
//
// # Limits
//
// Linux only; elsewhere Run returns ErrNotSupported. Pacing wakes once a millisecond, so a rate is
// exact only on average.
package work
