// Package sockdiag lists the TCP and UDP sockets of a network namespace with the kernel's figures
// about each.
//
// # Model
//
// [Each] queries the kernel (netlink family sock_diag, as ss(8) does) and passes one [Socket] after
// the other to the caller. It collects nothing: a host may have a million sockets, and the caller
// keeps the ones it needs and stops by count or by time. It lists both versions of IP, IPv4 first;
// an IPv4 connection of an IPv6 socket has IPv4 addresses.
//
// The order is that of the kernel's hash tables. It remains the same while a socket exists, so two
// lists truncated at the same count contain mostly the same sockets.
//
// # Units
//
// Bytes, or connections in the queues of a listener. [sys.TCPInfo] names the kernel's own units in
// its fields.
//
// # Sources
//
// sock_diag(7); include/uapi/linux/{inet_diag,sock_diag}.h of Linux 6.18; inet_sk_diag_fill in
// net/ipv4/inet_diag.c for the meaning of the queues in each state; ss(8) as the other reader.
// SOCK_DIAG_BY_FAMILY exists since Linux 3.3.
//
// # Limits
//
// Linux only: on other systems, and with a kernel built without inet_diag, the error is
// errors.ErrUnsupported. The kernel loads tcp_diag and udp_diag at the first request if they are
// modules. An unprivileged user sees as much as root, in any network namespace. A dump is not a
// snapshot: sockets appear and disappear while it runs, and a socket that moves within a table may
// be listed twice or not at all.
package sockdiag
