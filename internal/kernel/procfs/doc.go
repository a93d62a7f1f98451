// Package procfs reads the text that Linux prints below /proc: one parser for each file, from bytes
// to numbers, and nothing else.
//
// # Model
//
// A parser is a pure function over the bytes of one whole file. No file is opened here: package
// host decides where the bytes come from (the running system or an archive) and which network
// namespace they are of. Files that are tables of counters are put into [Counts], a flat map from
// name to value that any two readings of can be subtracted ([Difference]); the others have a small
// type of their own ([Route], [Processor], [CPUTimes], [Interrupt], [Mount]).
//
// The kernel promises that it does not change these files, and then appends: columns at the end of
// a line, lines at the end of a file. So every parser takes more than it knows and, where older
// kernels printed less, less than it knows; what the text says of itself decides, never the
// kernel's version. Where a value cannot be placed beyond doubt the parser answers [ErrFormat]: a
// number under the wrong name is worse than no number. What had been read until then stays in the
// [Counts].
//
// # Names
//
//	Tcp.RetransSegs, TcpExt.TCPTimeouts, Udp6.RcvbufErrors       /proc/net/{snmp,netstat,snmp6}, the kernel's own words
//	softnet.dropped, softnet.0.dropped                           /proc/net/softnet_stat: all CPUs, and CPU 0
//	sockets.tcp_inuse, tcpmem.pages                              /proc/net/sockstat
//	nic.eth0.rx_bytes                                            /proc/net/dev, by the names that sysfs has for the same counters
//	irq.45, softirq.NET_RX, ctxt                                 /proc/stat
//	softirq.NET_RX.3                                             /proc/softirqs: on CPU 3
//	conntrack.insert_failed, neigh.ipv4.table_fulls              /proc/net/stat, summed over the CPUs
//	nfqueue.dropped                                              /proc/net/netfilter/nfnetlink_queue, over all queues
//	pressure.cpu.some_microseconds                               /proc/pressure
//	conntrack.max, tcpmem.max_pages, neigh.ipv4.gc_thresh3       /proc/sys: the limits beside the levels
//
// [CounterFiles] lists the files and their parsers. [Columns] and the functions that begin with
// Each read parts of some of them without a map in between, for readers that come back each second.
//
// # Units
//
// Counters are as the kernel counts them: bytes, packets, events. [CPUTimes] are seconds, memory is
// bytes, clocks are megahertz; a page is a page of the kernel (4096 bytes on amd64, up to 64 KiB on
// arm64 and ppc64).
//
// # Sources
//
// proc(5) and its children (proc_net(5), proc_stat(5)); Documentation/filesystems/proc.rst;
// Documentation/networking/{snmp_counter, proc_net_tcp,scaling}.rst;
// Documentation/accounting/psi.rst; the functions of the kernel that print the files, each named at
// its parser.
//
// # Limits
//
// Only what bears on the speed of a network is kept. Every parser is fuzzed: whatever the bytes
// are, it ends, does not panic, and answers in memory proportional to its input.
package procfs
