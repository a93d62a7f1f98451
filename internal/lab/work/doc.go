// Package work is what other programs do in a practice world: the background against which a
// verdict is made, and half of the faults.
//
// # Model
//
//   - Work: one program as data: its kind, on which host it runs, and figures whose meaning the
//     kind gives.
//   - Run: the body of the hidden command "linerate lab-work", a process of its own in its host, so
//     that the kernel accounts for it as for any program: its processor time, its sockets, its
//     drops.
//   - Ready: the line that Run prints when the work has begun to matter: it listens, it is
//     connected, the table is full.
//
// A kind is a bad habit seen on real hosts, kept as small as it can be: a reader that is slow, a
// listener that does not accept, a client that opens a connection for every question, a program
// that writes a request in two pieces. Nothing here is tuned to be found.
//
// # Units
//
// Rates in bits or packets per second, sizes in bytes, times in seconds; packets per second of
// connection kinds are connections.
//
// # Sources
//
// listen(2) for what a backlog holds; udp(7) and socket(7) for SO_RCVBUF, which the kernel doubles;
// RFC 896 and RFC 1122 §4.2.3.2 for Nagle against delayed acknowledgement; ip(7) for
// ip_local_port_range; Documentation/networking/nf_conntrack-sysctl.rst and
// net/netfilter/nf_conntrack_proto_udp.c for when a UDP flow is assured: a reply was seen and two
// seconds have passed.
//
// # Limits
//
// Linux only; elsewhere Run answers ErrNotSupported. Pacing wakes once a millisecond: below that a
// rate is right on average only.
package work
