// Package procfs parses the text files that Linux provides below /proc: one parser for each file,
// from bytes to numbers.
//
// # Model
//
// A parser is a pure function over the bytes of one whole file. No parser opens a file: package
// host decides where the bytes come from (the running system or an archive) and to which network
// namespace they belong. Parsers of tables of counters fill a [Counts], a flat map from name to
// value; [Difference] subtracts two readings. The other parsers return a small type of their own
// ([Route], [Processor], [CPUTimes], [Interrupt], [Mount]).
//
// The kernel promises not to change these files, but appends columns to lines and lines to files.
// So every parser accepts more than it knows, and less where older kernels printed less. It decides
// by the text itself, never by the kernel's version. If a value cannot be identified beyond doubt,
// the parser returns [ErrFormat]: a number under the wrong name is worse than no number. The values
// read until then remain in the [Counts].
//
// # Names
//
//	Tcp.RetransSegs, TcpExt.TCPTimeouts, Udp6.RcvbufErrors /proc/net/{snmp,netstat,snmp6}
//	softnet.dropped, softnet.0.dropped                     softnet_stat: all CPUs, and CPU 0
//	sockets.tcp_inuse, tcpmem.pages                        /proc/net/sockstat
//	nic.eth0.rx_bytes                                      /proc/net/dev, named as in sysfs
//	irq.45, softirq.NET_RX, ctxt                           /proc/stat
//	softirq.NET_RX.3                                       /proc/softirqs: on CPU 3
//	conntrack.insert_failed, neigh.ipv4.table_fulls        /proc/net/stat, summed over the CPUs
//	nfqueue.dropped                                        nfnetlink_queue, over all queues
//	pressure.cpu.some_microseconds                         /proc/pressure
//	conntrack.max, tcpmem.max_pages, neigh.ipv4.gc_thresh3 /proc/sys: the limits of the levels
//
// [CounterFiles] lists the files and their parsers. [Columns] and the functions that begin with
// Each read parts of some of them without a map, for readers that run every second.
//
// # Units
//
// Counters are in the kernel's units: bytes, packets, events. [CPUTimes] are seconds, memory is
// bytes, clocks are megahertz; a page is a page of the kernel (4096 bytes on amd64, up to 64 KiB on
// arm64 and ppc64).
//
// # Sources
//
// proc(5) and its children (proc_net(5), proc_stat(5)); Documentation/filesystems/proc.rst;
// Documentation/networking/{snmp_counter,proc_net_tcp,scaling}.rst;
// Documentation/accounting/psi.rst; the functions of the kernel that print the files, each named at
// its parser.
//
// # Limits
//
// Only values related to network performance are kept. Every parser is fuzzed: for any bytes it
// ends, does not panic, and uses memory proportional to its input.
package procfs
