// Package sockdiag lists the TCP and UDP sockets of a network namespace with what the kernel knows
// of each.
//
// # Model
//
// [Each] asks the kernel (netlink family sock_diag, as ss(8) does) and hands over one [Socket]
// after the other. Nothing is gathered here: a host may have a million sockets, of which the caller
// keeps what it wants and stops when it has had enough, by count or by time. Sockets of both
// versions of IP come, IPv4 first; an IPv4 connection of an IPv6 socket has IPv4 addresses.
//
// The order is that of the kernel's hash tables. It stays the same while a socket lives, so that
// two lists which are cut after as many sockets have mostly the same ones in them.
//
// # Units
//
// Bytes, or connections in the queues of a listener; [sys.TCPInfo] has the kernel's own units in
// its names.
//
// # Sources
//
// sock_diag(7); include/uapi/linux/{inet_diag,sock_diag}.h of Linux 6.18; inet_sk_diag_fill in
// net/ipv4/inet_diag.c for what the queues mean in each state; ss(8) as the other reader.
// SOCK_DIAG_BY_FAMILY is since Linux 3.3.
//
// # Limits
//
// Linux only: elsewhere, and where the kernel was built without inet_diag, the error is
// errors.ErrUnsupported. The kernel loads tcp_diag and udp_diag when it is first asked, if they are
// modules. An ordinary user is told as much as root, in a network namespace of his own or not. A
// dump is no moment: sockets come and go while it runs, and one that moves to another place of a
// table may come twice or not at all.
package sockdiag
