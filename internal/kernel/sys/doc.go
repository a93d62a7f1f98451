// Package sys is a thin layer over the operating system for the measuring engine and the journal:
// raw calls, and reliable answers about the abilities of this kernel.
//
// # Model
//
// Each file holds one capability for one system: pinning a thread to a CPU ([Pin], [AllowedCPUs]),
// clocks ([Monotonic], [Boottime]), the identity of this boot ([BootID]), privileges ([IsRoot],
// [Capabilities]), TCP evidence ([TCPInfo]), socket options, blocking input and output on bare file
// descriptors ([Read], [Write], [Poll]) and ICMP echo sockets ([OpenEcho]). A probe has three
// results: nil means supported, an error that is [ErrNotSupported] means unsupported, and any other
// error means unknown. [Probes] lists all probes with the kernel version that introduced each
// capability.
//
// Blocking input and output deliberately bypasses the network poller of the Go runtime. A goroutine
// that is locked to its thread and sleeps inside read(2) is woken by the kernel alone, without
// epoll and without a second scheduler.
//
// # Units
//
// Clocks are time.Duration. CPUs are numbered as in the kernel, from 0, with gaps. Socket buffers
// are in bytes as the kernel stores them, which is twice the requested size. [TCPInfo] keeps the
// kernel's units, so each field has its unit in its name.
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
// Only Linux is fully supported. On FreeBSD, illumos, Solaris and Windows only the clocks and
// [IsRoot] work; everything else returns [ErrNotSupported], and the caller falls back to package
// net. Descriptors are bare numbers: a descriptor may be closed while another thread sleeps in a
// call on it. Callers therefore wake that thread with [Shutdown], wait for it, and then close. The
// boot id and CLOCK_BOOTTIME are those of the machine even inside containers, except in time
// namespaces (Linux 5.6), where CLOCK_BOOTTIME has an offset.
package sys
