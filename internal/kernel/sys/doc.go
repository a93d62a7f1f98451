// Package sys is the thin skin over the operating system that the measuring engine and the journal
// stand on: raw calls and honest answers about what this kernel can do.
//
// # Model
//
// Everything is split by capability, one file per capability and system: pinning a thread to a CPU
// ([Pin], [AllowedCPUs]), clocks ([Monotonic], [Boottime]), the name of this boot ([BootID]),
// privileges ([IsRoot], [Capabilities]), TCP evidence ([TCPInfo]), socket options, blocking input
// and output on bare file descriptors ([Read], [Write], [Poll]) and ICMP echo sockets ([OpenEcho]).
// A probe gives one of three answers: nil is yes, an error that is [ErrNotSupported] is no, and
// every other error means that nobody could tell. [Probes] lists them all with the kernel that
// brought each one.
//
// Blocking input and output goes around the network poller of the Go runtime on purpose: a
// goroutine that is locked to its thread and sleeps inside read(2) is woken by the kernel alone,
// without epoll and without a second scheduler.
//
// # Units
//
// Clocks are time.Duration; CPUs are numbered as the kernel does, from 0, with gaps. Socket buffers
// are bytes as the kernel keeps them, which is twice what was asked for. [TCPInfo] keeps the
// kernel's own units, so each field says its unit in its name.
//
// # Sources
//
// struct tcp_info: include/uapi/linux/tcp.h up to Linux 6.18. CPU affinity: sched_setaffinity(2).
// CPU lists: Documentation/admin-guide/cputopology.rst. SO_RCVTIMEO, SO_SNDTIMEO, SO_LINGER and the
// doubling of buffer sizes: socket(7). Capabilities: capabilities(7). Ping sockets: icmp(7),
// net.ipv4.ping_group_range, since Linux 3.0 (IPv6: 3.11). CLOCK_BOOTTIME: clock_gettime(2), since
// Linux 2.6.39. Boot id: random(4).
//
// # Limits
//
// Linux in full. On FreeBSD, illumos, Solaris and Windows only the clocks and [IsRoot] are real;
// the rest says [ErrNotSupported] and the caller falls back to package net. Descriptors are bare
// numbers: nothing keeps one from being closed while another thread sleeps in a call on it, so
// callers wake that thread with [Shutdown], wait for it, and close then. The boot id and
// CLOCK_BOOTTIME are those of the machine also inside containers, but for time namespaces (Linux
// 5.6), where CLOCK_BOOTTIME has an offset.
package sys
