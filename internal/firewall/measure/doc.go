// Package measure finds what rules of packet filters cost on this host, and derives the prices of
// package cost from that.
//
// # Model
//
// A [Case] is rules in a network namespace of its own. [Run] makes one for each case, loads the
// rules with the program that they are of, and sends datagrams over the loopback of the namespace,
// whose queueing discipline drops them: so all that happens to a datagram happens in the thread
// that sends it, and the rules at the hook output are part of it. The time is that thread's CPU
// time, read around each system call of 32 datagrams. The cases take turns batch by batch, so that
// whatever slows the machine slows all of them; the first quartile of a case's batches is its
// result. Time that passes is never used.
//
// [Calibrate] measures some dozens of cases and chooses the prices with which package cost comes
// closest to all of them: least squares of the relative errors, no price below zero, and prices
// that no case shows stay in proportion to the built-in ones.
//
// # Safety
//
// The namespaces end with the sockets in them. Rules that would make the kernel load a module are
// not measured: on a kernel with modules a case runs only if its modules are there already.
//
// # Units
//
// Nanoseconds of CPU time for each datagram.
//
// # Sources
//
// sch_blackhole.c of Linux, which drops what it is given and reports success; unshare(2);
// sendmmsg(2).
//
// # Limits
//
// Linux, and root. Receiving and forwarding pass the same code at other hooks, but with caches that
// other work has used. A line in the log is not measured: the kernel writes none for rules of a
// namespace.
package measure
