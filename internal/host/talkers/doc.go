// Package talkers shows which connections and processes of this host send and receive over TCP.
//
// # Model
//
// A [Meter] lists the connections of the network namespace twice and subtracts the kernel's
// counters of each, which it recognises by its cookie. A connection belongs to the process that
// holds its socket: the links below /proc/PID/fd name the inode that the kernel reports with the
// socket. The meter reads these links only when a connection moves bytes whose socket it has not
// seen before.
//
// # Units
//
// Bits of payload per second: acknowledged by the other end, or received in order. Bytes that were
// sent again are no part of it; they stand apart. Round trips are in seconds.
//
// # Sources
//
// sock_diag(7); struct tcp_info in include/uapi/linux/tcp.h (bytes_acked and bytes_received since
// Linux 4.1, bytes_retrans since 4.19); proc_pid_fd(5), cgroups(7).
//
// # Limits
//
// Linux only. A connection that begins and ends between two readings is not seen, and what one
// moved after the last reading before its end is lost. The kernel counts no bytes of UDP sockets.
// An ordinary user sees all connections, and the names of the user's own processes only. A socket
// that several processes hold belongs to the one with the lowest number. At most 65 536 connections
// are read, in at most 150 ms.
package talkers
